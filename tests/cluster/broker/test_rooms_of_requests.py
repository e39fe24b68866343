"""The table of a listener: which large requests wait for which others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster.broker import api_table as module
from cluster.broker.api_table import api_table
from cluster.broker.checkpoints import in_place
from cluster.broker.exchange import Api
from cluster.broker.handlers.metadata import MetadataHandler
from cluster.broker.metrics import Counters
from cluster.broker.pauses import Shares
from cluster.broker.server import ClientConnection
from cluster.broker.services import Services
from cluster.protocol.apis import INTER_BROKER, SUPPORTED, ApiKey
from cluster.protocol.messages import encode_request, request_class, response_class
from cluster.protocol.primitives import write_uvarint
from cluster.seams.transport import Connection
from tests.cluster.broker.test_connection import FakeConnection

LARGE_BYTES = 100_000
BETWEEN_BROKERS = [*module._FOR_BROKERS]
ADMINISTRATION = [ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS]


def large(key: ApiKey) -> memoryview:
    """A request that has much in a tagged field that no one knows."""
    version = {**SUPPORTED, **INTER_BROKER}[key][1]
    encoded = encode_request(request_class(key)(), version, 1, "c")
    assert encoded[-1:] == b"\x00"
    tag = b"\x01" + write_uvarint(100) + write_uvarint(LARGE_BYTES) + bytes(LARGE_BYTES)
    return memoryview(encoded[:-1] + tag)


def apis_with(handlers: dict[ApiKey, Any], monkeypatch: pytest.MonkeyPatch) -> dict[int, Api]:
    """The table of the brokers' listener, with these handlers in place of those that it has."""
    for table in (module._FOR_ALL, module._FOR_BROKERS):
        for key in table.keys() & handlers.keys():
            row: Any = table[key]
            told = replace(row, handler=lambda _services, request, _exchange, key=key: handlers[key](request))
            monkeypatch.setitem(table, key, told)
    parts = SimpleNamespace(blocking=in_place, shares=Shares(lambda: 0), replicas=None, verifier=None)
    metadata = SimpleNamespace(handle=None)
    return api_table(cast(Services, parts), cast(MetadataHandler, metadata), for_brokers=True)


async def turns() -> None:
    """Nothing here waits for anything but the loop."""
    for _ in range(100):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("asked", "begun_together"),
    [(BETWEEN_BROKERS, BETWEEN_BROKERS), (ADMINISTRATION, ADMINISTRATION[:1])],
    ids=["brokers", "administrators"],
)
def test_large_requests_of_brokers_wait_for_no_other(
    asked: list[ApiKey], begun_together: list[ApiKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that brokers ask each other begins, though none of it is answered. Administrators wait in line."""
    begun: list[ApiKey] = []
    clients: list[ClientConnection] = []

    async def main() -> None:
        gate = asyncio.Event()

        def held(key: ApiKey) -> Any:
            async def handle(_request: Any) -> Any:
                begun.append(key)
                await gate.wait()
                return response_class(key)()

            return handle

        apis = apis_with({key: held(key) for key in asked}, monkeypatch)
        connections = [FakeConnection() for _ in asked]
        for key, connection in zip(asked, connections, strict=True):
            clients.append(ClientConnection(cast(Connection, connection), "PEERS", apis, Counters()))
            clients[-1].on_frame(large(key))
        await turns()
        assert begun == begun_together
        gate.set()
        await turns()
        assert all(connection.sent for connection in connections)

    asyncio.run(main())
