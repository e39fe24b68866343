"""Records the events of a member as rows of the history (docs/history.md "Groups"). Owns the numbers of sessions.

A session is a set of partitions that were assigned at the same time. Does not own the rows of a poll
(``loadgen.spans``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from loadgen.clients.base import Watermarks
from loadgen.members.events import (
    Assigned,
    Committed,
    Delivered,
    Failed,
    MemberEvent,
    PositionKnown,
    Revoked,
    Transacted,
)
from loadgen.recorder import Recorder
from loadgen.spans import PolledRows, ReadRecord, coalesce_records
from verifier.evidence.history import HistoryRow


class MemberRecording:
    """Records one consumer in a group, from its start to its end."""

    def __init__(self, recorder: Recorder, group: str, topic: str, run_id: int) -> None:
        self._recorder = recorder
        self._group = group
        self._topic = topic
        self._run_id = run_id
        #: partition -> the session and the time in which it was assigned
        self._sessions: dict[int, tuple[int, int]] = {}
        self._resumed: set[int] = set()
        self._newest = -1

    def __repr__(self) -> str:
        return f"MemberRecording({self._group}, {self._sessions})"

    @property
    def partitions(self) -> list[int]:
        """The partitions that the member has."""
        return sorted(self._sessions)

    def record(self, events: Iterable[MemberEvent]) -> bool:
        """Record these events in order. Returns whether the consumer can continue."""
        continues = True
        for event in events:
            match event:
                case Assigned():
                    self._assigned(event)
                case PositionKnown():
                    self._begins(event)
                case Delivered():
                    self._delivered(event)
                case Committed():
                    self._committed(event)
                case Revoked():
                    self._revoked(event)
                case Transacted():
                    self._transacted(event)
                case Failed():
                    self._recorder.error(event.text, topic=self._topic)
                    continues = continues and not event.is_final
        return continues

    def ended(self, how: str, now_ns: int) -> None:
        """Record that the consumer has ended, and that it lost the partitions that it still had."""
        row = HistoryRow("leave", "ok", invoke_ns=now_ns, complete_ns=now_ns, error=how, session=self._newest)
        self._recorder.history.append(row)
        self._sessions.clear()

    def _assigned(self, event: Assigned) -> None:
        session = self._newest = self._recorder.next_session()
        row = HistoryRow(
            "member",
            "ok",
            invoke_ns=event.time_ns,
            complete_ns=event.time_ns,
            incarnation=event.generation,
            error=f"{self._group} {event.member_id}",
            session=session,
        )
        self._recorder.history.append(row)
        for partition in event.partitions:
            self._sessions[partition] = session, event.time_ns
            self._resumed.discard(partition)

    def _begins(self, event: PositionKnown) -> None:
        self._resumed.add(event.partition)
        row = self._row("resume", event.partition, event.offset, event.begin_ns, event.end_ns)
        self._recorder.history.append(row)

    def _delivered(self, event: Delivered) -> None:
        by_partition: dict[int, list[ReadRecord]] = defaultdict(list)
        for record in event.records:
            by_partition[record.partition].append(record)
        op = self._recorder.next_op()
        for partition, records in by_partition.items():
            session, assigned_ns = self._sessions.get(partition, (-1, event.begin_ns))
            if partition not in self._resumed:
                # the client did not report its position before the first record
                self._begins(PositionKnown(partition, records[0].offset, assigned_ns, event.end_ns))
            polled = coalesce_records(
                records,
                topic=self._topic,
                run_id=self._run_id,
                invoke_ns=event.begin_ns,
                complete_ns=event.end_ns,
                session=session,
                op=op,
            )
            known = event.watermarks.get(partition, Watermarks())
            rows = [
                row._replace(high_watermark=known.high_watermark, last_stable_offset=known.last_stable_offset)
                for row in polled.rows
            ]
            size_bytes = sum(len(record.value or b"") for record in records)
            self._recorder.polled(self._topic, PolledRows(rows, polled.send_times_ns, polled.undecodable), size_bytes)

    def _committed(self, event: Committed) -> None:
        for partition, offset in event.offsets.items():
            row = self._row("offset-commit", partition, offset, event.begin_ns, event.end_ns)
            row = row._replace(type=event.outcome, incarnation=event.generation, error=event.error)
            self._recorder.history.append(row)

    def _transacted(self, event: Transacted) -> None:
        append, op = self._recorder.history.append, self._recorder.next_op()
        append(HistoryRow("begin", "ok", invoke_ns=event.begin_ns, complete_ns=event.begin_ns, op=op))
        for partition, (first, last) in event.inputs.items():
            row = self._row("offsets", partition, first, *event.added_ns)
            append(row._replace(type=event.added, last_offset=last, error=event.error, op=op))
        for end in event.ends:
            row = HistoryRow(end.f, end.outcome, invoke_ns=end.begin_ns, complete_ns=end.end_ns)
            append(row._replace(error=end.error, op=op))

    def _revoked(self, event: Revoked) -> None:
        for partition, offset in event.offsets.items():
            row = self._row("revoke", partition, offset, event.time_ns, event.time_ns)
            self._recorder.history.append(row._replace(error="lost" if event.is_lost else None))
        for partition in event.offsets:
            self._sessions.pop(partition, None)

    def _row(self, f: str, partition: int, offset: int, begin_ns: int, end_ns: int) -> HistoryRow:
        session, _ = self._sessions.get(partition, (-1, -1))
        return HistoryRow(
            f,  # type: ignore[arg-type]
            "ok",
            self._topic,
            partition,
            first_offset=offset,
            last_offset=offset,
            invoke_ns=begin_ns,
            complete_ns=end_ns,
            session=session,
        )
