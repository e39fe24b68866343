"""Combines outcomes of single records into spans, which become rows of the history. Pure.

Owns how delivery reports and delivered records are combined, and which offsets in delivery reports can be trusted. Does
not own columns or files (``verifier.evidence``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from verifier.evidence.history import HistoryOutcome, HistoryRow, Phase
from verifier.evidence.sequenced_value import MAGIC, decode

UNKNOWN_OFFSET = -1


class Delivery(NamedTuple):
    """What the client said about one sequence. ``offset`` as the client gave it, not yet judged; ``error`` None if ok.

    ``is_refused``: it is certainly not stored.
    """

    sequence: int
    intended_ns: int
    offset: int
    error: str | None
    is_refused: bool = False


@dataclass(slots=True)
class SentSpan:
    """Consecutive sequences with consecutive offsets (or none) and one outcome; ``intended_ns`` has one per record."""

    first_sequence: int
    first_offset: int
    error: str | None
    intended_ns: list[int] = field(default_factory=list)
    is_refused: bool = False

    @property
    def records(self) -> int:
        return len(self.intended_ns)

    @property
    def last_sequence(self) -> int:
        return self.first_sequence + len(self.intended_ns) - 1

    @property
    def last_offset(self) -> int:
        return UNKNOWN_OFFSET if self.first_offset < 0 else self.first_offset + len(self.intended_ns) - 1

    @property
    def outcome(self) -> HistoryOutcome:
        if self.error is None:
            return "ok"
        return "fail" if self.is_refused else "info"


class OffsetTrust:
    """Decides which reported offsets are real. There is one for each producer instance and partition.

    librdkafka numbers the records of a batch from the response's base offset on, also when that is -1 or -1001
    (DUPLICATE_SEQUENCE_NUMBER, acks=0: ``rd_kafka_msgq_set_metadata`` counts up without looking), so that later
    records of such a batch seem to lie at 0, 1, 2 ... A chain of records that began with a negative offset therefore
    stays unknown for as long as sequence and offset go up together. A real batch that happens to continue such a
    chain is called unknown too: that costs evidence and invents none.
    """

    def __init__(self, *, acknowledged: bool = True) -> None:
        self._acknowledged = acknowledged
        self._sequence = -2
        self._offset = UNKNOWN_OFFSET
        self._unknown = False

    def judge(self, sequence: int, offset: int) -> int:
        """The offset of a delivered record, or -1 if the client does not know it."""
        if offset < 0:
            self._unknown = True
        elif sequence != self._sequence + 1 or offset != self._offset + 1:
            self._unknown = False
        self._sequence, self._offset = sequence, offset
        return UNKNOWN_OFFSET if self._unknown or not self._acknowledged else offset


def coalesce_deliveries(deliveries: Iterable[Delivery], trust: OffsetTrust) -> Iterator[SentSpan]:
    """Spans in the order in which the client reported; the reports of one poll go in."""
    span: SentSpan | None = None
    next_sequence = next_offset = -1
    for sequence, intended_ns, reported_offset, error, is_refused in deliveries:
        offset = trust.judge(sequence, reported_offset) if error is None else UNKNOWN_OFFSET
        if span is None or sequence != next_sequence or error != span.error or offset != next_offset:
            if span is not None:
                yield span
            span = SentSpan(sequence, offset, error, is_refused=is_refused)
        span.intended_ns.append(intended_ns)
        next_sequence = sequence + 1
        next_offset = UNKNOWN_OFFSET if offset < 0 else offset + 1
    if span is not None:
        yield span


def ranges(sequences: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Ascending sequences as closed ranges ``(first, last)``."""
    first = last = None
    for sequence in sequences:
        if last is not None and first is not None and sequence == last + 1:
            last = sequence
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = sequence
    if first is not None and last is not None:
        yield first, last


class ReadRecord(NamedTuple):
    """One record as a consumer delivered it. ``value`` is None for a null value."""

    partition: int
    offset: int
    value: bytes | None


class PolledRows(NamedTuple):
    """The rows of one poll, and the send times of its sequenced values of this run (for end-to-end latency)."""

    rows: list[HistoryRow]
    send_times_ns: list[int]
    undecodable: int


def coalesce_records(
    records: Iterable[ReadRecord],
    *,
    topic: str,
    run_id: int,
    invoke_ns: int,
    complete_ns: int,
    session: int,
    phase: Phase = "load",
    op: int = -1,
) -> PolledRows:
    """The rows of one poll, the call number ``op``, in the order of delivery.

    A row spans consecutive offsets of one partition that hold consecutive sequences of one stream, or that hold no
    value of this run for one and the same reason (stream and sequences are -1 then, ``error`` says why).
    """
    rows: list[HistoryRow] = []
    send_times_ns: list[int] = []
    undecodable = 0
    partition = stream = first_sequence = last_sequence = first_offset = last_offset = -1
    error: str | None = None

    def finish() -> None:
        if first_offset >= 0:
            what = (topic, partition, stream, first_sequence, last_sequence, first_offset, last_offset)
            row = HistoryRow(
                "poll", "ok", *what, invoke_ns, complete_ns, error=error, phase=phase, session=session, op=op
            )
            rows.append(row)

    for record in records:
        value = decode(record.value) if record.value is not None else None
        if value is not None and value.run_id == run_id:
            its_stream, its_sequence = value.stream_id, value.sequence
            its_error, step = None, 1
            send_times_ns.append(value.send_time_ns)
        else:
            its_stream, its_sequence, step = -1, -1, 0
            its_error = f"foreign: run {value.run_id}" if value is not None else _why_undecodable(record.value)
            undecodable += value is None
        continues = (
            record.partition == partition
            and record.offset == last_offset + 1
            and its_stream == stream
            and its_sequence == last_sequence + step
            and its_error == error
        )
        if not continues:
            finish()
            partition, stream = record.partition, its_stream
            first_sequence, error = its_sequence, its_error
            first_offset = record.offset
        last_sequence, last_offset = its_sequence, record.offset
    finish()
    return PolledRows(rows, send_times_ns, undecodable)


def _why_undecodable(value: bytes | None) -> str:
    if value is None:
        return "undecodable: null value"
    return "undecodable: damaged" if value[: len(MAGIC)] == MAGIC else "undecodable: not a sequenced value"
