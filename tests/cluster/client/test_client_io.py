"""A client's I/O as a whole: metadata and requests over real sockets, against a scripted broker in another thread."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cluster.client.wiring import ClientIo, client_io
from cluster.config.producer import validate
from cluster.protocol import messages
from cluster.protocol.apis import ApiKey
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from cluster.seams.randomness import Random
from cluster.seams.socket_selector import SocketSelector
from tests.cluster.client.fake_broker import FakeBroker, metadata_response

HOST = "127.0.0.1"
TIMEOUT_S = 30
InitRequest = messages.request_class(ApiKey.INIT_PRODUCER_ID)
InitResponse = messages.response_class(ApiKey.INIT_PRODUCER_ID)


class Server:
    """One broker with an event loop of its own, in a thread."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._bound: queue.Queue[int] = queue.Queue()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),))
        self._thread.start()
        self.port = self._bound.get(timeout=TIMEOUT_S)

    async def _serve(self) -> None:
        broker = FakeBroker()
        broker.answers[ApiKey.METADATA] = lambda request, header: metadata_response(
            {1: (HOST, self.port)}, {topic.name: [(1, [1])] for topic in request.topics}, 1
        )
        broker.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, header: (
            None if request.transaction_timeout_ms < 0 else InitResponse(producer_id=request.transaction_timeout_ms)
        )
        listener = await AsyncioTransport().listen(HOST, self.port, broker.accept)
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        self._bound.put(listener.port)
        await self._stopped.wait()
        await listener.close()

    def stop(self) -> None:
        """A second call does nothing."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(TIMEOUT_S)


@contextmanager
def client(port: int) -> Iterator[ClientIo]:
    config = validate({"bootstrap.servers": f"{HOST}:{port}", "client.id": "me"})
    created = client_io(config, SocketSelector(), SystemClock(), Random(1), max_in_flight=5, max_idle_topic_ms=300_000)
    try:
        yield created
    finally:
        created.network.close()


def until(io: ClientIo, condition: Callable[[], bool]) -> list:
    """What the thread of a client does; the responses that were not for the updater."""
    others = []
    end_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end_s:
        delay_ms = io.updater.maybe_update()
        if condition():
            return others
        others += io.updater.absorb(io.network.poll(1_000 if delay_ms is None else min(delay_ms, 1_000)))
    raise TimeoutError(repr(io))


def test_a_broker_that_goes_away_and_comes_back():
    """Requests are answered in order, fail with their connection, and go on when the broker is back at its port."""
    server = Server()
    port = server.port
    try:
        with client(port) as io:
            io.metadata.use("t", 0)
            until(io, lambda: io.metadata.version == 1)
            leader = io.metadata.leader_of("t", 0)
            until(io, lambda: io.network.ready(leader))
            answered = []
            for number in range(100):
                if not io.network.can_send(1):
                    answered += until(io, lambda: io.network.can_send(1))
                io.network.send_message(1, InitRequest(transaction_timeout_ms=number), number)
            answered += until(io, lambda: io.network.nodes.in_flight(1) == 0)
            assert [(each.context, each.answer.producer_id) for each in answered] == [(n, n) for n in range(100)]
            io.network.send_message(1, InitRequest(transaction_timeout_ms=-1), "never answered")
            server.stop()
            failed = until(io, lambda: io.network.nodes.in_flight(1) == 0)
            assert [(each.context, each.answer, each.is_timeout) for each in failed] == [
                ("never answered", None, False)
            ]
            until(io, lambda: not io.network.ready(leader))
            server = Server(port)
            until(io, lambda: io.network.ready(leader))
            io.network.send_message(1, InitRequest(transaction_timeout_ms=7), "again")
            (again,) = until(io, lambda: io.network.nodes.in_flight(1) == 0)
            assert again.answer.producer_id == 7
    finally:
        server.stop()
