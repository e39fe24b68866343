"""Which phase of a run is named to those who watch it. Owns that choice. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.seams.units import ns_of_seconds
from verifier.evidence.phases import CHAOS, START
from verifier.evidence.run_model import PhaseSpan

#: What chaos is called before the first fault is due.
WARM_UP = "warm up"


def shown_phase(
    phases: Sequence[PhaseSpan], *, started_ns: int, first_fault_s: float | None, load_since_ns: int | None, now_ns: int
) -> tuple[str, int]:
    """The newest phase, and since when it is that one; chaos is the warm-up until its first fault is due.

    ``phases`` as the run went through them, ``started_ns`` for a run that has come to none yet. ``first_fault_s`` is
    the schedule's, None if it has no fault; it counts from ``load_since_ns``, None before the schedule has begun. Times
    in nanoseconds of one monotonic clock.
    """
    if not phases:
        return START, started_ns
    newest = phases[-1]
    if newest.name != CHAOS or first_fault_s is None:
        return newest.name, newest.start_ns
    if load_since_ns is None:
        return WARM_UP, newest.start_ns
    due_ns = load_since_ns + ns_of_seconds(first_fault_s)
    return (WARM_UP, newest.start_ns) if now_ns < due_ns else (CHAOS, max(due_ns, newest.start_ns))
