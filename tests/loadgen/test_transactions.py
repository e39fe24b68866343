"""A transactional producer of the load: what its history says about each transaction, whatever its client says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import ManualClock
from loadgen.choices import Sizes
from loadgen.clients.base import ClientCallbacks, ClientRefusal, Failure, ProducerClient, Retried
from loadgen.clients.transactional import Remedy, TransactionRefusal, tag_of
from loadgen.recorder import Recorder
from loadgen.records import StreamRecords
from loadgen.stream import ProducerStream
from loadgen.transactions import TransactionalProducer
from tests.loadgen.fakes import FakeProducer
from verifier.evidence.history import read_history
from verifier.transactions.client_rows import ABORTED, COMMITTED, UNKNOWN, client_evidence

TIMED_OUT = TransactionRefusal("_TIMED_OUT: told", Remedy.REPEAT, is_certain=False)
ABORTABLE = TransactionRefusal("_FAIL: told", Remedy.ABORT, is_certain=True)
DOUBTFUL = TransactionRefusal("_FAIL: told", Remedy.ABORT, is_certain=False)
FENCED = TransactionRefusal("PRODUCER_FENCED: told", Remedy.REPLACE, is_certain=True)


class FakeTransactional(FakeProducer):
    """Its calls are answered by ``answers``, one each; without one they succeed."""

    def __init__(self, callbacks: ClientCallbacks) -> None:
        super().__init__(callbacks)
        self.answers: list[TransactionRefusal] = []
        self.calls: list[str] = []

    def initialize(self) -> None:
        self._call("initialize")
        self.callbacks.on_identity(1000, len(self.calls) - 1)

    def begin(self) -> None:
        self._call("begin")

    def occupy(self, topic: str) -> None:
        self._call(f"occupy {topic}")

    def commit(self) -> None:
        self._call("commit")

    def abort(self) -> None:
        self._call("abort")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.answers and name != "initialize":
            raise self.answers.pop(0)


class Bench:
    """One producer of two streams, 4 and 5, on fake clients."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "producers.arrow"
        self.clock = ManualClock()
        self.recorder = Recorder("producers", self.path, self.clock)
        self.clients: list[FakeTransactional] = []
        self.disposed: list[ProducerClient] = []
        self.is_over = False
        self.producer = TransactionalProducer(
            streams=[4, 5],
            make_stream=self.make_stream,
            make_client=self.make_client,
            dispose=self.disposed.append,
            recorder=self.recorder,
            clock=self.clock,
            call=self.call,
            is_over=lambda _since_ns: self.is_over,
        )

    def make_client(self, callbacks: ClientCallbacks) -> FakeTransactional:
        self.clients.append(FakeTransactional(callbacks))
        return self.clients[-1]

    def make_stream(self, number: int, make: Any, dispose: Callable[[ProducerClient], None]) -> ProducerStream:
        return ProducerStream(
            stream=number, topic="t", partition=number, records=StreamRecords(9, number, Sizes([48])),
            recorder=self.recorder, clock=self.clock, make_client=make, dispose=dispose, reserve_sequences=10,
        )  # fmt: skip

    def call(self, is_cooperative: bool, work: Callable[[], None]) -> TransactionRefusal | None:
        assert is_cooperative
        self.clock.advance_ms(1)
        try:
            work()
        except TransactionRefusal as refusal:
            return refusal
        return None

    @property
    def client(self) -> FakeTransactional:
        return self.clients[-1]

    def poll(self) -> None:
        for stream in self.producer.streams:
            stream.poll()

    def begin(self) -> None:
        """As a writer does: the first look initializes."""
        while not self.producer.is_ready():
            self.poll()
        assert self.producer.begin()

    def send(self) -> None:
        """One record to each stream."""
        for stream in self.producer.streams:
            assert stream.send(self.clock.monotonic_ns())

    def acknowledge(self) -> None:
        self.client.deliver(len(self.client.queue), 70)
        self.poll()

    def rows(self, *functions: str) -> list[dict[str, Any]]:
        self.recorder.history.flush()
        return [row for row in read_history(self.path).to_pylist() if row["f"] in functions]

    def ends(self) -> list[tuple[str, str, int]]:
        return [(row["f"], row["type"], row["op"]) for row in self.rows("begin", "commit", "abort")]

    def outcomes(self) -> list[str]:
        """As the verifier reads them."""
        self.recorder.history.flush()
        return [each.outcome for each in client_evidence(read_history(self.path).to_pylist()).transactions]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_records_carry_the_number_of_their_transaction(bench: Bench) -> None:
    """Over all streams, each with its own sequence; the end is known by the time at which it was asked for."""
    for _ in range(2):
        bench.begin()
        bench.send()
        bench.acknowledge()
        bench.producer.end("commit")
    assert bench.client.queue == [] and bench.client.calls == ["initialize", "begin", "commit", "begin", "commit"]
    assert [(row["op"], row["stream"], row["first_sequence"], row["type"]) for row in bench.rows("send")] == [
        (1, 4, 0, "ok"), (1, 5, 0, "ok"), (2, 4, 1, "ok"), (2, 5, 1, "ok"),
    ]  # fmt: skip
    assert bench.ends() == [("begin", "ok", 1), ("commit", "ok", 1), ("begin", "ok", 2), ("commit", "ok", 2)]
    commit = bench.rows("commit")[0]
    assert commit["complete_ns"] - commit["invoke_ns"] == 1_000_000
    assert (commit["topic"], commit["partition"], commit["stream"], commit["producer_id"]) == ("", -1, -1, 1000)
    assert bench.outcomes() == [COMMITTED, COMMITTED]


def test_the_same_call_is_repeated_until_it_has_an_outcome(bench: Bench) -> None:
    """A timeout is no outcome: one row, from the first call to the answer of the last."""
    bench.begin()
    bench.send()
    bench.acknowledge()
    bench.client.answers = [TIMED_OUT, TIMED_OUT]
    bench.producer.end("commit")
    assert bench.client.calls[2:] == ["commit"] * 3
    (row,) = bench.rows("commit")
    assert (row["type"], row["complete_ns"] - row["invoke_ns"]) == ("ok", 3_000_000)


def test_a_commit_that_is_given_up_has_an_unknown_outcome(bench: Bench) -> None:
    """The producer is replaced by one of the same id, whose initialization ends what is open; nobody knows how."""
    bench.begin()
    bench.send()
    bench.acknowledge()
    bench.is_over, bench.client.answers = True, [TIMED_OUT]
    bench.producer.end("commit")
    assert not bench.producer.is_open
    bench.is_over = False
    bench.begin()
    assert len(bench.clients) == 2 and bench.disposed == [bench.clients[0]]
    assert bench.ends() == [("begin", "ok", 1), ("commit", "info", 1), ("abort", "info", 1), ("begin", "ok", 2)]
    assert bench.outcomes() == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(("refusal", "known"), [(ABORTABLE, ABORTED), (DOUBTFUL, UNKNOWN)])
def test_what_cannot_be_committed_is_aborted(bench: Bench, refusal: TransactionRefusal, known: str) -> None:
    """Whether the commit may have happened nevertheless is its client's word; the producer remains."""
    bench.begin()
    bench.send()
    bench.acknowledge()
    bench.client.answers = [refusal]
    bench.producer.end("commit")
    told = "fail" if refusal.is_certain else "info"
    assert bench.ends()[1:] == [("commit", told, 1), ("abort", "ok", 1)]
    assert bench.outcomes() == [known]
    bench.begin()
    assert len(bench.clients) == 1


def test_a_record_that_failed_dooms_its_transaction(bench: Bench) -> None:
    """It is aborted without a commit that would be asked for in vain; the other records keep their outcomes."""
    bench.begin()
    bench.send()
    bench.client.fail(1, Failure("_MSG_TIMED_OUT: told", ErrorCode.REQUEST_TIMED_OUT))
    bench.acknowledge()
    assert bench.producer.is_doomed
    bench.producer.end("commit")
    assert bench.client.calls == ["initialize", "begin", "abort"]
    assert [(row["stream"], row["type"]) for row in bench.rows("send")] == [(4, "info"), (5, "ok")]
    assert bench.outcomes() == [ABORTED]
    bench.begin()
    assert not bench.producer.is_doomed


def test_a_fenced_producer_is_replaced_and_accuses_no_one(bench: Bench) -> None:
    """Its commit certainly failed; what it had outstanding is unknown, under the number of its own transaction."""
    bench.begin()
    bench.send()
    bench.client.answers = [FENCED]
    bench.producer.end("commit")
    bench.begin()
    bench.send()
    assert len(bench.clients) == 2
    told = sorted((row["op"], row["stream"], row["type"]) for row in bench.rows("send"))
    assert told == [(1, 4, "info"), (1, 5, "info")]
    assert bench.ends() == [("begin", "ok", 1), ("commit", "fail", 1), ("abort", "info", 1), ("begin", "ok", 2)]
    assert bench.outcomes() == [ABORTED, UNKNOWN]


def test_a_producer_that_fails_by_itself_takes_its_transaction_along(bench: Bench) -> None:
    """No commit was asked for, so none can have happened: the verifier may hold that against readers."""
    bench.begin()
    bench.send()
    bench.client.callbacks.on_error(Failure("PRODUCER_FENCED: told", is_fatal=True))
    bench.poll()
    assert not bench.producer.is_open
    bench.producer.end("commit")
    assert bench.ends() == [("begin", "ok", 1), ("abort", "info", 1)]
    assert bench.outcomes() == [ABORTED]


def test_another_producer_takes_over_and_leaves_the_rest_to_the_cluster(bench: Bench) -> None:
    """It is initialized with the same factory and disposed of; the zombie knows nothing of it before it is refused."""
    bench.begin()
    bench.send()
    bench.producer.take_over()
    zombie, other = bench.clients
    assert (zombie.calls, other.calls, bench.disposed) == (["initialize", "begin"], ["initialize"], [other])
    assert bench.producer.is_open and [row["error"] for row in bench.rows("note")] == [
        "another producer takes over from instance 0"
    ]
    bench.send()
    zombie.answers = [FENCED]
    bench.producer.end("commit")
    bench.begin()
    assert bench.clients[-1].calls == ["initialize", "begin"] and len(bench.clients) == 3
    assert bench.outcomes() == [ABORTED, UNKNOWN]


def test_one_that_takes_over_late_has_a_transaction_until_the_zombie_has_ended(bench: Bench) -> None:
    """The zombie asks to commit while another one has its id, and a transaction open."""
    bench.begin()
    bench.send()
    bench.acknowledge()
    bench.producer.take_over(occupies=True)
    zombie, other = bench.clients
    assert (other.calls, bench.disposed) == (["initialize", "begin", "occupy t"], [])
    zombie.answers = [FENCED]
    bench.producer.end("commit")
    assert zombie.calls[-1] == "commit" and bench.disposed[0] is other
    assert bench.outcomes() == [ABORTED]


def test_a_fatal_answer_to_the_beginning_begins_nothing(bench: Bench) -> None:
    """No row of a transaction that never was."""
    while not bench.producer.is_ready():
        bench.poll()
    bench.client.answers = [FENCED]
    assert not bench.producer.begin()
    assert bench.ends() == [] and not bench.producer.is_open
    bench.begin()
    assert len(bench.clients) == 2


def test_streams_keep_in_step(bench: Bench) -> None:
    """What one stream lacks of a round when its transaction ends is never sent: the next one begins level."""
    bench.begin()
    first, second = bench.producer.streams
    assert first.send(0)
    bench.client.refuse = ClientRefusal(Failure("INVALID_RECORD: told", ErrorCode.INVALID_RECORD))
    assert not second.send(0)
    bench.client.refuse = None
    assert bench.producer.is_doomed
    bench.producer.end("commit")
    bench.client.fail(1, Failure("_PURGE_QUEUE: told", ErrorCode.REQUEST_TIMED_OUT))
    bench.poll()
    bench.begin()
    assert (first.next_sequence, second.next_sequence) == (1, 1)
    assert [(row["stream"], row["first_sequence"], row["last_sequence"]) for row in bench.rows("unsent")] == [(5, 0, 0)]


def test_a_retry_is_told_to_the_stream_that_it_concerns(bench: Bench) -> None:
    """By the tag of its records; where the client does not say which they were, to all."""
    bench.begin()
    bench.send()
    bench.send()
    bench.client.callbacks.on_retry(Retried("again", 2, tag_of(1, 0), tag_of(1, 1)))
    bench.poll()
    assert [(row["stream"], row["first_sequence"], row["last_sequence"]) for row in bench.rows("retry")] == [(5, 0, 1)]
    bench.client.callbacks.on_retry(Retried("again", 1))
    bench.poll()
    assert [row["stream"] for row in bench.rows("retry")] == [5, 4, 5]


def test_one_client_is_disposed_of_once_when_its_last_stream_is_closed(bench: Bench) -> None:
    """However many streams share it."""
    first, second = bench.producer.streams
    first.close()
    assert bench.disposed == []
    second.close()
    assert bench.disposed == [bench.client]
