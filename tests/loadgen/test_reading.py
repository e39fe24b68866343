"""Reading by assignment: in order, never reset, a broken assignment is made again from the very next offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.seams.clock import ManualClock
from loadgen.clients.base import PolledRecords, Watermarks
from loadgen.reading import IDLE_NS, REASSIGN_NS, PartitionReader
from loadgen.recorder import CountedRequest, Recorder
from loadgen.spans import ReadRecord
from tests.loadgen.fakes import FakeReader
from verifier.evidence.history import read_history
from verifier.evidence.sequenced_value import encode

RUN = 3


class Bench:
    """One reader on a fake client."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "readers.arrow"
        self.clock = ManualClock()
        self.clock.advance_ms(1000)
        self.requests: list[CountedRequest] = []
        self.recorder = Recorder("readers", self.path, self.clock, observer=self.requests.append)
        self.client = FakeReader()
        self.reader = self.another(self.client)

    def another(self, client: FakeReader) -> PartitionReader:
        return PartitionReader(
            topic="t", offsets={0: 0, 1: 0}, run_id=RUN, reader=client, recorder=self.recorder, clock=self.clock
        )

    def poll(self, *records: ReadRecord, errors: list[str] | None = None, broken: bool = False) -> None:
        self.client.answers.append(PolledRecords(list(records), errors or [], broken))
        self.reader.poll(100, 0)

    def rows(self) -> list[tuple[object, ...]]:
        names = ("f", "partition", "stream", "first_sequence", "last_sequence", "first_offset", "last_offset")
        return self.told(*names, "session", of=("poll", "note"))

    def told(self, *names: str, of: tuple[str, ...]) -> list[tuple[object, ...]]:
        """These columns of the rows of these kinds."""
        self.recorder.history.flush()
        return [tuple(row[name] for name in names) for row in read_history(self.path).to_pylist() if row["f"] in of]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def record(partition: int, offset: int, stream: int = 0, sequence: int | None = None) -> ReadRecord:
    return ReadRecord(partition, offset, encode(RUN, stream, offset if sequence is None else sequence, 900_000_000))


def test_polls_are_recorded_in_the_order_of_delivery(bench: Bench) -> None:
    """One row per run, in order, within one session; Locust sees one request, of the oldest record's age."""
    bench.reader.start()
    bench.poll(record(1, 0), record(1, 1), record(0, 0), record(1, 2))
    bench.poll()
    assert bench.rows() == [
        ("poll", 1, 0, 0, 1, 0, 1, 1),
        ("poll", 0, 0, 0, 0, 0, 0, 1),
        ("poll", 1, 0, 2, 2, 2, 2, 1),
    ]
    assert bench.reader.next_offsets == {0: 1, 1: 3}
    assert [(request.name, request.latency_ms, request.size_bytes) for request in bench.requests] == [
        ("poll:t", 100.0, 4 * 48)
    ]
    assert bench.recorder.tally.total("read") == 4


def test_a_broken_assignment_is_made_again_from_the_next_offset(bench: Bench) -> None:
    """An error that stops a partition is noted; half a second later all is assigned again as a new session."""
    bench.reader.start()
    bench.poll(record(0, 0), errors=["partition 0: _AUTO_OFFSET_RESET"], broken=True)
    bench.poll(record(1, 0))
    assert len(bench.client.assignments) == 1
    bench.clock.advance_ms(REASSIGN_NS / 1e6)
    bench.poll(record(0, 1))
    assert bench.client.assignments == [{0: 0, 1: 0}, {0: 1, 1: 1}]
    assert [(row[0], row[5], row[7]) for row in bench.rows()] == [
        ("poll", 0, 1),
        ("note", -1, 1),
        ("poll", 0, 1),
        ("poll", 1, 2),
    ]


def test_an_error_that_breaks_nothing_is_only_noted(bench: Bench) -> None:
    """librdkafka goes on by itself after a lost connection; the same text is written once a second, counted always."""
    bench.reader.start()
    for _ in range(5):
        bench.clock.advance_ms(300)
        bench.poll(errors=["_TRANSPORT: lost"])
    bench.clock.advance_ms(REASSIGN_NS / 1e6)
    bench.poll()
    assert len(bench.client.assignments) == 1
    assert [row[0] for row in bench.rows()] == ["note", "note"]
    assert bench.recorder.tally.total("errors") == 5


def test_sessions_of_two_readers_do_not_mix(bench: Bench) -> None:
    """Readers of one process share its history: an assignment's number is given once."""
    other = bench.another(FakeReader())
    bench.reader.start()
    other.start()
    bench.reader.start()
    assert (bench.reader.session, other.session) == (3, 2)


def test_values_that_do_not_decode_count_as_errors(bench: Bench) -> None:
    """Damage is seen at once, also before the verifier runs."""
    bench.reader.start()
    bench.poll(ReadRecord(0, 0, b"x"), ReadRecord(0, 1, b"y"))
    assert bench.rows() == [("poll", 0, -1, -1, -1, 0, 1, 1)]
    assert bench.recorder.tally.total("errors") == 2
    assert bench.requests == []


def test_an_assignment_is_on_record_before_the_client_has_it(bench: Bench) -> None:
    """Where each partition is read from, under which session: a poll is judged by that, also after a new assignment."""
    bench.reader.start()
    bench.poll(record(1, 0), record(1, 1), errors=["partition 0: _AUTO_OFFSET_RESET"], broken=True)
    bench.clock.advance_ms(REASSIGN_NS / 1e6)
    bench.poll(record(1, 2))
    assert bench.told("f", "type", "partition", "first_offset", "last_offset", "session", of=("assign",)) == [
        ("assign", "ok", 0, 0, 0, 1),
        ("assign", "ok", 1, 0, 0, 1),
        ("assign", "ok", 0, 0, 0, 2),
        ("assign", "ok", 1, 2, 2, 2),
    ]


def test_what_one_poll_brought_has_one_number(bench: Bench) -> None:
    """Rows of a poll share ``op``; each call of any reader of the process has its own."""
    bench.reader.start()
    other = bench.another(FakeReader([PolledRecords([record(0, 7)], [], broken=False)]))
    bench.poll(record(1, 0), record(0, 0), record(1, 1))
    other.poll(100, 0)
    bench.poll(record(0, 1))
    assert bench.told("partition", "first_offset", "op", of=("poll",)) == [
        (1, 0, 2), (0, 0, 2), (1, 1, 2), (0, 7, 3), (0, 1, 4),
    ]  # fmt: skip


def test_empty_polls_are_summed_up(bench: Bench) -> None:
    """One row for those in a row, written when something comes, after a second, and at the end; none for none."""
    bench.reader.start()
    for _ in range(3):
        bench.clock.advance_ms(5)
        bench.poll()
    bench.poll(record(0, 0))
    bench.poll(record(0, 1))
    for _ in range(4):
        bench.poll()
        bench.clock.advance_ms(IDLE_NS / 2e6)
    bench.reader.finish()
    bench.reader.finish()
    columns = ("partition", "count", "op", "session", "invoke_ns", "complete_ns")
    second = 10**9
    assert bench.told(*columns, of=("idle",)) == [
        (-1, 3, 4, 1, second + 5_000_000, second + 15_000_000),
        (-1, 3, 9, 1, second + 15_000_000, 2 * second + 15_000_000),
        (-1, 1, 10, 1, 2 * second + 515_000_000, 2 * second + 515_000_000),
    ]


def test_watermarks_are_told_as_the_client_knows_them(bench: Bench) -> None:
    """With each poll, for the partitions of its records; with empty polls, for those of which something is new;
    none is forgotten because a lower one came."""
    names = ("f", "partition", "high_watermark", "last_stable_offset")
    bench.client.known = {0: Watermarks(4, 2)}
    bench.reader.start()
    bench.poll(record(0, 0), record(1, 0))
    bench.poll()
    bench.poll(record(1, 1))
    bench.client.known = {0: Watermarks(5, 5), 1: Watermarks(9)}
    bench.poll()
    bench.client.known[1] = Watermarks(8)
    bench.poll()
    bench.reader.finish()
    assert bench.told(*names, of=("poll", "idle")) == [
        ("poll", 0, 4, 2),
        ("poll", 1, -1, -1),
        ("idle", -1, -1, -1),
        ("poll", 1, -1, -1),
        ("idle", 0, 5, 5),
        ("idle", 1, 9, -1),
        ("idle", 1, 8, -1),
    ]


def test_a_session_that_reads_what_is_committed_says_so_first(bench: Bench) -> None:
    """Before its first assignment, and again for each new session; a reader of everything says nothing."""
    bench.reader.start()
    assert bench.told("session", of=("isolation",)) == []
    reader = PartitionReader(
        topic="t", offsets={0: 0}, run_id=RUN, reader=FakeReader(), recorder=bench.recorder, clock=bench.clock,
        is_committed=True,
    )  # fmt: skip
    reader.start()
    reader.start()
    assert bench.told("f", "type", "session", of=("isolation", "assign"))[2:] == [
        ("isolation", "ok", 2), ("assign", "ok", 2), ("isolation", "ok", 3), ("assign", "ok", 3),
    ]  # fmt: skip


def test_ends_are_recorded_as_they_were_told(bench: Bench) -> None:
    """One row for each partition in the answer, under the session; no row without an answer."""
    bench.reader.start()
    bench.reader.ask_ends()
    bench.client.ends = {1: 7}
    bench.reader.ask_ends()
    bench.poll()
    assert bench.told("partition", "first_offset", "last_offset", "session", "phase", of=("end-offset",)) == [
        (1, 7, 7, 1, "load")
    ]
