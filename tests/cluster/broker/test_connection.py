"""One connection: order, pipelining, what closes it, and that nothing a client sends hurts anybody else."""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from random import Random
from typing import Any

import pytest

from cluster.broker.answering import answering_awaited
from cluster.broker.backlog import MAX_UNANSWERED
from cluster.broker.checkpoints import in_place
from cluster.broker.exchange import Api, Exchange
from cluster.broker.metrics import Counters
from cluster.broker.pauses import Shares
from cluster.broker.portions import Beside
from cluster.broker.server import ClientConnection
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import encode_request, request_class, response_class
from cluster.protocol.produce import parse_request
from cluster.seams.transport import Connection
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import CLIENT, HOST, MemoryCluster


class FakeConnection:
    """What a transport would be, as a list."""

    peer = "test:1"
    queued_bytes = 0

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.reading = True
        self.closed = False
        self.left = False

    def send_frame(self, parts: Any) -> None:
        assert not self.closed
        self.sent.append(b"".join(bytes(part) for part in parts))

    def is_left(self) -> bool:
        return self.closed or self.left

    def keep_request(self, size_bytes: int) -> None: ...

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


def frame(api_key: int, version: int = 0, correlation_id: int = 1) -> memoryview:
    return memoryview(bytearray(struct.pack(">hhih", api_key, version, correlation_id, -1)))


class Bench:
    """A connection with three APIs: 100 waits until told, 101 answers at once, 102 fails."""

    def __init__(self) -> None:
        self.connection = FakeConnection()
        self.waiting: list[Exchange] = []
        self.at_once: list[bytes] = [b"now"]
        self.counters = Counters()
        apis = {
            key: Api(ApiKey(key), 0, 3, handle)
            for key, handle in (
                (ApiKey.PRODUCE, lambda exchange, _body: self.waiting.append(exchange)),
                (ApiKey.METADATA, lambda exchange, _body: exchange.respond(self.at_once)),
                (ApiKey.FETCH, self._fail),
            )
        }
        self.client = ClientConnection(self.connection, "L", apis, self.counters)

    def _fail(self, exchange: Exchange, body: memoryview) -> None:
        raise RuntimeError("a bug")


def test_answers_leave_in_the_order_of_requests() -> None:
    """A later answer waits for an earlier one."""
    bench = Bench()
    for key in (ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.PRODUCE):
        bench.client.on_frame(frame(key))
    first, second = bench.waiting
    second.respond([b"second"])
    assert bench.connection.sent == []
    first.respond([b"fir", b"st"])
    assert bench.connection.sent == [b"first", b"now", b"second"]


def test_a_request_without_an_answer_does_not_hold_up_the_next() -> None:
    """After a Produce with acks=0 the next request is answered at once."""
    bench = Bench()
    bench.client.on_frame(frame(ApiKey.PRODUCE))
    bench.client.on_frame(frame(ApiKey.METADATA))
    bench.waiting[0].skip()
    assert bench.connection.sent == [b"now"]


def test_reading_stops_above_too_many_unanswered_requests() -> None:
    """And goes on when half of them are answered."""
    bench = Bench()
    for _ in range(MAX_UNANSWERED):
        bench.client.on_frame(frame(ApiKey.PRODUCE))
    assert not bench.connection.reading
    for exchange in bench.waiting[: MAX_UNANSWERED // 2]:
        exchange.respond([b"x"])
    assert bench.connection.reading


@pytest.mark.parametrize(
    "sent",
    [frame(99), frame(ApiKey.METADATA, 4), frame(ApiKey.METADATA, -1), memoryview(bytearray(b"\x00\x03"))],
    ids=["unknown API", "version too new", "version too old", "no header"],
)
def test_what_cannot_be_served_closes_the_connection(sent: memoryview) -> None:
    """There is no answer that the client could read; what comes after is not looked at."""
    bench = Bench()
    bench.client.on_frame(sent)
    assert bench.connection.closed
    bench.client.on_frame(frame(ApiKey.METADATA))
    assert (bench.connection.sent, bench.counters.refused_frames) == ([], 1)


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (frame(999), "API key 999 is not served on this listener"),
        (frame(ApiKey.LEADER_AND_ISR), "LEADER_AND_ISR is not served on this listener"),
        (frame(ApiKey.METADATA, 4), "version 4 of METADATA is not served"),
        (memoryview(bytearray(b"\x00\x03"))[:2], "request header: "),
        (memoryview(bytearray(struct.pack(">hhih", 3, 0, 1, 99))), "request header: string of 99 bytes"),
    ],
)
def test_an_operator_is_told_what_was_refused_and_why(
    sent: memoryview, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The client is not: to it the connection is just closed."""
    with caplog.at_level(logging.WARNING):
        Bench().client.on_frame(sent)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"closing the connection from test:1 to L: {told}")


def test_what_cannot_be_decoded_is_told_by_the_name_of_its_request(caplog: pytest.LogCaptureFixture) -> None:
    """On the loop, and off it: a topic whose name ends behind the request, or is longer than any name may be."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        topic = struct.pack(">i", 1)
        for body in (topic + b"\x00\x09abc", topic + b"\x00\x09" + b"a" * 8, topic + b"\x7f\xff" + b"a" * 20_000):
            sender = await raw(cluster, "CLIENTS")
            sender.connection.send_frame([frame(ApiKey.METADATA), body])
            async with asyncio.timeout(5):
                await sender.ended.wait()

    with caplog.at_level(logging.WARNING):
        with_topic(check)
    told = [record.getMessage() for record in caplog.records if record.name == "cluster.broker.server"]
    assert [" to CLIENTS: MetadataRequest: string of " in line for line in told] == [True] * 3


def test_a_handler_that_fails_ends_its_own_connection_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The bug is logged, and nothing is raised into the transport."""
    bench = Bench()
    with caplog.at_level(logging.ERROR):
        bench.client.on_frame(frame(ApiKey.FETCH))
    assert bench.connection.closed
    assert "a bug" in caplog.text
    assert bench.counters.refused_frames == 0, "that was no fault of the frame"


def test_a_slow_handler_holds_back_what_comes_after_it() -> None:
    """In-order processing: nothing else is read meanwhile; a failure closes the connection."""

    async def main() -> None:
        connection, done = FakeConnection(), asyncio.Event()

        async def handler(_request: Any, _exchange: Exchange) -> Any:
            await done.wait()
            if fails:
                raise RuntimeError("a bug")
            return response_class(ApiKey.DESCRIBE_CLUSTER)(cluster_id="c", brokers=[])

        fails: list[bool] = []

        described = request_class(ApiKey.DESCRIBE_CLUSTER)
        handle = answering_awaited(described, handler, Beside(in_place), Shares(time.monotonic_ns))
        client = ClientConnection(connection, "L", {60: Api(ApiKey.DESCRIBE_CLUSTER, 0, 1, handle)}, Counters())
        request = memoryview(bytearray(encode_request(described(), 0, 7, "c")))
        client.on_frame(request)
        assert not connection.reading
        done.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert connection.reading
        assert connection.sent[0][:4] == (7).to_bytes(4, "big")
        fails.append(True)
        client.on_frame(request)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert connection.closed

    asyncio.run(main())


def test_an_unknown_version_of_api_versions_is_answered() -> None:
    """In version 0, with error 35 and its own window: so clients of the future find a common version."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        request = memoryview(bytearray(struct.pack(">hhi", 18, 99, 5) + b"anything"))
        answer = bytes(await client.connection.send_raw(bytes(request)))
        assert answer == struct.pack(">ihihhh", 5, 35, 1, 18, 0, 3)

    with_topic(check)


class Raw:
    """A client that sends what it likes and notes what comes."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.frames: list[bytes] = []
        self.ended = asyncio.Event()

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def on_eof(self) -> None:
        self.connection.close()

    def on_closed(self, reason: str) -> None:
        self.ended.set()


async def raw(cluster: MemoryCluster, listener: str = "CLIENTS") -> Raw:
    clients: list[Raw] = []

    def accept(connection: Connection) -> Raw:
        clients.append(Raw(connection))
        return clients[-1]

    port = cluster.nodes[1].ports[listener]
    await cluster.network.transport(CLIENT).connect(HOST, port, accept, timeout_ms=1000)
    return clients[0]


def real_requests() -> list[bytes]:
    """Well-formed requests of several APIs, to be spoiled."""
    produce = request_class(ApiKey.PRODUCE)
    data = produce.TopicProduceData.PartitionProduceData(index=0, records=batch(b"spoiled"))
    messages: list[tuple[Any, int]] = [
        (
            produce(
                transactional_id=None,
                acks=1,
                timeout_ms=1000,
                topic_data=[produce.TopicProduceData(name=TOPIC, partition_data=[data])],
            ),
            9,
        ),
        (request_class(ApiKey.METADATA)(topics=None, allow_auto_topic_creation=False), 12),
        (request_class(ApiKey.LIST_OFFSETS)(replica_id=-1, isolation_level=0, topics=[]), 7),
        (request_class(ApiKey.INIT_PRODUCER_ID)(transactional_id=None, transaction_timeout_ms=1), 4),
        (request_class(ApiKey.DESCRIBE_CONFIGS)(resources=[]), 4),
        (request_class(ApiKey.API_VERSIONS)(client_software_name="a", client_software_version="1"), 3),
    ]
    return [encode_request(message, version, 1, "fuzz") for message, version in messages]


def spoil(random: Random, data: bytes) -> bytes:
    """Flip, cut, insert or repeat some of the bytes."""
    spoiled = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 5])):
        at = random.randrange(len(spoiled) + 1)
        match random.randrange(4):
            case 0 if at < len(spoiled):
                spoiled[at] = random.randrange(256)
            case 1:
                del spoiled[at:]
            case 2:
                spoiled[at:at] = random.randbytes(random.choice([1, 4, 100]))
            case _:
                spoiled[at:at] = random.choice([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f"])
    return bytes(spoiled)


@pytest.mark.parametrize("listener", ["CLIENTS", "PEERS"])
def test_malformed_requests_are_answered_or_closed(listener: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each sender half-closes: its connection ends, no handler fails, and an honest client is served throughout."""
    random = Random(listener)
    samples = real_requests()

    async def check(cluster: MemoryCluster, client: Client) -> None:
        for number in range(300):
            sender = await raw(cluster, listener)
            sender.connection.send_frame([spoil(random, random.choice(samples))])
            sender.connection.send_eof()  # type: ignore[attr-defined]
            async with asyncio.timeout(5):
                await sender.ended.wait()
            if number % 50 == 0:
                assert (await client.produce(TOPIC, batch(b"honest"))).error == 0
        assert not cluster.failures

    with caplog.at_level(logging.ERROR):
        with_topic(check)
    assert [record for record in caplog.records if record.name.startswith("cluster.broker.server")] == []


def test_a_half_closed_client_gets_its_answers() -> None:
    """What it asked before is answered; a fetch that waits only for more data ends; then the connection closes."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        sender = await raw(cluster)
        sender.connection.send_frame([real_requests()[1]])
        sender.connection.send_eof()  # type: ignore[attr-defined]
        async with asyncio.timeout(5):
            await sender.ended.wait()
        assert len(sender.frames) == 1

    with_topic(check)


@pytest.mark.parametrize("key", [ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA])
def test_requests_between_brokers_are_not_served_to_clients(key: ApiKey) -> None:
    """A client could depose a leader with them."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        sender = await raw(cluster)
        sender.connection.send_frame([bytes(frame(key, 7))])
        async with asyncio.timeout(5):
            await sender.ended.wait()
        assert sender.frames == []

    with_topic(check)


def test_the_helpers_know_produce() -> None:
    """The sample that is spoiled is a real Produce request."""
    request = parse_request(memoryview(bytearray(real_requests()[0][15:])), 9)
    assert request.partitions[0].topic == TOPIC
