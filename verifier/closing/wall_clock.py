"""How far the machine's wall clock moved against its monotonic clock during a run. Owns reading it from the samples.

Batches carry wall-clock time, and ``run.json`` has the wall-clock time of the run's start alone. A clock that is set
(NTP), or a machine that sleeps, moves what follows; the conductor samples the difference of both clocks into
``resources.jsonl``. What follows from a shift is ``verifier.bounds``' and ``verifier.completeness``' matter.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import microseconds_of_ns, ms_of_seconds, whole_ms_of_ns

#: The field of a sample: wall-clock time minus monotonic time, in ms.
OFFSET = "wall_minus_monotonic_ms"
#: A sample further off than any clock can be is no sample; Spark's arithmetic must hold what follows from one.
LONGEST_MS = 2**53


def moment(run: RunModel, monotonic_ns: int) -> datetime | None:
    """A monotonic time of the run as UTC, had its wall clock not moved; None if ``run.json`` does not tell."""
    try:
        started = datetime.fromisoformat(run.started)
        if started.tzinfo is None:
            started = started.replace(tzinfo=UTC)
        return started.astimezone(UTC) + timedelta(microseconds=microseconds_of_ns(monotonic_ns - run.started_ns))
    except (ValueError, OverflowError):
        return None


def clock(run: RunModel, monotonic_ns: int) -> str | None:
    """The same for people, ``12:00:03.1``."""
    at = moment(run, monotonic_ns)
    return None if at is None else f"{at:%H:%M:%S}.{at.microsecond // 100_000}"


class ClockShift(NamedTuple):
    """How far the clock was found behind and ahead of what the run's start says, in ms; both are at least 0."""

    behind_ms: int = 0
    ahead_ms: int = 0

    @property
    def span_ms(self) -> int:
        """How far apart the clock's two extremes are."""
        return self.behind_ms + self.ahead_ms


#: A clock that kept its pace, as far as is known.
STEADY = ClockShift()


def started_ms(model: RunModel) -> int | None:
    """The wall-clock time of the run's start, in ms; None if ``run.json`` does not have one."""
    try:
        started = datetime.fromisoformat(model.started)
    except ValueError:
        return None
    # without a zone it is UTC, as run.json says
    return round(ms_of_seconds((started if started.tzinfo else started.replace(tzinfo=UTC)).timestamp()))


def shift_of(directory: RunDirectory, model: RunModel) -> ClockShift:
    """Of one run; no shift if there are no samples, as in runs of versions that took none.

    Raises ``OSError`` or ``ValueError`` if the samples cannot be read.
    """
    began_ms = started_ms(model)
    if began_ms is None:
        return STEADY
    at_start = began_ms - whole_ms_of_ns(model.started_ns)
    moved = [0]
    for sample in directory.read_resources():
        if OFFSET not in sample:
            continue
        found = sample[OFFSET]
        if type(found) is not int or abs(found) > LONGEST_MS:
            raise ValueError(f"{OFFSET} is {found!r}, which is no time in ms")
        moved.append(found - at_start)
    return ClockShift(-min(moved), max(moved))


def known_shift(directory: RunDirectory, model: RunModel) -> ClockShift:
    """As ``shift_of``; no shift if the samples cannot be read: that is a doubt, which the closing of the run raises."""
    try:
        return shift_of(directory, model)
    except (OSError, ValueError):
        return STEADY
