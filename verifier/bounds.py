"""What the headers of a run's batches may say at most: its span of time, its producer ids, its sequences. Pure.

Owns how the bounds follow from ``run.json``. ``started`` is wall-clock time and ``started_ns`` the monotonic clock of
the same moment, so that the end of the last phase has a wall-clock time too; ``ended`` is written after the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from verifier.evidence.run_model import RunModel

#: Clocks of one machine: what a run takes to be noted, and a clock that is set while it lasts.
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


def bounds(model: RunModel) -> Bounds:
    """Of one run."""
    try:
        started = datetime.fromisoformat(model.started)
    except ValueError:
        started_ms = None
    else:
        # without a zone it is UTC, as run.json says
        started_ms = round((started if started.tzinfo else started.replace(tzinfo=UTC)).timestamp() * 1000)
    ends = [phase.end_ns for phase in model.phases if phase.end_ns is not None]
    latest_ms = None
    if started_ms is not None and ends and len(ends) == len(model.phases):
        latest_ms = started_ms + (max(ends) - model.started_ns) // 1_000_000 + MARGIN_MS
    return Bounds(
        None if started_ms is None else started_ms - MARGIN_MS,
        latest_ms,
        model.producer_ids_below,
        # Kafka itself takes any first sequence of a producer that it does not know
        model.settings.unknown_producer != "kafka",
    )


def expired_ms(model: RunModel) -> int:
    """A producer whose newest batch is not younger may have been forgotten by the end of the run."""
    latest_ms = bounds(model).latest_ms
    return 2**63 - 1 if latest_ms is None else latest_ms - model.settings.producer_id_expiration_ms
