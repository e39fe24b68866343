"""What the simulations stand on: a part of the process that stands still, one that is killed, a disk without power."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextvars import copy_context

import pytest

from cluster.broker.control.office.candidate import RETRY_S
from cluster.metadata.memory import MemoryStore, MemoryTree
from cluster.metadata.store import ConnectionLostError, Create, SessionExpiredError, SessionState
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.memory_transport import MemoryNetwork
from tests.cluster.seams.recording import Acceptor, echo
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import OWNER, VirtualTimeLoop, run


def the_loop() -> VirtualTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


def of(owner: Hashable):
    context = copy_context()
    context.run(OWNER.set, owner)
    return context


def test_a_paused_owner_runs_later_in_order_and_others_run_on() -> None:
    """Its timers come due while it stands still, and all of them fire when it goes on."""

    async def main() -> None:
        loop, seen = the_loop(), []

        async def tick(name: str) -> None:
            for number in range(3):
                await asyncio.sleep(1)
                seen.append((name, number, loop.time()))

        a = loop.create_task(tick("a"), context=of("a"))
        b = loop.create_task(tick("b"), context=of("b"))
        loop.call_at(2.5, seen.append, "late", context=of("a"))
        await asyncio.sleep(1.5)
        loop.pause("a")
        await b
        await asyncio.sleep(2)
        assert seen == [("a", 0, 1), ("b", 0, 1), ("b", 1, 2), ("b", 2, 3)]
        assert len(loop.left_of("a")) == 1
        loop.resume("a")
        await a
        # The timer of the sleep fires first, but its task needs one turn more.
        assert seen[4:] == ["late", ("a", 1, 5), ("a", 2, 6)]
        assert loop.left_of("a") == []

    run(main())


def test_a_clock_that_drifts_runs_at_its_own_rate_with_its_timers() -> None:
    """Others do not notice; it is never set back, and what it has gained it keeps."""

    async def main() -> None:
        loop, seen = the_loop(), []

        async def tick(name: str) -> None:
            for _ in range(2):
                await asyncio.sleep(2)
                seen.append((name, loop.time(), loop.now))

        await asyncio.sleep(1)
        loop.drift("fast", 2.0)
        tasks = [loop.create_task(tick(name), context=of(name)) for name in ("fast", "steady")]
        await asyncio.sleep(2)
        loop.drift("fast", 1.0)
        await asyncio.gather(*tasks)
        assert seen == [("fast", 3, 2), ("steady", 3, 3), ("fast", 5, 3), ("steady", 5, 5)]
        await loop.create_task(asyncio.sleep(0), context=of("fast"))
        assert of("fast").run(loop.time) - loop.now == 2

    run(main())


def test_no_timer_of_a_clock_that_drifts_fires_before_its_time() -> None:
    """Not by the last bit of a float either: it would be set again for nothing, forever."""

    async def main() -> None:
        loop = the_loop()

        async def sleep() -> None:
            for number in range(200):
                due_s = loop.time() + number / 7
                await asyncio.sleep(number / 7)
                assert loop.time() >= due_s

        await asyncio.sleep(1 / 3)
        loop.drift("a", 0.7)
        await loop.create_task(sleep(), context=of("a"))

    run(main(), timeout_s=10_000)


def test_the_network_goes_by_nobodys_clock() -> None:
    """What is sent by a node whose clock is ahead arrives when it would have."""

    async def main() -> None:
        loop, network = the_loop(), MemoryNetwork(lambda source, destination, size: 100.0)
        server, client = Acceptor(echo), Acceptor()
        loop.drift("b", 4.0)
        listener = await loop.create_task(network.transport("b").listen("b", 0, server), context=of("b"))
        await asyncio.sleep(1)
        connection = await network.transport("a").connect("b", listener.port, client, timeout_ms=1000)
        began_s = loop.now
        connection.send_frame((b"hello",))
        await client.handlers[0].until(lambda handler: handler.frames == [b"hello"])
        assert loop.now == pytest.approx(began_s + 0.2)

    run(main())


def test_what_is_sent_to_a_paused_node_waits_at_its_door() -> None:
    """A connection is accepted and frames arrive, but nobody is told before the node goes on."""

    async def main() -> None:
        loop, network = the_loop(), MemoryNetwork()
        server, client = Acceptor(echo), Acceptor()
        listener = await loop.create_task(network.transport("b").listen("b", 0, server), context=of("b"))
        loop.pause("b")
        connection = await network.transport("a").connect("b", listener.port, client, timeout_ms=1000)
        connection.send_frame((b"hello",))
        await asyncio.sleep(5)
        assert server.handlers == []
        loop.resume("b")
        await client.handlers[0].until(lambda handler: handler.frames == [b"hello"])
        assert loop.time() == 5

    run(main())


def test_a_killed_process_says_nothing_and_its_peers_hear_of_the_end() -> None:
    """Its port is free at once; what it still sends reaches nobody; it cannot connect any more."""

    async def main() -> None:
        network = MemoryNetwork()
        server, client = Acceptor(), Acceptor()
        dead = network.transport("b")
        listener = await dead.listen("b", 0, server)
        await network.transport("a").connect("b", listener.port, client, timeout_ms=1000)
        dead.kill()
        server.handlers[0].connection.send_frame((b"a ghost's",))
        await client.handlers[0].until(lambda handler: handler.closed != [])
        assert client.handlers[0].frames == []
        assert server.handlers[0].closed == []
        with pytest.raises(ConnectionRefusedError):
            await network.transport("a").connect("b", listener.port, client, timeout_ms=1000)
        await network.transport("b").listen("b", listener.port, server)
        with pytest.raises(ConnectionAbortedError):
            await dead.connect("b", listener.port, client, timeout_ms=1000)
        await listener.close()
        assert await network.transport("a").connect("b", listener.port, client, timeout_ms=1000)

    run(main())


def test_a_new_process_finds_the_disk_as_the_old_one_left_it() -> None:
    """What the old one still writes, by handle or by path, is not there."""
    old = MemoryStorage()
    file = old.open("a")
    file.append(b"before")
    new = old.survivor()
    file.append(b" after")
    old.write_atomic("b", b"after")
    assert new.read("a") == b"before"
    assert not new.exists("b")


def test_a_power_loss_takes_names_that_were_not_synced() -> None:
    """Only what is spared of its bytes keeps its name by chance."""
    storage = MemoryStorage()
    storage.open("named").append(b"12345")
    storage.sync_directory(".")
    for name in ("synced", "spared", "neither"):
        storage.open(name).append(b"12345")
    storage.open("synced").fsync()
    storage.power_loss(lambda path, unsynced: 2 if path == "spared" else 0)
    assert {name: storage.read(name) for name in storage.listdir(".")} == {"named": b"", "spared": b"12"}


def test_zookeeper_does_not_wait_for_a_client_that_stands_still() -> None:
    """Its session ends on the server; it learns so when it goes on, and what it asks in between fails."""

    async def main() -> None:
        loop, tree, states = the_loop(), MemoryTree(), []
        store = MemoryStore(tree, session_timeout_ms=2000, latency_s=0.001)
        store.on_session(states.append)
        await loop.create_task(store.start(1000), context=of("a"))
        await store.create("/mine", ephemeral=True)
        asking = loop.create_task(store.exists("/mine"), context=of("a"))
        await asyncio.sleep(0)
        loop.pause("a")
        store.stall()
        await asyncio.sleep(3)
        assert tree.exists("/mine") is None
        assert states == [SessionState.CONNECTED]
        loop.resume("a")
        store.unstall()
        with pytest.raises((ConnectionLostError, SessionExpiredError)):
            await asking
        await asyncio.sleep(0.01)
        assert states == [SessionState.CONNECTED, SessionState.EXPIRED, SessionState.CONNECTED]

    run(main())


def test_a_deaf_client_is_heard_but_hears_nothing() -> None:
    """What it asks happens; answers and events come when it hears again."""

    async def main() -> None:
        tree, events = MemoryTree(), []
        store = MemoryStore(tree)
        await store.start(1000)
        store.watch_data("/n", lambda: events.append(tree.exists("/n") is not None))
        await asyncio.sleep(0.01)
        events.clear()
        store.deafen()
        creating = asyncio.ensure_future(store.create("/mine"))
        tree.multi(0, [Create("/n")])
        await asyncio.sleep(1)
        assert tree.exists("/mine") is not None
        assert (creating.done(), events) == (False, [])
        store.hear()
        assert await creating == "/mine"
        await asyncio.sleep(0.01)
        assert events == [True]

    run(main())


def test_a_killed_broker_leaves_nothing_behind() -> None:
    """Neither tasks nor timers, also when it stood still, and its successor can start at once."""

    async def main() -> None:
        async with MemoryCluster(1) as cluster:
            await cluster.create_topic("t")
            cluster.pause(1)
            process = cluster.kill(1)
            await asyncio.gather(cluster.start(1), cluster.bury(process))
            assert [left for left in cluster.left_of(process) if "MemoryWires." not in left] == []
            await cluster.until(lambda: cluster.leader("t") == 1)

    run(main())


def test_a_broker_that_fell_from_office_twice_leaves_nothing_behind() -> None:
    """It looks again once, however often it fell within the pause, and not at all after its end."""

    async def main() -> None:
        async with MemoryCluster(1) as cluster:
            role = cluster.nodes[1].control._candidate
            for _ in range(2):
                await cluster.until(lambda: role.is_active)
                # It has taken over.
                await asyncio.sleep(0.1)
                fell_s = the_loop().time()
                await the_loop().create_task(role._fall(role._office, None), context=of(cluster.processes[1].life))
            await cluster.until(lambda: role.is_active)
            assert the_loop().time() - fell_s < RETRY_S
            process = cluster.kill(1)
            await cluster.bury(process)
            assert [left for left in cluster.left_of(process) if "MemoryWires." not in left] == []

    run(main())
