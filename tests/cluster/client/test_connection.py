"""BrokerConnection over the in-memory network: matching, pipelining, deadlines, endings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cluster.client.connection import BrokerConnection
from cluster.protocol import fetch, messages
from cluster.protocol.apis import ApiKey
from cluster.seams.memory_transport import MemoryNetwork
from tests.cluster.client.fake_broker import FakeBroker

InitRequest = messages.request_class(ApiKey.INIT_PRODUCER_ID)
InitResponse = messages.response_class(ApiKey.INIT_PRODUCER_ID)


def init(number: int):
    """A request that carries a number, to be answered with it."""
    return InitRequest(transactional_id=None, transaction_timeout_ms=number)


def answer_number(request, header):
    return InitResponse(producer_id=request.transaction_timeout_ms, error_code=0)


def run(body: Callable[[MemoryNetwork, FakeBroker, BrokerConnection], Awaitable[None]], **options) -> None:
    """Run ``body`` with a connection to a fresh broker."""

    async def main() -> None:
        network, broker = MemoryNetwork(), FakeBroker()
        broker.answers[ApiKey.INIT_PRODUCER_ID] = answer_number
        listener = await network.transport("b").listen("b", 0, broker.accept)
        timeout_ms = options.get("timeout_ms", 1_000)
        connection = await BrokerConnection.open(network.transport("a"), "b", listener.port, "me", timeout_ms)
        async with asyncio.timeout(20):
            await body(network, broker, connection)
        connection.close()
        await listener.close()

    asyncio.run(main())


def test_pipelined_requests_are_matched():
    """Many at once, each gets its own answer, in both header versions."""

    async def body(network, broker, connection):
        answers = await asyncio.gather(*(connection.send(init(number), number % 5) for number in range(50)))
        assert [answer.producer_id for answer in answers] == list(range(50))
        assert len(broker.requests) == 50

    run(body)


def test_a_raw_exchange():
    """A request built by hand: its response comes as a copy, or in place to a function."""

    async def body(network, broker, connection):
        broker.answers[ApiKey.FETCH] = lambda request, header: messages.response_class(ApiKey.FETCH)(
            throttle_time_ms=0, error_code=0, session_id=7, responses=[]
        )
        wanted = fetch.FetchRequest(1, 0, 1, 1, 0, 0, -1, [])
        request = fetch.build_request(12, connection.next_correlation_id(), "me", wanted)
        frame = await connection.send_raw(request)
        assert fetch.parse_response(frame, 12).session_id == 7
        request = fetch.build_request(12, connection.next_correlation_id(), "me", wanted)
        parsed = await connection.exchange(request, lambda view: fetch.parse_response(view, 12).session_id)
        assert parsed == 7

    run(body)


def test_no_answer_in_time():
    """The late one times out, what came after it is lost with the connection, and the connection is closed."""

    async def body(network, broker, connection):
        network.cut("b", "a")
        slow = asyncio.ensure_future(connection.send(init(1), 0, timeout_ms=30))
        patient = asyncio.ensure_future(connection.send(init(2), 0, timeout_ms=60_000))
        with pytest.raises(TimeoutError):
            await slow
        with pytest.raises(ConnectionError, match="no response in time"):
            await patient
        assert connection.is_closed
        with pytest.raises(ConnectionError):
            await connection.send(init(3), 0)

    run(body)


def test_a_later_request_may_expire_first():
    """Each request has its own deadline."""

    async def body(network, broker, connection):
        network.cut("b", "a")
        patient = asyncio.ensure_future(connection.send(init(1), 0, timeout_ms=60_000))
        hasty = asyncio.ensure_future(connection.send(init(2), 0, timeout_ms=20))
        with pytest.raises(TimeoutError):
            await hasty
        with pytest.raises(ConnectionError):
            await patient

    run(body)


def test_an_answer_just_before_a_deadline_moves_the_timer():
    """A timer that fires for an answered request looks for the next deadline."""

    async def body(network, broker, connection):
        await connection.send(init(1), 0, timeout_ms=20)
        network.cut("b", "a")
        with pytest.raises(TimeoutError):
            await connection.send(init(2), 0, timeout_ms=60)

    run(body)


def test_the_broker_goes_away():
    """Everything in flight fails with ConnectionError."""

    async def body(network, broker, connection):
        broker.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, header: None
        waiting = [asyncio.ensure_future(connection.send(init(number), 0)) for number in range(3)]
        await broker.until_requests(3)
        broker.connections[0].close()
        for request in waiting:
            with pytest.raises(ConnectionError, match="closed by the peer"):
                await request

    run(body)


@pytest.mark.parametrize("frame", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x09\x00", b"\x00\x00\x00\x00\x00"])
def test_an_unreadable_answer(frame):
    """Too short, of another request, or not decodable: the connection is of no more use."""

    async def body(network, broker, connection):
        def garbage(request, header):
            broker.connections[0].send_frame((frame,))

        broker.answers[ApiKey.INIT_PRODUCER_ID] = garbage
        with pytest.raises(ConnectionError):
            await connection.send(init(1), 0)
        with pytest.raises(ConnectionError):
            await connection.send(init(1), 0)

    run(body)


def test_a_consumer_of_frames_that_fails():
    """Its exception reaches who asked."""

    async def body(network, broker, connection):
        request = messages.encode_request(init(1), 0, connection.next_correlation_id(), "me")

        def fail(frame: memoryview) -> None:
            raise ZeroDivisionError("a bug")

        with pytest.raises(ZeroDivisionError):
            await connection.exchange(request, fail)
        assert (await connection.send(init(5), 0)).producer_id == 5

    run(body)


def test_who_gave_up_waiting_is_forgotten():
    """A cancelled request's answer is dropped, and the next one still matches."""

    async def body(network, broker, connection):
        impatient = asyncio.ensure_future(connection.send(init(1), 0))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await connection.send(init(2), 0)).producer_id == 2
        assert impatient.cancelled()

    run(body)


def test_closing():
    """What waits fails; a second close does nothing."""

    async def body(network, broker, connection):
        waiting = asyncio.ensure_future(connection.send(init(1), 0))
        await asyncio.sleep(0)
        connection.close()
        connection.close()
        with pytest.raises(ConnectionError, match="closed from here"):
            await waiting
        assert connection.is_closed

    run(body)


def test_opening_fails():
    """Nobody there is a ConnectionError."""

    async def main() -> None:
        with pytest.raises(ConnectionError):
            await BrokerConnection.open(MemoryNetwork().transport("a"), "b", 1, "me", 100)

    asyncio.run(main())
