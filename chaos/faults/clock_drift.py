"""``clock-drift``: the wall clock of a partition's leader runs too fast or too slow."""

from __future__ import annotations

from chaos.faults.accepted import integer
from chaos.faults.skewed_clock import SkewedClock
from cluster.seams.units import ms_of_seconds, seconds_of_microseconds

#: At most 50% too fast or too slow: a run has only seconds to show what takes a real bad clock weeks.
_MOST_PPM = 500_000


class ClockDrift(SkewedClock):
    """The rate is drawn unless it is given."""

    name = "clock-drift"
    summary = "make the wall clock of a partition's leader run too fast or too slow; correct it"
    accepts = (integer("ppm", -_MOST_PPM, _MOST_PPM),)

    def _asked(self) -> tuple[int, int]:
        drawn = self.random.choice((-1, 1)) * self.random.randint(_MOST_PPM // 2, _MOST_PPM)
        return 0, int(self.injection.parameters.get("ppm", drawn))

    @property
    def _off_ms(self) -> float:
        # how far off the clock is after one second
        return ms_of_seconds(seconds_of_microseconds(self._drift_ppm))
