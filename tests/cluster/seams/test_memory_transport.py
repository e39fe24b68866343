"""The in-memory transport: the same rules as sockets, with delays and cuts by direction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cluster.protocol.errors import MalformedRequest
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.memory_transport import MemoryNetwork
from cluster.seams.storage import range_of
from tests.cluster.seams.recording import Acceptor, Recorder, echo

Ends = tuple[Recorder, Recorder]


def run(body: Callable[[MemoryNetwork, Recorder, Recorder], Awaitable[None]], *, network=None, on_frame=None) -> None:
    """Run ``body`` with the two ends of a connection from node a to node b."""

    async def main() -> None:
        net = network or MemoryNetwork()
        server, client = Acceptor(on_frame), Acceptor()
        listener = await net.transport("b").listen("b", 0, server)
        await net.transport("a").connect("b", listener.port, client, timeout_ms=1_000)
        async with asyncio.timeout(20):
            await body(net, client.handlers[0], server.handlers[0])
        await listener.close()
        assert all(len(handler.closed) <= 1 for handler in (*server.handlers, *client.handlers))

    asyncio.run(main())


def test_frames_in_order():
    """Frames arrive whole, writable, in order, and never from inside the call that sent them."""

    async def body(network, client, server):
        file = MemoryStorage().open("f")
        file.append(b"0123456789")
        for number in range(5):
            client.connection.send_frame((b"n", str(number).encode(), range_of(file, 2, 3)))
        assert server.frames == []
        assert client.connection.queued_bytes == 25
        await client.until(lambda handler: len(handler.frames) == 5)
        assert client.frames == server.frames == [b"n%d234" % number for number in range(5)]
        assert client.connection.queued_bytes == 0

    run(body, on_frame=echo)


def test_order_survives_random_delays():
    """A later frame with a shorter delay does not overtake, also when both arrive at the same time."""
    delays = iter([0, 0, 0, 0, 30, 1, 1, 20, 0, 0, 5, 0] + [0] * 50)
    network = MemoryNetwork(lambda source, destination, size: next(delays))

    async def body(network, client, server):
        for number in range(20):
            client.connection.send_frame((bytes((number,)),))
        await server.until(lambda handler: len(handler.frames) == 20)
        assert server.frames == [bytes((number,)) for number in range(20)]

    run(body, network=network)


def test_delay_is_told_direction_and_size():
    """The hook sees who sends to whom, and how much, with the size prefix."""
    seen = []

    def delay(source: str, destination: str, size_bytes: int) -> float:
        seen.append((source, destination, size_bytes))
        return 0.0

    async def body(network, client, server):
        seen.clear()
        client.connection.send_frame((b"abc",))
        await server.until(lambda handler: handler.frames == [b"abc"])
        server.connection.send_frame((b"x",))
        await client.until(lambda handler: handler.frames == [b"x"])
        assert seen == [("a", "b", 7), ("b", "a", 5)]

    run(body, network=MemoryNetwork(delay))


def test_a_lossless_cut_holds_one_direction():
    """What is sent into the cut arrives at the heal, in order; the other direction is open."""

    async def body(network, client, server):
        client.connection.send_frame((b"on its way",))
        network.cut("a", "b")
        client.connection.send_frame((b"held",))
        server.connection.send_frame((b"open",))
        await client.until(lambda handler: handler.frames == [b"open"])
        assert server.frames == []
        assert client.connection.queued_bytes == 14
        network.heal("a", "b")
        client.connection.send_frame((b"after",))
        await server.until(lambda handler: len(handler.frames) == 3)
        assert server.frames == [b"on its way", b"held", b"after"]
        assert not client.closed

    run(body)


def test_a_lossy_cut_drops_and_closes_at_the_heal():
    """Lost bytes cannot be made good: both ends are closed when the cut heals, not before."""

    async def body(network, client, server):
        network.cut("b", "a", lossy=True)
        client.connection.send_frame((b"request",))
        await server.until(lambda handler: handler.frames == [b"request"])
        server.connection.send_frame((b"response",))
        await asyncio.sleep(0.01)
        assert not client.closed
        assert not server.closed
        network.heal("b", "a")
        await client.until(lambda handler: handler.closed != [])
        await server.until(lambda handler: handler.closed != [])
        assert client.frames == []

    run(body)


def test_a_lossy_cut_through_which_nothing_went():
    """A connection that lost nothing goes on."""

    async def body(network, client, server):
        network.cut("b", "a", lossy=True)
        network.heal("b", "a")
        client.connection.send_frame((b"hello",))
        await client.until(lambda handler: handler.frames == [b"hello"])

    run(body, on_frame=echo)


@pytest.mark.parametrize("direction", [("a", "b"), ("b", "a")])
def test_connecting_needs_both_directions(direction):
    """A cut in either stops it: a TimeoutError, and success after the heal."""

    async def body(network, client, server):
        network.cut(*direction)
        listener = await network.transport("b").listen("b", 0, Acceptor())
        with pytest.raises(TimeoutError):
            await network.transport("a").connect("b", listener.port, Acceptor(), timeout_ms=10)
        network.heal(*direction)
        await network.transport("a").connect("b", listener.port, Acceptor(), timeout_ms=1_000)

    run(body)


def test_nobody_listens():
    """Refused, as with sockets; also once the listener is closed. A taken port is an OSError."""

    async def main() -> None:
        network = MemoryNetwork()
        transport = network.transport("a")
        with pytest.raises(ConnectionRefusedError):
            await transport.connect("b", 1, Acceptor(), timeout_ms=10)
        listener = await network.transport("b").listen("b", 0, Acceptor())
        with pytest.raises(OSError, match="taken"):
            await network.transport("b").listen("b", listener.port, Acceptor())
        await listener.close()
        with pytest.raises(ConnectionRefusedError):
            await transport.connect("b", listener.port, Acceptor(), timeout_ms=10)

    asyncio.run(main())


def test_pause_and_resume():
    """Paused, frames wait and count as queued at the sender; resumed, they come in order, by the loop."""

    async def body(network, client, server):
        server.connection.pause_reading()
        client.connection.send_frame((b"one",))
        client.connection.send_frame((b"two",))
        await asyncio.sleep(0.01)
        assert server.frames == []
        assert client.connection.queued_bytes == 6
        server.connection.resume_reading()
        assert server.frames == []
        await server.until(lambda handler: handler.frames == [b"one", b"two"])
        assert client.connection.queued_bytes == 0

    run(body)


def test_close_comes_after_what_was_sent():
    """Both ends are told once, each with its own reason; later calls do nothing."""

    async def body(network, client, server):
        client.connection.send_frame((b"last words",))
        client.connection.close()
        client.connection.send_frame((b"too late",))
        assert client.closed == []
        await server.until(lambda handler: handler.closed != [])
        assert server.frames == [b"last words"]
        assert (client.closed, server.closed) == (["closed by its owner"], ["closed by the peer"])
        client.connection.close()
        server.connection.abort()
        server.connection.send_frame((b"x",))
        await asyncio.sleep(0.01)
        assert len(client.closed) == len(server.closed) == 1

    run(body)


def test_a_half_closed_peer():
    """The end of input is told, and answers still go."""

    async def body(network, client, server):
        client.connection.send_frame((b"one",))
        client.connection.send_eof()
        await server.until(lambda handler: handler.eofs == 1)
        assert server.frames == [b"one"]
        server.connection.send_frame((b"answer",))
        server.connection.close()
        await client.until(lambda handler: handler.closed != [])
        assert client.frames == [b"answer"]

    run(body)


@pytest.mark.parametrize("error", [MalformedRequest("nonsense"), ZeroDivisionError("a bug")])
def test_an_exception_closes_the_connection(error):
    """A handler that raises loses its connection, as with sockets."""

    def fail(recorder: Recorder, view: memoryview) -> None:
        raise error

    async def body(network, client, server):
        client.connection.send_frame((b"bad",))
        client.connection.send_frame((b"never seen",))
        await client.until(lambda handler: handler.closed != [])
        await server.until(lambda handler: handler.closed != [])
        assert server.frames == [b"bad"]

    run(body, on_frame=fail)


def test_an_oversize_frame_closes_the_connection():
    """A frame above the receiver's limit closes the connection."""

    async def main() -> None:
        network = MemoryNetwork()
        server, client = Acceptor(), Acceptor()
        listener = await network.transport("b").listen("b", 0, server, max_frame_bytes=10)
        connection = await network.transport("a").connect("b", listener.port, client, timeout_ms=1_000)
        connection.send_frame((bytes(10),))
        connection.send_frame((bytes(11),))
        await client.handlers[0].until(lambda handler: handler.closed != [])
        assert server.handlers[0].frames == [bytes(10)]
        await listener.close()

    asyncio.run(main())
