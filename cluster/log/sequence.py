"""The sequence check of the idempotent producer: accept, answer as a duplicate, or refuse. Pure.

Owns the decision and the value it is made on, one producer's entry in one partition. Does not own the map of
entries or how they follow the log (``producers.py``). Sources: Kafka's ProducerAppendInfo, docs/producer-state.md.

Sequences live on a circle of 2^31 values: 2147483647 is followed by 0. What "below the window" means on it:

* The window is the cached batches, ``first`` the oldest one's base sequence. A batch lies below it only if all of it
  does: one that touches a cached batch without being equal to it is no retry that we know (out of order).
* A number alone does not say whether it lies behind or ahead, so the nearer side counts, as in RFC 1982: behind is up
  to 2^30 before the next sequence. This matters already when the next sequence is close to 2147483647: of two batches
  in flight, the second may have gone round to 0 and arrive alone, and to call it a duplicate would lose it. To be
  misread a client would need 2^30 records in flight.
* While the epoch has not wrapped (``wrapped`` is False) the numbers are history too: with a complete history exactly
  0 .. last were appended, so what is not numerically below was never appended, however far "behind" it lies.
* A real duplicate further back than 2^30 is thus refused. That is safe: the client is told less than is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode

#: Sequences on the circle, and the half of it that counts as behind.
SEQUENCES = 2**31
HALF = 2**30
#: ``& SEQUENCE_MASK`` goes round the circle: it is ``increment_sequence`` without the call.
SEQUENCE_MASK = SEQUENCES - 1

#: How many batches of a producer are remembered; clients keep at most as many in flight.
WINDOW = 5


class BatchMetadata(NamedTuple):
    """What is remembered of one appended batch. ``timestamp`` is its max timestamp in milliseconds."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry(NamedTuple):
    """What one log knows of one producer. Immutable: an append makes a new entry.

    ``batches`` are the last five of this epoch, oldest first. ``complete`` says that the epoch's history is known
    without a hole from sequence 0 on; ``wrapped`` that this history has passed 2147483647. ``last_timestamp`` is
    the newest batch's max timestamp, which is the client's clock. ``coordinator_epoch`` is that of the newest marker,
    ``txn_first_offset`` where the open transaction begins; -1 without.
    """

    producer_id: int
    producer_epoch: int
    batches: tuple[BatchMetadata, ...]
    complete: bool
    last_timestamp: int
    wrapped: bool = False
    coordinator_epoch: int = -1
    txn_first_offset: int = -1

    @property
    def last_sequence(self) -> int:
        """-1 before the first batch of the epoch."""
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        """-1 before the first batch of the epoch."""
        return self.batches[-1].last_offset if self.batches else -1


class VerdictKind(Enum):
    """What becomes of a batch."""

    ACCEPT = "accept"
    DUPLICATE = "duplicate"
    DUPLICATE_BELOW_WINDOW = "duplicate below the window"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class SequenceVerdict:
    """The outcome of a check.

    DUPLICATE carries the ``batch`` that was appended before. ``must_commit_offset`` is for both duplicates the
    offset that must lie below the high watermark before acks=all may be answered. REJECT carries a code and a text.
    """

    kind: VerdictKind
    batch: BatchMetadata | None = None
    must_commit_offset: int = -1
    error_code: ErrorCode = ErrorCode.NONE
    message: str = ""


ACCEPTED = SequenceVerdict(VerdictKind.ACCEPT)

#: (entry or None, the batch's header, log start offset, the setting for unknown producers) -> SequenceVerdict
CheckSequence = Callable[[ProducerEntry | None, BatchHeader, int, str], SequenceVerdict]


def check_sequence(
    entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown_producer: str
) -> SequenceVerdict:
    """Judge a client's batch that carries a producer id and a sequence; ``entry`` is what the log knows of it."""
    if entry is None:
        return _check_unknown(header, log_start_offset, unknown_producer)
    _, producer_epoch, batches, _, _, _, _, _ = entry
    if header.producer_epoch != producer_epoch:
        return _check_other_epoch(entry, header)
    base_sequence = header.base_sequence
    expected = (batches[-1].last_sequence + 1) & SEQUENCE_MASK if batches else 0
    if base_sequence == expected:
        return ACCEPTED
    last_sequence = (base_sequence + header.last_offset_delta) & SEQUENCE_MASK
    for batch in batches:
        if batch.base_sequence == base_sequence and batch.last_sequence == last_sequence:
            return SequenceVerdict(VerdictKind.DUPLICATE, batch, batch.last_offset)
    # Kafka does not tell what is older than its cache from what never came.
    if unknown_producer == "gapless" and is_below_window(entry, base_sequence, header.last_offset_delta + 1):
        # All that is older than the window lies before its first batch, so this is what must be committed.
        return SequenceVerdict(VerdictKind.DUPLICATE_BELOW_WINDOW, None, batches[0].base_offset - 1)
    return _reject(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} epoch {header.producer_epoch} sent sequence {base_sequence}, "
        f"expected {expected}",
    )


def is_below_window(entry: ProducerEntry, base_sequence: int, count: int) -> bool:
    """Whether ``count`` sequences from ``base_sequence`` are certainly appended and older than the cached batches.

    False whenever it is not certain (see the module's text).
    """
    if not entry.complete or not entry.batches:
        return False
    first = entry.batches[0].base_sequence
    if base_sequence >= first and not entry.wrapped:
        return False
    expected = entry.batches[-1].last_sequence + 1
    window = (expected - first) % SEQUENCES
    behind = (expected - base_sequence) % SEQUENCES
    return window + count <= behind <= HALF


def _check_unknown(header: BatchHeader, log_start_offset: int, unknown_producer: str) -> SequenceVerdict:
    if header.base_sequence == 0 or unknown_producer == "kafka":
        return ACCEPTED
    if unknown_producer == "seed":
        return _reject(
            ErrorCode.UNKNOWN_PRODUCER_ID,
            f"producer {header.producer_id} is not known here and sent sequence {header.base_sequence}",
        )
    if log_start_offset > 0:
        return ACCEPTED  # what it wrote before may have been deleted (KIP-360)
    return _reject(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} sent sequence {header.base_sequence} first, "
        "and this log, which still starts at offset 0, has nothing of it",
    )


def _check_other_epoch(entry: ProducerEntry, header: BatchHeader) -> SequenceVerdict:
    if header.producer_epoch < entry.producer_epoch:
        return _reject(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {header.producer_id} has epoch {entry.producer_epoch} here, not {header.producer_epoch}",
        )
    if header.base_sequence == 0:
        return ACCEPTED
    return _reject(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} began epoch {header.producer_epoch} "
        f"with sequence {header.base_sequence}, not 0",
    )


def _reject(error_code: ErrorCode, message: str) -> SequenceVerdict:
    return SequenceVerdict(VerdictKind.REJECT, error_code=error_code, message=message)
