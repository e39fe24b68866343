"""MarkerLinks: what a producer waits for does not share a connection with markers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from cluster.broker.control.links.peers import Peer
from cluster.broker.transactions.marker_links import MarkerLinks
from cluster.coordinator.transaction.decisions import TransactionMarkers
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import request_class, response_class
from tests.support.virtual_time import run


class InOrder:
    """A connection that answers one request after the other; markers are answered once ``gate`` is open."""

    def __init__(self, gate: asyncio.Event) -> None:
        self._gate = gate
        self._lock = asyncio.Lock()
        self.is_closed = False

    async def ask(self, message: Any, _version: int) -> Any:
        async with self._lock:
            if isinstance(message, request_class(ApiKey.WRITE_TXN_MARKERS)):
                await self._gate.wait()
                return response_class(ApiKey.WRITE_TXN_MARKERS)(markers=[])
            return response_class(ApiKey.ADD_PARTITIONS_TO_TXN)(results_by_transaction=[])

    def close(self) -> None:
        self.is_closed = True


def test_a_verification_does_not_wait_for_markers() -> None:
    """To the same broker: 3,000 markers of a stranger take a second. All connections are closed in the end."""

    async def main() -> None:
        gate, made = asyncio.Event(), list[InOrder]()

        def link_to(_broker_id: int) -> Peer:
            made.append(InOrder(gate))
            return cast(Peer, made[-1])

        links = MarkerLinks(link_to)
        markers = TransactionMarkers(0, 3, "stranger", 7, 0, True, frozenset({("t", 0)}))
        writing = asyncio.create_task(links.write(2, [markers]))
        await asyncio.sleep(0)
        async with asyncio.timeout(1):
            assert await links.verify(2, "tx", 8, 0, frozenset({("t", 0)})) == {}
        assert not writing.done()
        gate.set()
        assert await writing == [{}]
        assert await links.verify(2, "tx", 8, 0, frozenset({("t", 0)})) == {}
        links.close()
        assert [each.is_closed for each in made] == [True, True]

    run(main())
