"""What librdkafka does when a later batch is refused as out of order while the outcome of an earlier one is uncertain.

It raises its producer epoch and sends everything outstanding again under the new one, also what is in the log
(docs/reference/anomalies-and-bugs.md, librdkafka 4953). Java's client sends nothing behind a batch that is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import SystemClock
from loadgen.choices import Sizes
from loadgen.clients import confluent
from loadgen.recorder import Recorder
from loadgen.records import StreamRecords
from loadgen.stream import ProducerStream
from tests.loadgen.scripted_broker import Produced, ScriptedBroker, scripted
from verifier.evidence.history import read_history
from verifier.evidence.sequenced_value import decode

TOPIC = "t"
#: Every record is a batch of its own, as in a load that is slow.
CONFIG = {
    "request.timeout.ms": 20_000, "delivery.timeout.ms": 30_000, "retry.backoff.ms": 20, "linger.ms": 0,
    "batch.num.messages": 1,
}  # fmt: skip

NONE, NOT_LEADER = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class Elected:
    """A leader that is replaced and elected again: the script of a broker.

    It acknowledges the first batch. The next it takes and closes the connection instead of answering (or does not even
    take it). Three must come then over the next connection: the oldest have these ``answers``, and the others are
    judged as a leader does that has what was stored.
    """

    def __init__(self, *answers: ErrorCode, is_stored: bool = True) -> None:
        self.broker: ScriptedBroker | None = None
        self.lost = Event()
        self._answers, self._is_stored = answers, is_stored
        self._step = 0

    def __call__(self, waiting: list[Produced]) -> list[ErrorCode] | None:
        assert self.broker is not None
        if self._step == 1:
            self._step = 2
            if self._is_stored:
                self.broker.judge(waiting[0])
            self.lost.set()
            return None
        if self._step == 2:
            if len(waiting) < 3:
                return []
            self._step = 3
            return [*self._answers, *(self.broker.judge(each) for each in waiting[len(self._answers) :])]
        self._step = max(self._step, 1)
        return [self.broker.judge(each) for each in waiting]


class Bench:
    """A stream of the load to a broker, and its history."""

    def __init__(self, broker: ScriptedBroker, directory: Path) -> None:
        self._clock, self._file = SystemClock(), directory / "producers.arrow"
        self._recorder = Recorder("producers", self._file, self._clock)
        bootstrap = f"{broker.address[0]}:{broker.address[1]}"
        self.stream = ProducerStream(
            stream=3, topic=TOPIC, partition=0, records=StreamRecords(1, 3, Sizes([48])), recorder=self._recorder,
            clock=self._clock, make_client=confluent.producer_factory(bootstrap, "skipped", CONFIG, self._clock),
            dispose=lambda client: client.dispose(1.0),
        )  # fmt: skip

    def send(self, count: int) -> None:
        for _ in range(count):
            assert self.stream.send(self._clock.monotonic_ns())

    def until(self, condition: Callable[[], bool]) -> None:
        end_ns = self._clock.monotonic_ns() + 20 * 10**9
        while not condition():
            assert self._clock.monotonic_ns() < end_ns
            self.stream.poll()
            Event().wait(0.005)

    def close(self) -> list[dict[str, Any]]:
        """The rows of the history."""
        self.stream.close()
        self._recorder.close()
        return list(read_history(self._file).to_pylist())


def played(script: Elected, directory: Path) -> tuple[ScriptedBroker, list[dict[str, Any]]]:
    """Four records are sent to a broker with this script; it, and what the load recorded."""
    with scripted(TOPIC, script) as broker:
        script.broker = broker
        bench = Bench(broker, directory)
        bench.send(1)
        bench.until(lambda: not bench.stream.outstanding)
        bench.send(1)
        bench.until(script.lost.is_set)
        bench.send(2)
        bench.until(lambda: not bench.stream.outstanding)
        return broker, bench.close()


def log_of(broker: ScriptedBroker) -> list[tuple[int, int, int]]:
    """The sequence of each value in the log, and under which producer epoch and sequence it was taken."""
    return [(decode(each.value).sequence, each.producer_epoch, each.sequence) for each in broker.log]


def retries_in(rows: list[dict[str, Any]]) -> list[tuple[int, int, int, str]]:
    """Of each retry in the history its sequences, how many records it had, and why."""
    return [
        (row["first_sequence"], row["last_sequence"], row["count"], row["error"].removeprefix("retry: "))
        for row in rows
        if row["f"] == "retry"
    ]


LOST, NO_LEADER = "Local: Broker transport failure", "Broker: Not leader for partition"
REFUSED = "Broker: Broker received an out of order sequence number"


@pytest.mark.integration
def test_what_is_stored_is_sent_again_under_a_raised_epoch(tmp_path: Path) -> None:
    """The broker answers rightly throughout, and cannot know the batch again: its epoch is another one.

    The epoch is raised by the client alone. The history says what was lost before, and which batch was refused.
    """
    broker, rows = played(Elected(NOT_LEADER, NOT_LEADER), tmp_path)
    assert broker.batches == [
        (0, 0, NONE), (0, 1, None),
        (0, 1, NOT_LEADER), (0, 2, NOT_LEADER), (0, 3, OUT_OF_ORDER),
        (1, 0, NONE), (1, 1, NONE), (1, 2, NONE),
    ]  # fmt: skip
    assert log_of(broker) == [(0, 0, 0), (1, 0, 1), (1, 1, 0), (2, 1, 1), (3, 1, 2)]
    assert broker.producer_ids == 1
    assert retries_in(rows) == [(1, 1, 1, LOST), (1, 1, 1, NO_LEADER), (2, 2, 1, NO_LEADER), (3, 3, 1, REFUSED)]


@pytest.mark.integration
def test_what_was_not_stored_is_not_repeated(tmp_path: Path) -> None:
    """Whoever never had the first batch refuses the later one, too: the same errors, and nothing stands twice."""
    broker, rows = played(Elected(NOT_LEADER, NOT_LEADER, is_stored=False), tmp_path)
    assert log_of(broker) == [(0, 0, 0), (1, 1, 0), (2, 1, 1), (3, 1, 2)]
    assert retries_in(rows) == [(1, 1, 1, LOST), (1, 1, 1, NO_LEADER), (2, 2, 1, NO_LEADER), (3, 3, 1, REFUSED)]


@pytest.mark.integration
def test_without_a_refusal_the_epoch_stays(tmp_path: Path) -> None:
    """All three come too early: they are sent again as they were, and the broker knows the first."""
    broker, rows = played(Elected(NOT_LEADER, NOT_LEADER, NOT_LEADER), tmp_path)
    assert log_of(broker) == [(0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 0, 3)]
    assert retries_in(rows) == [(1, 1, 1, LOST), *((each, each, 1, NO_LEADER) for each in (1, 2, 3))]


@pytest.mark.integration
def test_the_oldest_batch_refused_as_out_of_order_is_the_end_of_the_producer(tmp_path: Path) -> None:
    """A broker that has forgotten the producer, or does not know its duplicate, is told apart: nothing is sent again.

    librdkafka ends with a fatal error, and the history has no retry that was refused as out of order.
    """
    broker, rows = played(Elected(OUT_OF_ORDER), tmp_path)
    assert log_of(broker)[:2] == [(0, 0, 0), (1, 0, 1)]
    assert REFUSED not in [error for *_, error in retries_in(rows)]
    assert any(row["f"] == "note" and "sequence desynchronization" in row["error"] for row in rows)
    assert [row["incarnation"] for row in rows if row["f"] == "incarnation" and row["type"] == "invoke"] == [0, 1]
