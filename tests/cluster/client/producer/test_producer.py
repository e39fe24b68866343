"""The Producer as a program sees it, turn by turn: its thread's turns are the test's, on a clock that stands still."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cluster.client.producer.delivery import (
    BufferExhausted,
    FatalProducerError,
    ProduceError,
    ProducerClosed,
    RecordMetadata,
    RecordTooLarge,
)
from cluster.client.producer.futures import RecordFuture
from cluster.client.producer.interceptors import ProducerRecord
from cluster.client.producer.producer import Producer
from cluster.config.errors import ConfigError
from cluster.protocol import messages
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.produce import ProduceRequest, ProduceResult, build_response, parse_request
from cluster.protocol.records import Record, decode_records
from cluster.seams.clock import ManualClock
from cluster.seams.randomness import Random
from cluster.seams.runner import RunnerStep, ThreadRunner
from cluster.seams.selector import SelectorHandler
from tests.cluster.client.fake_broker import metadata_response
from tests.cluster.client.scripted_selector import ScriptedSelector

InitResponse = messages.response_class(ApiKey.INIT_PRODUCER_ID)
TURNS = 60
STEP_MS = 100


class PausingSelector(ScriptedSelector):
    """Time stands still in the turn in which a Produce request was sent, so that a test can answer it, and otherwise
    goes on in small steps, so that nothing grows old beside it."""

    is_paused = False

    def send(self, node_id: int, parts: Sequence[bytes]) -> bool:
        is_taken = super().send(node_id, parts)
        self.is_paused |= self.requests[-1][1].api_key == ApiKey.PRODUCE
        return is_taken

    def poll(self, timeout_ms: float | None, handler: SelectorHandler) -> None:
        step_ms = STEP_MS if timeout_ms is None else min(timeout_ms, STEP_MS)
        super().poll(0 if self.is_paused else step_ms, handler)
        self.is_paused = False


class NoRunner:
    """Whoever should carry on the producer leaves that to the test."""

    is_current = has_ended = False

    def start(self, step: RunnerStep) -> None:
        self.step = step

    def join(self, timeout_s: float | None) -> bool:
        return True


class Bench:
    """A producer that the test carries on. The broker, number 1, leads ``partitions`` partitions of every topic."""

    def __init__(self, partitions: int = 1, **config: object) -> None:
        self.runner = NoRunner()
        self.clock = ManualClock()
        self.selector = PausingSelector(self.clock)
        leaders = [(1, [1])] * partitions
        self.selector.answers[ApiKey.METADATA] = lambda request, header: metadata_response(
            {1: ("b", 1)}, {topic.name: leaders for topic in request.topics or ()}, 1
        )
        self.selector.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, header: InitResponse(
            error_code=0, producer_id=7, producer_epoch=0
        )
        keys = {key.replace("_", "."): value for key, value in config.items()}
        self.producer = Producer(
            {"bootstrap.servers": "b:1", "max.block.ms": 0, **keys},
            selector=self.selector,
            clock=self.clock,
            random=Random(1),
            runner=self.runner,
        )

    def until(self, condition: Callable[[], Any]) -> Any:
        """Turns until something holds."""
        for _ in range(TURNS):
            if value := condition():
                return value
            if not self.producer._io._turn():
                break
        assert condition(), "not within so many turns"
        return condition()

    def know(self, topic: str = "t") -> None:
        """Let the producer learn of a topic: the first send to it cannot wait here, and fails."""
        assert self.producer.send(topic, b"").exception(0) is not None
        self.until(lambda: topic in self.producer._topics)

    def produced(self) -> list[tuple[int, ProduceRequest]]:
        """The Produce requests so far, each with its number among all requests."""
        return [
            (number, parse_request(memoryview(body), header.api_version))
            for number, (_node, header, body) in enumerate(self.selector.requests)
            if header.api_key == ApiKey.PRODUCE
        ]

    def next_request(self, count: int) -> tuple[int, ProduceRequest]:
        """The Produce request of that number, as soon as it is there."""
        return self.until(lambda: len(self.produced()) >= count and self.produced()[count - 1])

    def answer(self, number: int, *results: ProduceResult, throttle_ms: int = 0) -> None:
        node, header, _body = self.selector.requests[number]
        self.selector.frame(node, build_response(header.api_version, header.correlation_id, results, throttle_ms))


def records_of(request: ProduceRequest) -> list[Record]:
    return [record for each in request.partitions for record in decode_records(each.records or b"")]


def test_a_record_goes_to_its_broker_and_comes_back_as_metadata() -> None:
    """Header, key, value and time as they were given; the future and the callback tell the same."""
    bench = Bench()
    bench.know()
    told: list[tuple[ProduceError | None, RecordMetadata]] = []
    future = bench.producer.send(
        "t", b"v", b"k", 0, {"h": b"1"}, 1_234, lambda error, metadata: told.append((error, metadata))
    )
    number, request = bench.next_request(1)
    (record,) = records_of(request)
    assert (record.key, record.value, record.headers, record.timestamp) == (b"k", b"v", (("h", b"1"),), 1_234)
    assert (request.acks, request.timeout_ms) == (-1, 30_000)
    bench.answer(number, ProduceResult("t", 0, 0, 41))
    bench.until(future.done)
    assert future.result(0) == RecordMetadata("t", 0, 41, 1_234, 1, 1)
    assert told == [(None, future.result(0))]
    assert bench.producer.metrics()["producer-id"] == 7
    assert bench.producer.metrics()["buffer-available-bytes"] == bench.producer.metrics()["buffer-total-bytes"]


def test_records_share_a_batch_and_nobody_is_woken_for_each() -> None:
    """The first record of a batch wakes the thread, and a full batch does; the others take the short way."""
    bench = Bench(linger_ms=50, batch_size=1_000)
    bench.know()
    wakeups = bench.selector.wakeups
    futures = [bench.producer.send("t", b"x" * 100) for _ in range(8)]
    assert bench.selector.wakeups == wakeups + 1
    futures.append(bench.producer.send("t", b"x" * 100))
    assert bench.selector.wakeups == wakeups + 2
    number, request = bench.next_request(1)
    assert len(records_of(request)) == 8
    bench.answer(number, ProduceResult("t", 0, 0, 0))
    bench.until(lambda: all(future.done() for future in futures[:8]))
    assert [future.result(0).offset for future in futures[:8]] == list(range(8))
    assert not futures[8].done()


def test_without_acks_a_written_request_is_the_outcome() -> None:
    """acks 0: no answer, no offset, no producer id."""
    bench = Bench(acks="0")
    bench.know()
    future = bench.producer.send("t", b"v")
    bench.until(future.done)
    assert future.result(0).offset == -1
    assert bench.producer.metrics()["producer-id"] == -1


def test_a_lost_connection_is_made_again_and_the_batch_sent_again() -> None:
    """With the same sequence: the broker tells a duplicate by it."""
    bench = Bench()
    bench.know()
    future = bench.producer.send("t", b"v")
    _number, first = bench.next_request(1)
    bench.selector.close_by_peer(1)
    number, second = bench.next_request(2)
    assert first.partitions[0].records == second.partitions[0].records
    bench.answer(number, ProduceResult("t", 0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
    bench.until(future.done)
    assert future.result(0).offset == -1
    assert bench.producer.metrics()["record-retry-total"] == 1


def test_a_request_without_an_answer_times_out_once() -> None:
    """request.timeout.ms is the network's to watch; without retries the record fails with that."""
    bench = Bench(retries=0, request_timeout_ms=500)
    bench.know()
    future = bench.producer.send("t", b"v")
    bench.next_request(1)
    began_ms = bench.clock.monotonic_ms()
    bench.until(future.done)
    error = future.exception(0)
    assert error is not None and error.error_code is ErrorCode.REQUEST_TIMED_OUT
    # The turn after the poll in which it was late tells.
    assert 500 <= bench.clock.monotonic_ms() - began_ms <= 500 + STEP_MS


def test_a_throttled_broker_is_left_alone() -> None:
    """KIP-219: nothing is sent to it for as long as it says."""
    bench = Bench()
    bench.know()
    first = bench.producer.send("t", b"v")
    number, _request = bench.next_request(1)
    bench.answer(number, ProduceResult("t", 0, 0, 0), throttle_ms=300)
    answered_ms = bench.clock.monotonic_ms()
    bench.until(first.done)
    bench.producer.send("t", b"v")
    bench.next_request(2)
    assert bench.clock.monotonic_ms() - answered_ms == 300


def test_a_broker_too_old_for_zstd_is_sent_none() -> None:
    """The batch fails with Kafka's code for it, and the producer goes on."""
    bench = Bench(compression_type="zstd")
    bench.selector.windows[ApiKey.PRODUCE] = (0, 6)
    bench.know()
    future = bench.producer.send("t", b"v")
    bench.until(future.done)
    error = future.exception(0)
    assert error is not None and error.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert bench.producer.fatal_error is None


def test_a_fatal_error_is_told_and_ends_everything() -> None:
    """The future's error says so, the producer says so, and what is sent later fails too."""
    bench = Bench()
    bench.selector.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, header: InitResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_id=-1, producer_epoch=-1
    )
    bench.know()
    for _ in range(2):
        future = bench.producer.send("t", b"v")
        bench.until(future.done)
        assert isinstance(future.exception(0), FatalProducerError)
    assert isinstance(bench.producer.fatal_error, FatalProducerError)
    assert bench.producer.metrics()["is-fatal"]


def test_what_fits_nowhere_fails_at_once() -> None:
    """max.request.size and buffer.memory, with the callback called before send returns; wrong arguments raise."""
    bench = Bench(max_request_size=1_000, buffer_memory=2_000, batch_size=500)
    bench.know()
    told: list[Any] = []
    large = bench.producer.send("t", b"x" * 1_000, on_delivery=lambda error, metadata: told.append(error))
    assert isinstance(large.exception(0), RecordTooLarge)
    assert told == [large.exception(0)]
    taken = [bench.producer.send("t", b"x" * 400) for _ in range(4)]
    more = bench.producer.send("t", b"x" * 400)
    assert not any(future.done() for future in taken)
    assert isinstance(more.exception(0), BufferExhausted)
    with pytest.raises(ValueError, match="Invalid partition: -1"):
        bench.producer.send("t", b"v", partition=-1)
    with pytest.raises(ValueError, match="Invalid timestamp"):
        bench.producer.send("t", b"v", timestamp_ms=-1)
    with pytest.raises(TypeError, match="needs a serializer"):
        bench.producer.send("t", "text")
    with pytest.raises(TypeError, match="name of a header"):
        bench.producer.send("t", b"v", headers=[(b"h", b"v")])  # type: ignore[list-item]
    assert "partition count 1" in str(bench.producer.send("t", b"v", partition=4).exception(0))


class Shouting:
    """An interceptor that changes what is sent, and one that fails at everything."""

    def __init__(self, log: list[object]) -> None:
        self.log = log

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record._replace(value=record.value.upper())

    def on_acknowledgement(self, metadata: RecordMetadata, error: ProduceError | None) -> None:
        self.log.append(("acknowledged", metadata.offset))

    def close(self) -> None:
        self.log.append("closed")


class Failing:
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        raise RuntimeError("no")

    def on_acknowledgement(self, metadata: RecordMetadata, error: ProduceError | None) -> None:
        raise RuntimeError("no")

    def close(self) -> None:
        raise RuntimeError("no")


def test_serializers_interceptors_and_a_partitioner() -> None:
    """In Kafka's order: interceptors, serializers, partitioner; interceptors and callbacks that raise do no harm."""
    log: list[object] = []
    bench = Bench(
        partitions=4,
        key_serializer=lambda key: b"%d" % key,
        value_serializer=str.encode,
        interceptor_classes=[Failing(), Shouting(log)],
        partitioner_class=lambda topic, key, value, count, available: (len(value) + count + len(available)) % count,
    )

    def fails(error: ProduceError | None, metadata: RecordMetadata) -> None:
        log.append("called")
        raise RuntimeError("no")

    assert bench.producer.send("t", "", 0).exception(0) is not None
    log.clear()
    bench.until(lambda: "t" in bench.producer._topics)
    future = bench.producer.send("t", "abc", 12, on_delivery=fails)
    number, request = bench.next_request(1)
    (record,) = records_of(request)
    assert (record.key, record.value, request.partitions[0].partition) == (b"12", b"ABC", 3)
    bench.answer(number, ProduceResult("t", 3, 0, 5))
    bench.until(future.done)
    bench.producer.close()
    assert log == [("acknowledged", 5), "called", "closed"]


def test_a_send_in_a_callback_does_not_wait() -> None:
    """It would wait for itself: what cannot be had at once fails; a flush there is refused."""
    bench = Bench(max_block_ms=60_000)
    bench.runner.is_current = True
    future = bench.producer.send("unknown", b"v")
    assert str(future.exception(0)) == (
        "REQUEST_TIMED_OUT: Topic unknown not present in metadata after 0 ms. "
        "No broker of bootstrap.servers has answered so far: b:1"
    )
    with pytest.raises(RuntimeError, match="callback"):
        bench.producer.flush()


def test_after_close_nothing_is_taken() -> None:
    """What was sent before is sent to the end; then send raises."""
    bench = Bench(linger_ms=10_000)
    bench.know()
    future = bench.producer.send("t", b"v")
    bench.producer.close()
    number, _request = bench.next_request(1)
    with pytest.raises(ProducerClosed):
        bench.producer.send("t", b"w", partition=0, headers=[("h", b"")])
    bench.answer(number, ProduceResult("t", 0, 0, 0))
    while bench.producer._io._turn():
        pass
    assert future.result(0).offset == 0


def test_a_thread_that_fails_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours is a fatal error with its text, not a future that is never done."""
    bench = Bench(linger_ms=10_000)
    bench.know()
    future: RecordFuture = bench.producer.send("t", b"v")

    def fail(now_ms: int) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(bench.producer._shared.core, "tick", fail)
    assert not bench.runner.step()
    assert "ZeroDivisionError: a mistake" in str(future.exception(0))
    assert bench.producer.fatal_error is not None
    assert bench.selector.is_shut_down
    assert "ZeroDivisionError: a mistake" in str(bench.producer.send("t", b"w").exception(0))


def test_what_cannot_be_sent_is_refused_before_it_harms() -> None:
    """A mistake in one call is that call's alone: the thread that sends for all others never sees it."""
    bench = Bench(linger_ms=1_000)
    bench.know()
    bench.producer.send("t", b"v", partition=0)
    send: Callable[..., Any] = bench.producer.send
    for topic in (5, b"t", None):
        with pytest.raises(TypeError, match="name of a topic is a text"):
            send(topic, b"v")
    for name in ("t\ud800", "t" * 40_000):
        with pytest.raises(ValueError, match="no topic can have this name"):
            send(name, b"v")
        with pytest.raises(ValueError, match="no topic can have this name"):
            bench.producer.partitions_for(name)
    with pytest.raises(TypeError, match="partition is an integer, not str"):
        send("t", b"v", partition="0")
    with pytest.raises(TypeError, match="partition is an integer, not float"):
        send("t", b"v", partition=1.0)
    with pytest.raises(ValueError, match="Invalid partition: -1"):
        send("t", b"v", partition=-1)
    for timestamp in (1.5, "5"):
        with pytest.raises(TypeError, match="timestamp is an integer"):
            send("t", b"v", timestamp_ms=timestamp)
    for number, text in ((-1, "Invalid timestamp: -1"), (2**63, "a timestamp has 64 bits")):
        with pytest.raises(ValueError, match=text):
            send("t", b"v", timestamp_ms=number)
    for headers in ({"h": b""}, None):
        # Without headers there is an open batch to take it, as of nearly every record.
        with pytest.raises(TypeError, match="on_delivery is a function, not int"):
            send("t", b"v", partition=0, headers=headers, on_delivery=5)
    _number, request = bench.next_request(1)
    assert len(records_of(request)) == 1


def test_kafkas_longest_wait_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """max.block.ms may be Long.MAX_VALUE, which is longer than a thread of Python can wait."""
    bench = Bench(max_block_ms=2**63 - 1)
    waited: list[float] = []

    def wait(timeout_s: float) -> None:
        waited.append(timeout_s)
        bench.producer._shared.is_closing = True

    monkeypatch.setattr(bench.producer._shared.changed, "wait", wait)
    with pytest.raises(ProducerClosed):
        bench.producer.send("t", b"v")
    assert waited == [threading.TIMEOUT_MAX]


def test_a_forked_process_is_told_that_nobody_sends() -> None:
    """Threads are not forked: without a word a flush there would never end."""
    bench = Bench()
    bench.producer._io._runner = thread = ThreadRunner("forked")
    thread.start(bool)
    assert thread.join(None)
    for call in (bench.producer.flush, lambda: bench.producer.send("t", b"v")):
        with pytest.raises(RuntimeError, match="fork"):
            call()
    bench.producer.close()


def test_settings_that_are_probably_not_meant_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Idempotence that gives way, and keys that change nothing, are said in the log."""
    Bench(acks=1, send_buffer_bytes=5)
    assert caplog.messages == [
        "acks 1 turns 'enable.idempotence' off",
        "producer config key 'send.buffer.bytes' is accepted but has no effect",
        "without idempotence a retry may store a record twice or out of order",
    ]


@pytest.mark.parametrize("config", [{"bootstrap.servers": "nowhere"}, {"client.id": "x" * 40_000}])
def test_a_refused_configuration_leaves_no_socket(config: dict[str, object]) -> None:
    """What was opened before the refusal is closed again."""
    selector = ScriptedSelector(ManualClock())
    with pytest.raises(ConfigError):
        Producer({"bootstrap.servers": "b:1", **config}, selector=selector)
    assert selector.is_shut_down


def test_partitions_for_tells_what_is_known() -> None:
    """Their numbers and leaders; a topic that is not known in time is an error."""
    bench = Bench(partitions=3)
    with pytest.raises(ProduceError, match="not present in metadata"):
        bench.producer.partitions_for("t")
    bench.until(lambda: "t" in bench.producer._topics)
    assert [(each.partition, each.leader) for each in bench.producer.partitions_for("t")] == [(0, 1), (1, 1), (2, 1)]


def test_what_does_not_exist_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While a send waits for it, or a batch for its topic: the topic, or the partition that is not there."""
    bench = Bench(max_block_ms=10_000)
    told: dict[str, Any] = {}
    bench.selector.answers[ApiKey.METADATA] = lambda request, header: metadata_response(
        {1: ("b", 1)},
        {each.name: told.get(each.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for each in request.topics},
        1,
    )
    monkeypatch.setattr(bench.producer._shared.changed, "wait", lambda timeout_s: turn_unlocked(bench))
    told["few"] = [(1, [1])]
    waited = [bench.producer.send("typo", b"v"), bench.producer.send("few", b"v", partition=3)]
    assert [type(future.exception(0)) for future in waited] == [ProduceError] * 2
    sent = bench.producer.send("few", b"v")
    del told["few"]
    bench.producer._io._io.metadata.request_update()
    bench.until(lambda: "few" not in bench.producer._topics)
    assert not sent.done()
    assert [each.getMessage().split(" does")[0] for each in caplog.records if each.levelname == "WARNING"] == [
        "topic typo",
        "partition few-3",
        "topic few",
    ]


def turn_unlocked(bench: Bench) -> None:
    """A turn of the producer's thread while a send waits, and has let go of the lock."""
    bench.producer._lock.release()
    try:
        bench.producer._io._turn()
    finally:
        bench.producer._lock.acquire()
