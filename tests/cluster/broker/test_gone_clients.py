"""Large requests of clients that have gone while these waited: what only reads is dropped, a change is carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from cluster.broker.answering import answering_awaited, answering_in_steps
from cluster.broker.exchange import Api, Exchange
from cluster.broker.handlers import fetch
from cluster.broker.metrics import Counters
from cluster.broker.pauses import Shares
from cluster.broker.portions import BYTES_AT_ONCE, LARGE_BYTES, Beside
from cluster.broker.server import ClientConnection
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import encode_request, request_class, response_class
from cluster.protocol.primitives import write_uvarint
from tests.cluster.broker.test_connection import FakeConnection
from tests.cluster.broker.test_request_memory import Gate

READ, CHANGE = ApiKey.DESCRIBE_CLUSTER, ApiKey.DELETE_GROUPS
VERSIONS = {READ: 0, CHANGE: 2}
ANSWERS: dict[ApiKey, Callable[[], Any]] = {
    READ: lambda: response_class(READ)(cluster_id="c", brokers=[]),
    CHANGE: lambda: response_class(CHANGE)(results=[]),
}


class Bench:
    """A broker of one thread beside its loop, which is busy until the gate opens. ``handled`` are requests by their
    correlation ids."""

    def __init__(self, *, steps: bool) -> None:
        self.gate, self.counters, self.handled = Gate(), Counters(), list[int]()
        self._beside = Beside(self.gate)
        shares = Shares(lambda: 0)
        self._apis: dict[int, Api] = {}
        for key, version in VERSIONS.items():
            handle = (
                answering_in_steps(request_class(key), partial(self._in_steps, key), self._beside, shares)
                if steps
                else answering_awaited(request_class(key), partial(self._later, key), self._beside, shares)
            )
            self._apis[key] = Api(key, version, version, handle)
        replicas: Any = SimpleNamespace()
        self._apis[ApiKey.FETCH] = Api(
            ApiKey.FETCH, 0, 12, partial(fetch.handle, replicas, self._beside, shares, from_brokers=False)
        )

    def _in_steps(self, key: ApiKey, _request: Any, exchange: Exchange) -> Iterator[None]:
        self.handled.append(exchange.correlation_id)
        yield
        return ANSWERS[key]()

    async def _later(self, key: ApiKey, _request: Any, exchange: Exchange) -> Any:
        self.handled.append(exchange.correlation_id)
        return ANSWERS[key]()

    def client(self) -> tuple[FakeConnection, ClientConnection]:
        connection = FakeConnection()
        return connection, ClientConnection(connection, "L", self._apis, self.counters)  # type: ignore[arg-type]

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)


def request(key: ApiKey, correlation_id: int, size_bytes: int = 0) -> memoryview:
    """One that has so much in a tagged field that no one knows."""
    message = request_class(key)(groups_names=[]) if key is CHANGE else request_class(key)()
    encoded = encode_request(message, VERSIONS[key], correlation_id, "c")
    if size_bytes:
        encoded = encoded[:-1] + b"\x01" + write_uvarint(100) + write_uvarint(size_bytes) + bytes(size_bytes)
    return memoryview(bytearray(encoded))


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("size_bytes", [BYTES_AT_ONCE + 1, LARGE_BYTES + 1])
@pytest.mark.parametrize(("key", "expected"), [(READ, [1, 3]), (CHANGE, [1, 2, 3])])
def test_a_request_whose_client_has_gone(steps: bool, size_bytes: int, key: ApiKey, expected: list[int]) -> None:
    """It has waited for another large one. Others have their turns, and what follows on the connection is served."""

    async def main() -> None:
        bench = Bench(steps=steps)
        clients = [bench.client() for _ in range(3)]
        for number, (_, client) in enumerate(clients, 1):
            client.on_frame(request(key, number, size_bytes))
        await bench.gate.begun.wait()
        gone, client = clients[1]
        gone.left = True
        bench.gate.open.set()
        await bench.settle()
        assert bench.handled == expected
        assert [len(connection.sent) for connection, _ in clients] == [1, len(expected) - 2, 1]
        assert not gone.closed and gone.reading and bench.counters.refused_frames == 0
        client.on_frame(request(CHANGE, 4))
        await bench.settle()
        assert bench.handled == [*expected, 4]
        client.on_eof()
        assert gone.closed

    asyncio.run(main())


def test_a_request_that_did_not_wait_is_answered() -> None:
    """Its client may have closed its own end alone, and read on."""

    async def main() -> None:
        bench = Bench(steps=False)
        bench.gate.open.set()
        connection, client = bench.client()
        connection.left = True
        client.on_frame(request(READ, 1, LARGE_BYTES + 1))
        await bench.settle()
        assert bench.handled == [1] and len(connection.sent) == 1

    asyncio.run(main())


def test_a_client_that_is_closed_is_not_heeded() -> None:
    """Its connection is no more when its turn comes."""

    async def main() -> None:
        bench = Bench(steps=False)
        (_, first), (_, second) = bench.client(), bench.client()
        for number, client in enumerate((first, second), 1):
            client.on_frame(request(READ, number, LARGE_BYTES + 1))
        await bench.gate.begun.wait()
        second.on_closed("reset by the peer")
        bench.gate.open.set()
        await bench.settle()
        assert bench.handled == [1]

    asyncio.run(main())


def test_a_large_fetch_whose_client_has_gone_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has waited for the thread beside the loop."""
    parsed: list[int] = []
    monkeypatch.setattr(fetch, "_parse", lambda _body, version: parsed.append(version))

    async def main() -> None:
        bench = Bench(steps=False)
        _, first = bench.client()
        connection, second = bench.client()
        first.on_frame(request(READ, 1, BYTES_AT_ONCE + 1))
        await bench.gate.begun.wait()
        message = request_class(ApiKey.FETCH)(
            replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1, isolation_level=0, session_id=0, session_epoch=-1,
            topics=[], forgotten_topics_data=[], rack_id="r" * (BYTES_AT_ONCE + 1),
        )  # fmt: skip
        second.on_frame(memoryview(bytearray(encode_request(message, 12, 2, "c"))))
        await bench.settle()
        connection.left = True
        bench.gate.open.set()
        await bench.settle()
        assert parsed == [] and connection.sent == [] and connection.reading

    asyncio.run(main())
