"""Links to other brokers end when they are closed."""

from __future__ import annotations

import asyncio

import pytest

from cluster.broker.control.links.peers import RemotePeer
from cluster.protocol.message_classes import WriteTxnMarkersRequest

NOTHING = WriteTxnMarkersRequest(markers=[])


class Silent:
    """A network in which no connection is ever opened or refused."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.is_cancelled = False

    async def connect(self, *_: object, **__: object) -> None:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.is_cancelled = True


async def located() -> tuple[str, int]:
    return "127.0.0.1", 9


def test_a_link_that_is_closed_refuses_all_who_wait_for_it() -> None:
    """The one whose connection is being opened, the one behind it, and whoever asks later: none waits for the timeout,
    so a broker that stops leaves nothing behind."""

    async def main() -> None:
        network = Silent()
        link = RemotePeer(network, located, "broker-1", 3_600_000)  # type: ignore[arg-type]
        asking = [asyncio.create_task(link.ask(NOTHING, 1)) for _ in range(2)]
        await network.asked.wait()
        link.close()
        answers = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 10)
        assert [type(answer) for answer in answers] == [ConnectionError] * 2
        assert network.is_cancelled
        with pytest.raises(ConnectionError, match="closed"):
            await link.ask(NOTHING, 1)

    asyncio.run(main())


def test_who_gives_up_waiting_is_cancelled_and_no_one_else() -> None:
    """A timeout of one who asks ends what it opens; the next one opens its own."""

    async def main() -> None:
        network = Silent()
        link = RemotePeer(network, located, "broker-1", 3_600_000)  # type: ignore[arg-type]
        first, second = (asyncio.create_task(link.ask(NOTHING, 1)) for _ in range(2))
        await network.asked.wait()
        network.asked.clear()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await asyncio.wait_for(network.asked.wait(), 10)
        link.close()
        with pytest.raises(ConnectionError):
            await second

    asyncio.run(main())
