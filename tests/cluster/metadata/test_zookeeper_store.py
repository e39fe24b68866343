"""What only the real store can get wrong: timeouts, a busy loop, a kazoo thread that dies, a silent server."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from cluster.broker.control.membership.session import Session
from cluster.metadata import limits, loop_pulse
from cluster.metadata.store import (
    ConnectionLostError,
    Create,
    NotWrittenError,
    SessionState,
    SetData,
    TooLargeError,
)
from cluster.metadata.zookeeper import ZooKeeperStore
from tests.cluster.metadata.harness import PATIENCE_S, SESSION_MS, Forwarder, Sessions, ZooKeeperHarness

pytestmark = pytest.mark.integration


def test_the_negotiated_timeout_is_exposed_and_a_difference_is_warned_of(zookeeper, caplog):
    """Asked for less than two ticks, the server grants two: the broker must know what its session really is."""

    async def body():
        store = ZooKeeperStore("{}:{}".format(*zookeeper), 100)
        await store.start(20_000)
        assert store.session_timeout_ms == 400
        await store.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(body())
    assert "granted a session timeout of 400 ms instead of 100 ms" in caplog.text


def test_a_busy_event_loop_does_not_starve_the_heartbeat(zookeeper):
    """kazoo's thread pings while the loop computes for three sessions on end (recovery, compaction)."""

    async def body():
        store = ZooKeeperStore("{}:{}".format(*zookeeper), 600)
        await store.start(20_000)
        sessions, first = Sessions(store), store.session_id
        loop = asyncio.get_running_loop()
        until = loop.time() + 1.8
        count = 0
        while loop.time() < until:
            count += sum(range(2000))
        assert await store.exists("/") is not None
        assert store.session_id == first
        assert sessions._states.empty()
        await store.close()

    asyncio.run(body())


def test_a_loop_that_is_stuck_loses_its_session(zookeeper, monkeypatch):
    """Others are to take over from a broker that answers no one. When it turns again, it has a session again."""
    monkeypatch.setattr(loop_pulse, "LEAST_STUCK_MS", 300)
    monkeypatch.setattr(loop_pulse, "BEAT_MS", 100)

    async def body():
        store = ZooKeeperStore("{}:{}".format(*zookeeper), 600)
        await store.start(20_000)
        other = ZooKeeperStore("{}:{}".format(*zookeeper), 600)
        await store.create("/stuck", ephemeral=True)
        sessions, first = Sessions(store), store.session_id
        asyncio.get_running_loop().call_soon(time.sleep, 4)
        await sessions.until(SessionState.EXPIRED)
        await sessions.until(SessionState.CONNECTED)
        assert store.session_id not in (0, first)
        await other.start(20_000)
        assert await other.exists("/stuck") is None
        for each in (store, other):
            await each.close()

    asyncio.run(body())


def test_a_client_whose_thread_dies_is_replaced(zookeeper, monkeypatch):
    """An error that kazoo does not expect ends its thread for good; the store goes on in a new session."""

    async def body():
        store = ZooKeeperStore("{}:{}".format(*zookeeper), 600)
        await store.start(20_000)
        sessions, first = Sessions(store), store.session_id
        connection = store._client._connection
        monkeypatch.setattr(connection, "_read_socket", lambda timeout: 1 // 0)
        with pytest.raises(ConnectionLostError):
            await store.exists("/")
        await sessions.until(SessionState.EXPIRED)
        await sessions.until(SessionState.CONNECTED)
        assert store.session_id not in (0, first)
        assert await store.exists("/") is not None
        await store.close()

    asyncio.run(body())


def test_a_server_that_answers_nothing_is_noticed_within_the_session(zookeeper):
    """Bytes vanish without an error: SUSPENDED comes from the missing pings, and pending calls fail as lost."""

    async def body():
        harness = ZooKeeperHarness(zookeeper, "/unused")
        store = await harness.open()
        sessions = Sessions(store)
        harness._links[store].swallows = True
        began = asyncio.get_running_loop().time()
        with pytest.raises(ConnectionLostError):
            async with asyncio.timeout(PATIENCE_S):
                await store.get("/")
        assert await sessions.next() is SessionState.SUSPENDED
        # Pings go out at least every third of a session, so two of them suffice; the rest is for a loaded machine.
        assert asyncio.get_running_loop().time() - began < 5 * SESSION_MS / 1000
        await harness.close()

    asyncio.run(body())


def test_a_handshake_that_nobody_answers_does_not_cost_the_session(zookeeper):
    """A ZooKeeper that is just starting may leave a connection open and silent: another is made in time."""

    async def body():
        link = Forwarder(zookeeper)
        await link.up()
        store = ZooKeeperStore(f"127.0.0.1:{link.port}", 6000)
        await store.start(20_000)
        sessions, first = Sessions(store), store.session_id
        await link.down()
        link.silent = 1
        await link.up()
        assert await sessions.until(SessionState.CONNECTED) == [SessionState.SUSPENDED, SessionState.CONNECTED]
        assert (link.silent, store.session_id) == (0, first)
        await store.close()
        await link.down()

    asyncio.run(body())


def test_the_largest_request_is_taken_and_a_larger_one_is_not_sent(zookeeper, monkeypatch):
    """Our limit is within the server's; beyond it ZooKeeper would drop the connection, each time it is sent again."""

    async def body():
        harness = ZooKeeperHarness(zookeeper, "/large")
        store = await harness.open()
        session, sessions = Session(store), Sessions(store)
        session._changed(SessionState.CONNECTED)
        room = limits.MAX_REQUEST_BYTES - limits.request_bytes([Create("/large-node")])
        await session.write([Create("/large-node", bytes(room))])
        assert len((await store.get("/large-node"))[0]) == room
        with pytest.raises(TooLargeError, match="/large-node"):
            await session.write([SetData("/large-node", bytes(room + 1))])
        first = store.session_id
        monkeypatch.setattr(limits, "MAX_REQUEST_BYTES", 1 << 30)
        with pytest.raises(NotWrittenError, match="8 times"):
            await session.write([SetData("/large-node", bytes(room + 1000))])
        assert await sessions.next() is SessionState.SUSPENDED
        assert await session.read(lambda: store.exists("/large-node")) is not None
        assert store.session_id == first
        await store.delete("/large-node")
        await harness.close()

    asyncio.run(body())


def test_the_chroot_is_made_by_whoever_makes_parents(zookeeper):
    """As Kafka's brokers make that of zookeeper.connect; also by several at once."""

    async def body():
        hosts = "{}:{}/made/by/us".format(*zookeeper)
        stores = [ZooKeeperStore(hosts, SESSION_MS) for _ in range(3)]
        await asyncio.gather(*(store.start(20_000) for store in stores))
        created = [store.create(f"/brokers/{number}", make_parents=True) for number, store in enumerate(stores)]
        assert await asyncio.gather(*created) == ["/brokers/0", "/brokers/1", "/brokers/2"]
        assert await stores[0].children("/brokers") == ["0", "1", "2"]
        for store in stores:
            await store.close()
        plain = ZooKeeperStore("{}:{}".format(*zookeeper), SESSION_MS)
        await plain.start(20_000)
        assert await plain.children("/made/by/us") == ["brokers"]
        await plain.close()

    asyncio.run(body())
