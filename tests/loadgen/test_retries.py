"""A retry that is forced stands in the history, with the sequences that it was about: for each client."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from cluster.seams.clock import SystemClock
from loadgen.choices import Sizes
from loadgen.clients import confluent, native
from loadgen.clients.base import ProducerFactory
from loadgen.clients.librdkafka_attempts import AttemptListener, KeptLines, LostConnections
from loadgen.recorder import Recorder
from loadgen.records import StreamRecords
from loadgen.settings import ConfigValue
from loadgen.stream import ProducerStream
from tests.loadgen.conftest import TOPIC, MockCluster
from verifier.evidence.history import read_history

Factory = Callable[[str, str, Mapping[str, ConfigValue], Any], ProducerFactory]

LINE = (
    "[thrd:h:1/1]: h:1/1: t [0]: MessageSet with 17 message(s) (MsgId 101, BaseSeq 100) encountered error: "
    "Local: Broker transport failure (actions Refresh,MsgPossiblyPersisted)"
)
OUT_OF_ORDER = "Broker: Broker received an out of order sequence number"
CONFIG: dict[str, ConfigValue] = {
    "request.timeout.ms": 500,
    "socket.timeout.ms": 500,
    "delivery.timeout.ms": 30_000,
    "retry.backoff.ms": 20,
    "linger.ms": 0,
}


@pytest.mark.integration
@pytest.mark.parametrize("idempotence", [True, False])
@pytest.mark.parametrize("factory", [confluent.producer_factory, native.producer_factory])
def test_what_is_sent_again_is_recorded(
    cluster: MockCluster, tmp_path: Path, factory: Factory, idempotence: bool
) -> None:
    """A broker that does not answer: the five records that it was sent time out; those acknowledged before are out."""
    clock = SystemClock()
    recorder = Recorder("producers", tmp_path / "producers.arrow", clock)
    config = {key: value for key, value in CONFIG.items() if key != "socket.timeout.ms" or factory is not _native()}
    stream = ProducerStream(
        stream=3, topic=TOPIC, partition=0, records=StreamRecords(1, 3, Sizes([48])), recorder=recorder, clock=clock,
        make_client=factory(cluster.bootstrap, "retries", {**config, "enable.idempotence": idempotence}, clock),
        dispose=lambda client: client.dispose(1.0),
    )  # fmt: skip

    def until(condition: Callable[[], bool], what: str) -> None:
        end_ns = clock.monotonic_ns() + 40 * 10**9
        while not condition():
            assert clock.monotonic_ns() < end_ns, what
            stream.poll()
            recorder.history.flush()
            Event().wait(0.005)

    def send(count: int) -> None:
        target = stream.next_sequence + count
        until(lambda: stream.send(clock.monotonic_ns()) and stream.next_sequence == target, "not taken")

    def retries() -> list[dict[str, Any]]:
        return [row for row in read_history(tmp_path / "producers.arrow").to_pylist() if row["f"] == "retry"]

    send(5)
    until(lambda: not stream.outstanding, "not acknowledged")
    cluster.freeze()
    before_ns = clock.monotonic_ns()
    send(5)
    until(lambda: bool(retries()), "no retry in the history")
    first = retries()[0]
    assert (first["stream"], first["partition"], first["type"]) == (3, 0, "info")
    assert 5 <= first["first_sequence"] <= first["last_sequence"] <= 9
    assert before_ns <= first["invoke_ns"] <= first["complete_ns"] <= clock.monotonic_ns()
    assert first["error"].startswith("retry: ") and 1 <= first["count"] <= 5
    stream.close()
    recorder.close()


def _native() -> Factory:
    return native.producer_factory


def attempts(*lines: tuple[str, str]) -> list[tuple[str, int, int, int]]:
    """The failed attempts that these lines tell."""
    told: list[tuple[str, int, int, int]] = []

    def tell(*attempt: Any) -> None:
        told.append(attempt)

    listener = AttemptListener(tell, is_debugged=False)
    for facility, line in lines:
        listener.log(10, "%s [%s] %s", facility, "p", line)
    return told


def test_a_failed_attempt_is_known_by_its_line() -> None:
    """Also one whose connection broke; not one that is given up, nor one that was delivered."""
    assert attempts(("MSGSET", LINE)) == [("Local: Broker transport failure", 17, 101, 0)]
    assert attempts(("MSGSET", LINE.replace("Refresh,", "Permanent,"))) == []
    assert attempts(("MSGSET", LINE.partition(" encountered")[0] + " delivered")) == []
    assert attempts(("FAIL", LINE)) == []


REFUSED = LINE.partition(" Local:")[0] + f" {OUT_OF_ORDER} (actions Permanent,MsgPossiblyPersisted)"
AGAIN = (
    "[thrd:h:1/1]: h:1/1: ProduceRequest for t [0] with 17 message(s) failed due to skipped sequence numbers "
    "(PID{Id:1001,Epoch:0}, base seq 100 > next seq 98) caused by previous failed request (NOT_LEADER_FOR_PARTITION, "
    "actions Refresh,MsgNotPersisted, base seq 98..98, base msgid 99, 0ms ago): recovering and retrying"
)


def test_what_is_refused_as_out_of_order_and_sent_again_is_a_failed_attempt() -> None:
    """It is called a permanent failure first; without the line that follows it is one, and the client ends."""
    assert attempts(("MSGSET", REFUSED), ("ERRSEQ", AGAIN)) == [(OUT_OF_ORDER, 17, 101, 0)]
    assert attempts(("MSGSET", REFUSED), ("ERRSEQ", AGAIN), ("ERRSEQ", AGAIN)) == [(OUT_OF_ORDER, 17, 101, 0)]
    assert attempts(("MSGSET", REFUSED)) == []
    assert attempts(("MSGSET", REFUSED), ("ERRSEQ", AGAIN.replace("t [0]", "t [1]"))) == []
    assert attempts(("MSGSET", REFUSED), ("ERRSEQ", AGAIN.replace("seq 100", "seq 120"))) == []
    given_up = REFUSED.replace(OUT_OF_ORDER, "Broker: Message size too large")
    assert attempts(("MSGSET", given_up), ("ERRSEQ", AGAIN)) == []


def test_debugging_lines_are_for_the_listener_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody asked for them; what librdkafka says to people is passed on, and everything if debugging was asked for."""
    told: list[tuple[str, int, int, int]] = []

    def tell(*attempt: Any) -> None:
        told.append(attempt)

    with caplog.at_level("DEBUG", logger="librdkafka"):
        AttemptListener(tell, is_debugged=False).log(10, "%s [%s] %s", "MSGSET", "p", LINE)
        AttemptListener(tell, is_debugged=False).log(40, "%s [%s] %s", "FAIL", "p", "gone")
        AttemptListener(tell, is_debugged=True).log(10, "%s [%s] %s", "PRODUCE", "p", "asked for")
    assert told == [("Local: Broker transport failure", 17, 101, 0)]
    assert [record.getMessage() for record in caplog.records] == ["FAIL [p] gone", "PRODUCE [p] asked for"]


def test_lines_of_other_threads_wait_for_the_one_that_polls(caplog: pytest.LogCaptureFixture) -> None:
    """Under Locust a thread that logs may wait forever for a lock of a greenlet's: a commit would never return."""
    told: list[Any] = []
    lines = KeptLines(AttemptListener(lambda *attempt: told.append(attempt), is_debugged=False))
    thread = Thread(target=lambda: lines.log(40, "%s [%s] %s", "FAIL", "p", "gone"))
    thread.start()
    thread.join()
    lines.log(10, "%s [%s] %s", "MSGSET", "p", LINE)
    assert (caplog.records, told) == ([], [])
    lines.pass_on()
    assert [record.getMessage() for record in caplog.records] == ["FAIL [p] gone"]
    assert told == [("Local: Broker transport failure", 17, 101, 0)]
    lines.pass_on()
    assert len(told) == 1


def statistics(**brokers: tuple[int, int]) -> str:
    """Of each broker, how often its connection was lost, and how many Produce requests it was sent."""
    told = {name: {"disconnects": lost, "req": {"Produce": sent}} for name, (lost, sent) in brokers.items()}
    return json.dumps({"brokers": told})


def test_lost_connections_are_counted_broker_by_broker() -> None:
    """One that carried no records does not count, and forgetting a broker changes no count."""
    lost = LostConnections()
    assert lost.told("{}") == 0
    assert lost.told(statistics(a=(0, 5), b=(3, 0))) == 0
    assert lost.told(statistics(a=(1, 5), b=(4, 0))) == 1
    assert lost.told(statistics(a=(2, 5), b=(4, 0))) == 0
    assert lost.told(statistics(b=(5, 2))) == 1
    assert lost.told(statistics(b=(5, 2))) == 0


def test_what_was_sent_in_the_interval_of_a_loss_may_be_on_the_next_connection() -> None:
    """librdkafka does not say in which order: the next loss counts."""
    lost = LostConnections()
    assert [lost.told(statistics(a=each)) for each in ((0, 3), (1, 9), (2, 9), (3, 9))] == [0, 1, 1, 0]
