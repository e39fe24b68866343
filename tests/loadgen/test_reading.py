"""Reading by assignment: in order, never reset, a broken assignment is made anew from the very next offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.seams.clock import ManualClock
from loadgen.clients.base import Polled
from loadgen.reading import REASSIGN_NS, PartitionReader
from loadgen.recorder import Recorder, Request
from loadgen.runs import ReadRecord
from tests.loadgen.fakes import FakeReader
from verifier.evidence.history import read_history
from verifier.evidence.values import encode

RUN = 3


class Bench:
    """One reader on a fake client."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "readers.arrow"
        self.clock = ManualClock()
        self.clock.advance_ms(1000)
        self.requests: list[Request] = []
        self.recorder = Recorder("readers", self.path, self.clock, observer=self.requests.append)
        self.client = FakeReader()
        self.reader = self.another(self.client)

    def another(self, client: FakeReader) -> PartitionReader:
        return PartitionReader(
            topic="t", offsets={0: 0, 1: 0}, run_id=RUN, reader=client, recorder=self.recorder, clock=self.clock
        )

    def poll(self, *records: ReadRecord, errors: list[str] | None = None, broken: bool = False) -> None:
        self.client.answers.append(Polled(list(records), errors or [], broken))
        self.reader.poll(100, 0)

    def rows(self) -> list[tuple[object, ...]]:
        self.recorder.history.flush()
        names = (
            "f",
            "partition",
            "stream",
            "first_sequence",
            "last_sequence",
            "first_offset",
            "last_offset",
            "session",
        )
        return [tuple(row[name] for name in names) for row in read_history(self.path).to_pylist()]


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


def test_a_broken_assignment_is_made_anew_from_the_next_offset(bench: Bench) -> None:
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
