"""``clock-jump``: the wall clock of a partition's leader is moved forward or back for a while."""

from __future__ import annotations

from chaos.faults.accepted import integer
from chaos.faults.skewed_clock import SkewedClock

#: Up to five minutes either way.
_MOST_MS = 300_000


class ClockJump(SkewedClock):
    """The distance is drawn unless it is given."""

    name = "clock-jump"
    summary = "move the wall clock of a partition's leader forward or back; correct it"
    accepts = (integer("ahead_ms", -86_400_000, 86_400_000),)

    def _asked(self) -> tuple[int, int]:
        drawn = self.random.choice((-1, 1)) * self.random.randint(2_000, _MOST_MS)
        return int(self.injection.parameters.get("ahead_ms", drawn)), 0

    @property
    def _off_ms(self) -> float:
        return self._ahead_ms
