"""A stream: reserved before sent, without gap at the source, every sequence accounted for exactly once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import ManualClock
from loadgen.choices import Sizes
from loadgen.clients.base import ClientCallbacks, ClientRefusal, Failure, ProducerClient, Retried
from loadgen.recorder import CountedRequest, Recorder
from loadgen.records import StreamRecords
from loadgen.stream import RETIRE_NS, ProducerStream
from tests.loadgen.fakes import TIMED_OUT, FakeProducer
from verifier.evidence.history import read_history
from verifier.evidence.sequenced_value import decode

RESERVE = 10
REFUSED = Failure("INVALID_RECORD: told", ErrorCode.INVALID_RECORD)


class Bench:
    """One stream on fake producers, its history in a file."""

    def __init__(self, directory: Path, acks: str = "all") -> None:
        self.path = directory / "producers.arrow"
        self.clock = ManualClock()
        self.requests: list[CountedRequest] = []
        self.recorder = Recorder("producers", self.path, self.clock, observer=self.requests.append)
        self.producers: list[FakeProducer] = []
        self.disposed: list[ProducerClient] = []
        self.stream = ProducerStream(
            stream=5,
            topic="t",
            partition=1,
            records=StreamRecords(9, 5, Sizes([48])),
            recorder=self.recorder,
            clock=self.clock,
            make_client=self.make_client,
            dispose=self.disposed.append,
            acks=acks,
            reserve_sequences=RESERVE,
        )

    def make_client(self, callbacks: ClientCallbacks) -> FakeProducer:
        self.producers.append(FakeProducer(callbacks))
        return self.producers[-1]

    @property
    def producer(self) -> FakeProducer:
        return self.producers[-1]

    def send(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance_ms(1)
            assert self.stream.send(self.clock.monotonic_ns())

    def rows(self, *functions: str) -> list[dict[str, Any]]:
        self.recorder.history.flush()
        return [row for row in read_history(self.path).to_pylist() if not functions or row["f"] in functions]

    def outcomes(self) -> dict[int, str]:
        """The outcome of every sequence; a sequence with two outcomes is an error."""
        found: dict[int, str] = {}
        for row in self.rows("send", "unsent"):
            for sequence in range(row["first_sequence"], row["last_sequence"] + 1):
                assert sequence not in found, f"sequence {sequence} has two outcomes"
                found[sequence] = row["type"]
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def reserved(bench: Bench) -> list[tuple[int, int]]:
    return [(row["first_sequence"], row["last_sequence"]) for row in bench.rows("reserve")]


def test_a_range_is_reserved_before_its_first_record_is_sent(bench: Bench) -> None:
    """The reservation is in the file when the client is handed the first record, without any further flush."""
    seen: list[tuple[int, int]] = []

    def produce(topic: str, partition: int, key: bytes | None, value: bytes, sequence: int) -> None:
        rows = read_history(bench.path).to_pylist()
        last = max(row["last_sequence"] for row in rows if row["f"] == "reserve")
        decoded = decode(value)
        assert decoded is not None
        seen.append((decoded.sequence, last))

    bench.producer.produce = produce  # type: ignore[method-assign]
    bench.send(2 * RESERVE + 1)
    assert seen == [(i, (i // RESERVE + 1) * RESERVE - 1) for i in range(2 * RESERVE + 1)]
    assert reserved(bench) == [(0, 9), (10, 19), (20, 29)]


def test_acknowledgements_become_runs_with_offsets(bench: Bench) -> None:
    """Records acknowledged in one poll with consecutive offsets are one row, one request and their own latencies."""
    bench.send(5)
    bench.producer.deliver(3, 100)
    bench.producer.deliver(2, 110)
    bench.clock.advance_ms(7)
    bench.stream.poll()
    rows = bench.rows("send")
    assert [
        (r["type"], r["first_sequence"], r["last_sequence"], r["first_offset"], r["last_offset"]) for r in rows
    ] == [
        ("ok", 0, 2, 100, 102),
        ("ok", 3, 4, 110, 111),
    ]
    assert [(r["invoke_ns"], r["complete_ns"]) for r in rows] == [(1_000_000, 12_000_000), (4_000_000, 12_000_000)]
    assert [(r.name, r.latency_ms, r.records, r.size_bytes, r.error) for r in bench.requests] == [
        ("produce:t:acks=all", 11.0, 3, 144, None),
        ("produce:t:acks=all", 8.0, 2, 96, None),
    ]
    point = bench.recorder.tally.point(bench.clock.monotonic_ns(), 0)
    assert (point.acked, point.latency_max_ms, point.latency_p50_ms) == (5, 11.0, 9.0)


def test_a_duplicate_answer_without_offset_is_ok_without_offset(bench: Bench) -> None:
    """DUPLICATE_SEQUENCE_NUMBER counts as done; the offsets librdkafka makes up (-1, 0, 1) are recorded as -1."""
    bench.send(5)
    bench.producer.deliver(3, -1)
    bench.producer.deliver(2, 42)
    bench.stream.poll()
    rows = bench.rows("send")
    assert [(r["type"], r["first_offset"], r["last_offset"]) for r in rows] == [("ok", -1, -1), ("ok", 42, 43)]


def test_without_acknowledgements_no_offset_is_believed(tmp_path: Path) -> None:
    """acks=0: the client says delivered, nobody knows where."""
    bench = Bench(tmp_path, acks="0")
    bench.send(2)
    bench.producer.deliver(2, 4)
    bench.stream.poll()
    assert [(r["type"], r["first_offset"]) for r in bench.rows("send")] == [("ok", -1)]


def test_a_delivery_error_is_unknown(bench: Bench) -> None:
    """A timed-out record may have been appended: info, with the client's error, and a failed request for Locust."""
    bench.send(3)
    bench.producer.fail(2, TIMED_OUT)
    bench.producer.deliver(1, 7)
    bench.stream.poll()
    assert [(r["type"], r["error"]) for r in bench.rows("send")] == [("info", "_MSG_TIMED_OUT: told"), ("ok", None)]
    assert bench.outcomes() == {0: "info", 1: "info", 2: "ok"}
    assert [request.error for request in bench.requests] == ["_MSG_TIMED_OUT: told", None]
    assert bench.stream.incarnation == 0


def test_a_refusal_by_a_broker_is_a_failure(bench: Bench) -> None:
    """Certainly not stored, says the client's table of codes: fail, counted as such, and the sequence goes on."""
    bench.send(2)
    bench.producer.fail(1, REFUSED)
    bench.producer.fail(1, Failure("NOT_LEADER", ErrorCode.NOT_LEADER_OR_FOLLOWER))
    bench.stream.poll()
    assert bench.outcomes() == {0: "fail", 1: "info"}
    tally = bench.recorder.tally
    assert (tally.total("failed"), tally.total("unknown"), tally.total("errors")) == (1, 1, 2)
    assert bench.stream.next_sequence == 2


def test_a_full_queue_loses_no_sequence(bench: Bench) -> None:
    """BufferError: the same sequence is offered again later."""
    bench.producer.capacity = 2
    bench.send(2)
    assert not bench.stream.send(5)
    bench.producer.deliver(1, 0)
    assert bench.stream.send(6)
    sequences = [value.sequence for value in map(decode, bench.producer.values) if value]
    assert sequences == [0, 1, 2]


def test_a_refusal_is_recorded_once_a_second_and_loses_no_sequence(bench: Bench) -> None:
    """The client's own exception leaves the sequence ours; the history is not flooded."""
    bench.producer.refuse = ClientRefusal(Failure("_UNKNOWN_PARTITION: told"))
    for _ in range(20):
        bench.clock.advance_ms(100)
        assert not bench.stream.send(bench.clock.monotonic_ns())
    assert [row["error"].split(":")[1].strip() for row in bench.rows("note")] == ["_UNKNOWN_PARTITION"] * 2
    bench.producer.refuse = None
    bench.send(1)
    assert bench.stream.next_sequence == 1


def test_a_retry_is_about_what_was_outstanding(bench: Bench) -> None:
    """The client's own range, or else all that was outstanding; a lost connection is told with it, or with nothing."""
    bench.send(6)
    bench.producer.deliver(2, 0)
    bench.stream.poll()
    callbacks = bench.producer.callbacks
    callbacks.on_retry(Retried("NETWORK_EXCEPTION", 2, 3, 4))
    callbacks.on_retry(Retried("Local: Timed out", 3))
    callbacks.on_disconnect("gone", 2)
    bench.producer.deliver(4, 2)
    bench.stream.poll()
    callbacks.on_disconnect("gone", 2)
    callbacks.on_retry(Retried("too late", 1))
    rows = bench.rows("retry", "disconnect")
    assert [(r["f"], r["first_sequence"], r["last_sequence"], r["count"], r["error"]) for r in rows] == [
        ("retry", 3, 4, 2, "retry: NETWORK_EXCEPTION"),
        ("retry", 2, 5, 3, "retry: Local: Timed out"),
        ("disconnect", 2, 5, 2, "disconnect: gone"),
        ("disconnect", -1, -1, 2, "disconnect: gone"),
    ]
    assert [(r["invoke_ns"], r["complete_ns"]) for r in rows[:2]] == [(4_000_000, 6_000_000), (3_000_000, 6_000_000)]


def test_a_fatal_error_starts_a_new_incarnation(bench: Bench) -> None:
    """Counted; the old instance is purged and heard out, its outstanding is info; the sequence goes on without gap."""
    bench.send(4)
    first = bench.producer
    first.deliver(1, 0)
    first.fail(1, TIMED_OUT._replace(is_fatal=True))
    bench.stream.poll()
    assert first.purged and not bench.stream.send(0)
    bench.stream.poll()
    bench.stream.poll()
    assert bench.disposed == [first]
    assert bench.stream.incarnation == 1
    bench.send(1)
    bench.producer.deliver(1, 3)
    bench.stream.poll()
    assert bench.outcomes() == {0: "ok", 1: "info", 2: "info", 3: "info", 4: "ok"}
    assert [row["incarnation"] for row in bench.rows("send") if row["type"] == "ok"] == [0, 1]
    assert [(row["type"], row["incarnation"]) for row in bench.rows("incarnation")] == [("invoke", 0), ("invoke", 1)]
    assert bench.recorder.tally.total("fatal") == 1
    assert decode(bench.producer.values[0]).sequence == 4  # type: ignore[union-attr]


def test_an_instance_that_stays_silent_is_replaced_after_a_while(bench: Bench) -> None:
    """Retirement is bounded: what an instance never reports is info, and a late report touches nothing."""
    bench.send(2)
    silent = bench.producer
    silent.purge = lambda: None  # type: ignore[method-assign]
    silent.callbacks.on_error(Failure("_FATAL", is_fatal=True))
    bench.stream.poll()
    bench.stream.poll()
    assert bench.stream.incarnation == 0
    bench.clock.advance_ms(RETIRE_NS / 1e6)
    bench.stream.poll()
    assert bench.stream.incarnation == 1
    silent.deliver(2, 50)
    silent.poll()
    bench.stream.poll()
    assert bench.outcomes() == {0: "info", 1: "info"}


def test_a_fatal_refusal_starts_a_new_incarnation_too(bench: Bench) -> None:
    """produce() raising the fatal error is the same as hearing of it."""
    bench.producer.refuse = ClientRefusal(Failure("_FATAL: broken", is_fatal=True))
    assert not bench.stream.send(1)
    bench.stream.poll()
    bench.stream.poll()
    assert bench.stream.incarnation == 1
    bench.send(1)
    assert bench.recorder.tally.total("fatal") == 1


def test_producer_id_and_epoch_are_recorded_when_known(bench: Bench) -> None:
    """-1 until the statistics tell; a change is a row of its own."""
    bench.send(1)
    bench.producer.deliver(1, 0)
    bench.stream.poll()
    bench.producer.callbacks.on_identity(4000, 0)
    bench.send(1)
    bench.producer.deliver(1, 1)
    bench.stream.poll()
    rows = [(row["f"], row["producer_id"], row["producer_epoch"]) for row in bench.rows("send", "incarnation")]
    assert rows == [("incarnation", -1, -1), ("send", -1, -1), ("incarnation", 4000, 0), ("send", 4000, 0)]


def test_a_second_report_of_a_record_is_noted_and_changes_nothing(bench: Bench) -> None:
    """The first word stands; that the client spoke twice is worth a row."""
    bench.send(1)
    bench.producer.deliver(1, 8)
    bench.stream.poll()
    bench.producer.callbacks.on_delivery(0, TIMED_OUT, 9)
    bench.stream.poll()
    assert bench.outcomes() == {0: "ok"}
    assert "not outstanding" in bench.rows("note")[0]["error"]


def test_close_accounts_for_everything(bench: Bench) -> None:
    """At the end: acknowledged is ok, outstanding is info, reserved and never handed over is fail; twice is once."""
    bench.send(4)
    bench.producer.deliver(2, 0)
    bench.stream.close()
    bench.stream.close()
    outcomes = bench.outcomes()
    assert [outcomes[i] for i in range(RESERVE)] == ["ok", "ok", "info", "info", *["fail"] * 6]
    assert len(outcomes) == RESERVE
    assert bench.disposed == [bench.producer]
    assert not bench.stream.send(1)
    bench.stream.poll()
    assert bench.recorder.tally.total("failed") == 0


def test_a_stream_that_never_sent_leaves_no_send_rows(bench: Bench) -> None:
    """Nothing reserved, nothing to account for."""
    bench.stream.close()
    assert bench.rows("send", "reserve") == []


class StreamMachine(RuleBasedStateMachine):
    """Any order of sends, acknowledgements, errors, fatal errors, silence and time."""

    def __init__(self) -> None:
        super().__init__()
        from tempfile import TemporaryDirectory

        self.directory = TemporaryDirectory()
        self.bench = Bench(Path(self.directory.name))
        self.offset = 0
        self.acknowledged: dict[int, int] = {}

    @rule(count=st.integers(1, 15))
    def send(self, count: int) -> None:
        for _ in range(count):
            self.bench.clock.advance_ms(1)
            self.bench.stream.send(self.bench.clock.monotonic_ns())

    @precondition(lambda self: self.bench.producer.queue)
    @rule(count=st.integers(1, 8), known=st.booleans(), gap=st.integers(0, 2))
    def deliver(self, count: int, known: bool, gap: int) -> None:
        sequences = self.bench.producer.queue[:count]
        self.offset += gap
        self.bench.producer.deliver(count, self.offset if known else -1)
        for sequence in sequences:
            self.acknowledged[sequence] = self.offset if known else -1
            self.offset += 1

    @precondition(lambda self: self.bench.producer.queue)
    @rule(count=st.integers(1, 8), fatal=st.booleans(), failure=st.sampled_from([TIMED_OUT, REFUSED]))
    def fail(self, count: int, fatal: bool, failure: Failure) -> None:
        self.bench.producer.fail(count, failure._replace(is_fatal=fatal))

    @rule()
    def fatal_without_a_record(self) -> None:
        self.bench.producer.callbacks.on_error(Failure("_FATAL", is_fatal=True))

    @rule(capacity=st.sampled_from([0, 5, 10**9]))
    def capacity(self, capacity: int) -> None:
        self.bench.producer.capacity = capacity

    @rule(milliseconds=st.sampled_from([1, 600, 1500]))
    def poll(self, milliseconds: int) -> None:
        self.bench.clock.advance_ms(milliseconds)
        self.bench.stream.poll()

    @invariant()
    def the_source_has_no_gap(self) -> None:
        """What was handed to the clients, one after the other, is 0, 1, 2 ..."""
        handed = [decode(value) for producer in self.bench.producers for value in producer.values]
        assert [value.sequence for value in handed if value] == list(range(self.bench.stream.next_sequence))

    def teardown(self) -> None:
        with self.directory:
            self.account()

    def account(self) -> None:
        """At the end every reserved sequence has one outcome, and what is ok was acknowledged, at that offset."""
        self.bench.stream.close()
        self.bench.recorder.close()
        handed = self.bench.stream.next_sequence
        ranges = reserved(self.bench)
        outcomes = self.bench.outcomes()
        counted = Counter(outcomes.values())
        assert [first for first, _ in ranges] == [i * RESERVE for i in range(len(ranges))]
        # a range may be reserved for a record that the client then does not take
        assert max(0, len(ranges) - 1) * RESERVE <= handed <= len(ranges) * RESERVE
        assert sorted(outcomes) == list(range(len(ranges) * RESERVE))
        tally = self.bench.recorder.tally
        assert counted["fail"] == len(ranges) * RESERVE - handed + tally.total("failed")
        assert (counted["ok"], counted["info"]) == (tally.total("acked"), tally.total("unknown"))
        for row in self.bench.rows("send"):
            for step in range(row["last_sequence"] - row["first_sequence"] + 1):
                if row["type"] == "ok" and row["first_offset"] >= 0:
                    assert self.acknowledged[row["first_sequence"] + step] == row["first_offset"] + step
                if row["type"] == "ok":
                    assert row["first_sequence"] + step in self.acknowledged


TestStreamMachine = StreamMachine.TestCase
TestStreamMachine.settings = hypothesis_settings(stateful_step_count=30)
