"""Reading by assignment: all partitions from given offsets, every record recorded in the order of delivery.

Owns the next offset of each partition and when an assignment is made anew. Does not own the client, nor how often it
is polled. An offset is never reset: a reader that cannot go on says so and asks again for the very same offset.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.seams.clock import Clock
from loadgen.clients.base import RecordReader
from loadgen.recorder import Recorder
from loadgen.runs import ReadRecord, coalesce_records
from verifier.evidence.history import Phase

REASSIGN_NS = 500_000_000


class PartitionReader:
    """Reads partitions of one topic with one consumer. Call ``start`` once, then ``poll`` as often as you like."""

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
    ) -> None:
        self._topic = topic
        self._next = dict(offsets)
        self._run_id = run_id
        self._reader = reader
        self._recorder = recorder
        self._clock = clock
        self._phase: Phase = phase
        self._session = -1
        self._reassign_ns: int | None = None

    @property
    def next_offsets(self) -> dict[int, int]:
        """For each partition the offset after the last record delivered."""
        return dict(self._next)

    @property
    def session(self) -> int:
        """The number of the present assignment; new after each error that broke the one before."""
        return self._session

    def start(self) -> None:
        """Assign all partitions at their next offsets, under a new session number."""
        self._session = self._recorder.next_session()
        self._reassign_ns = None
        self._reader.assign(self._topic, self._next)

    def poll(self, max_records: int, timeout_s: float) -> list[ReadRecord]:
        """One poll of the client, recorded. An error is noted, and half a second later the assignment made anew."""
        invoke_ns = self._clock.monotonic_ns()
        if self._reassign_ns is not None and invoke_ns >= self._reassign_ns:
            self.start()
        polled = self._reader.poll(max_records, timeout_s)
        if polled.records:
            self._record(polled.records, invoke_ns)
        for error in polled.errors:
            self._recorder.error(error, topic=self._topic, session=self._session)
        if polled.broken and self._reassign_ns is None:
            self._reassign_ns = self._clock.monotonic_ns() + REASSIGN_NS
        return polled.records

    def _record(self, records: list[ReadRecord], invoke_ns: int) -> None:
        rows = coalesce_records(
            records,
            topic=self._topic,
            run_id=self._run_id,
            invoke_ns=invoke_ns,
            complete_ns=self._clock.monotonic_ns(),
            session=self._session,
            phase=self._phase,
        )
        size_bytes = sum(len(record.value) for record in records if record.value is not None)
        self._recorder.polled(self._topic, rows, size_bytes)
        for partition, offset, _ in records:
            self._next[partition] = offset + 1

    def __repr__(self) -> str:
        return f"PartitionReader({self._topic}, session={self._session}, next={self._next})"
