"""Chooses the phase of a run that is shown to people who watch it. Pure. Does not own how phases are recorded."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.seams.units import ns_of_seconds
from verifier.evidence.phases import CHAOS, START
from verifier.evidence.run_model import PhaseSpan

#: The name of the chaos phase until the first fault is due.
WARM_UP = "warm up"


def shown_phase(
    phases: Sequence[PhaseSpan], *, started_ns: int, first_fault_s: float | None, load_since_ns: int | None, now_ns: int
) -> tuple[str, int]:
    """The newest phase and the time when it began. Until the first fault is due, the chaos phase is called the warm-up.

    ``phases`` are in order. ``started_ns`` is the result if there is none yet. ``first_fault_s`` is the time of the
    first fault in the schedule, None without faults; it counts from ``load_since_ns``, which is None until the load has
    started. All times in ns are of one monotonic clock.
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
