"""What the headers of a run's batches may say at most: its span of time, its producer ids, its sequences. Pure.

Owns how the bounds follow from ``run.json``. ``started`` is wall-clock time and ``started_ns`` the monotonic clock of
the same moment, so that the end of the last phase has a wall-clock time too; ``ended`` is written after the verdict.
By how much the wall clock moved meanwhile is ``verifier.closing.wall_clock``'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from verifier.closing.wall_clock import STEADY, ClockShift, started_ms
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import whole_ms_of_ns

#: Clocks of one machine: what a run takes to be noted, and a clock that is set a little between two samples of it.
MARGIN_MS = 60_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """None: not known, and then nothing is outside of it.

    Timestamps are from ``earliest_ms`` to ``latest_ms``, both included. Producer ids are below ``producer_ids_below``.
    ``begins_at_zero``: a producer's first sequence in a log that begins at offset 0.
    """

    earliest_ms: int | None = None
    latest_ms: int | None = None
    producer_ids_below: int | None = None
    begins_at_zero: bool = True


def bounds(model: RunModel, shift: ClockShift = STEADY) -> Bounds:
    """Of one run whose wall clock moved so far."""
    began_ms = started_ms(model)
    ends = [phase.end_ns for phase in model.phases if phase.end_ns is not None]
    latest_ms = None
    if began_ms is not None and ends and len(ends) == len(model.phases):
        latest_ms = began_ms + whole_ms_of_ns(max(ends) - model.started_ns) + shift.ahead_ms + MARGIN_MS
    return Bounds(
        None if began_ms is None else began_ms - shift.behind_ms - MARGIN_MS,
        latest_ms,
        model.producer_ids_below,
        # Kafka itself takes any first sequence of a producer that it does not know
        model.settings.unknown_producer != "kafka",
    )


def expired_ms(model: RunModel, shift: ClockShift = STEADY) -> int:
    """A producer whose newest batch is not younger may have been forgotten by the end of the run.

    Brokers forget by the wall clock: one that was set forward, even for a while, makes producers old.
    """
    latest_ms = bounds(model, shift).latest_ms
    return 2**63 - 1 if latest_ms is None else latest_ms - model.settings.producer_id_expiration_ms
