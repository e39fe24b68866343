"""Reading by assignment: all partitions from given offsets, every record recorded in the order of delivery.

Owns the next offset of each partition, when partitions are assigned again, and what is recorded of a poll. Does not own
the client, or how often it is polled. Never resets an offset: a reader that cannot continue reports that, and asks
again for the same offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.seams.clock import Clock
from loadgen.clients.base import RecordReader, Watermarks
from loadgen.recorder import Recorder
from loadgen.spans import ReadRecord, coalesce_records
from verifier.evidence.history import HistoryRow, Phase

REASSIGN_NS = 500_000_000
#: Empty polls are summed up for at most this long, so that the history shows a reader that gets nothing.
IDLE_NS = 1_000_000_000
#: How long a request for end offsets may keep a reader from reading. Without a leader, no answer comes.
ENDS_TIMEOUT_S = 0.2


@dataclass(slots=True)
class _Idle:
    """Consecutive polls without a record."""

    count: int = 0
    op: int = -1
    invoke_ns: int = -1
    complete_ns: int = -1


class PartitionReader:
    """Reads partitions of one topic with one consumer. ``start``, ``poll`` as often as you like, ``finish``.

    ``is_committed``: the consumer is handed only what is committed.
    """

    def __init__(
        self,
        *,
        topic: str,
        offsets: Mapping[int, int],
        run_id: int,
        reader: RecordReader,
        recorder: Recorder,
        clock: Clock,
        phase: Phase = "load",
        is_committed: bool = False,
    ) -> None:
        self._topic = topic
        self._next = dict(offsets)
        self._run_id = run_id
        self._reader = reader
        self._recorder = recorder
        self._clock = clock
        self._phase: Phase = phase
        self._is_committed = is_committed
        self._session = -1
        self._reassign_ns: int | None = None
        self._idle = _Idle()
        # the watermarks known after the last empty poll, and those that are written
        self._known: Mapping[int, Watermarks] = {}
        self._written: dict[int, Watermarks] = {}

    @property
    def next_offsets(self) -> dict[int, int]:
        """Partition -> the offset after the last delivered record."""
        return dict(self._next)

    @property
    def session(self) -> int:
        """The number of the current assignment. Each error that breaks an assignment leads to a new number."""
        return self._session

    def start(self) -> None:
        """Assign all partitions at their next offsets, under a new session number."""
        self._write_idle()
        self._session = self._recorder.next_session()
        self._reassign_ns = None
        self._written.clear()
        op, invoke_ns = self._recorder.next_op(), self._clock.monotonic_ns()
        if self._is_committed:
            self._append(HistoryRow("isolation", "ok", self._topic), op, invoke_ns, invoke_ns)
        # before the client is told, so that every delivered record belongs to a recorded assignment
        for partition, offset in self._next.items():
            row = HistoryRow("assign", "ok", self._topic, partition, first_offset=offset, last_offset=offset)
            self._append(row, op, invoke_ns, invoke_ns)
        self._reader.assign(self._topic, self._next)

    def poll(self, max_records: int, timeout_s: float) -> list[ReadRecord]:
        """Poll the client once, and record the result. Notes an error, and half a second later assigns again."""
        invoke_ns = self._clock.monotonic_ns()
        if self._reassign_ns is not None and invoke_ns >= self._reassign_ns:
            self.start()
        polled = self._reader.poll(max_records, timeout_s)
        looked_at = {record.partition for record in polled.records} or set(self._next)
        known = {partition: self._reader.watermarks(self._topic, partition) for partition in looked_at}
        # after reading the watermarks, because a row means that they were known by its ``complete_ns``
        op, complete_ns = self._recorder.next_op(), self._clock.monotonic_ns()
        if polled.records:
            self._write_idle()
            self._record(polled.records, known, op, invoke_ns, complete_ns)
        else:
            self._count_idle(known, op, invoke_ns, complete_ns)
        for error in polled.errors:
            self._recorder.error(error, topic=self._topic, session=self._session)
        if polled.broken and self._reassign_ns is None:
            self._reassign_ns = self._clock.monotonic_ns() + REASSIGN_NS
        return polled.records

    def ask_ends(self) -> None:
        """Ask for the end offsets of the partitions, and record them. Waits up to ``ENDS_TIMEOUT_S`` for an answer."""
        op, invoke_ns = self._recorder.next_op(), self._clock.monotonic_ns()
        told = self._reader.end_offsets(self._topic, self._next, ENDS_TIMEOUT_S)
        complete_ns = self._clock.monotonic_ns()
        for partition, offset in sorted(told.items()):
            row = HistoryRow("end-offset", "ok", self._topic, partition, first_offset=offset, last_offset=offset)
            self._append(row, op, invoke_ns, complete_ns)

    def finish(self) -> None:
        """Stop reading, and write the summed-up polls."""
        self._write_idle()

    def _record(
        self, records: list[ReadRecord], known: Mapping[int, Watermarks], op: int, invoke_ns: int, complete_ns: int
    ) -> None:
        polled = coalesce_records(
            records,
            topic=self._topic,
            run_id=self._run_id,
            invoke_ns=invoke_ns,
            complete_ns=complete_ns,
            session=self._session,
            phase=self._phase,
            op=op,
        )
        size_bytes = sum(len(record.value) for record in records if record.value is not None)
        rows = [_with_watermarks(row, known[row.partition]) for row in polled.rows]
        self._recorder.polled(self._topic, polled._replace(rows=rows), size_bytes)
        self._written |= known
        for partition, offset, _ in records:
            self._next[partition] = offset + 1

    def _count_idle(self, known: Mapping[int, Watermarks], op: int, invoke_ns: int, complete_ns: int) -> None:
        if self._idle.count and any(
            known[each].high_watermark < old.high_watermark for each, old in self._known.items()
        ):
            # write the higher watermark first: only that it was known before makes the lower one suspicious
            self._write_idle()
        idle = self._idle
        if not idle.count:
            idle.invoke_ns = invoke_ns
        idle.count += 1
        idle.op, idle.complete_ns = op, complete_ns
        self._known = known
        if complete_ns - idle.invoke_ns >= IDLE_NS:
            self._write_idle()

    def _write_idle(self) -> None:
        """Write a row for each partition with a new watermark; without any, write one row without a partition."""
        idle, self._idle = self._idle, _Idle()
        if not idle.count:
            return
        news = {
            number: known for number, known in self._known.items() if known != self._written.get(number, Watermarks())
        }
        self._written |= news
        for partition, known in (news or {-1: Watermarks()}).items():
            row = _with_watermarks(HistoryRow("idle", "ok", self._topic, partition, count=idle.count), known)
            self._append(row, idle.op, idle.invoke_ns, idle.complete_ns)

    def _append(self, row: HistoryRow, op: int, invoke_ns: int, complete_ns: int) -> None:
        row = row._replace(op=op, invoke_ns=invoke_ns, complete_ns=complete_ns)
        self._recorder.history.append(row._replace(phase=self._phase, session=self._session))

    def __repr__(self) -> str:
        return f"PartitionReader({self._topic}, session={self._session}, next={self._next})"


def _with_watermarks(row: HistoryRow, known: Watermarks) -> HistoryRow:
    return row._replace(high_watermark=known.high_watermark, last_stable_offset=known.last_stable_offset)
