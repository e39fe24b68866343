"""What tests and simulation need of the store in memory beyond the contract: answers and requests that are lost."""

from __future__ import annotations

import asyncio

import pytest

from cluster.metadata.memory import MemoryStore, MemoryTree
from cluster.metadata.store import ConnectionLostError, Create, NodeExistsError, NoNodeError, SessionExpiredError
from tests.support.virtual_time import run


async def opened(tree: MemoryTree, **options) -> MemoryStore:
    store = MemoryStore(tree, **options)
    await store.start(1000)
    return store


def test_a_lost_answer_has_happened_and_a_lost_request_has_not():
    """Both look the same to the caller: ConnectionLostError. Only reading back tells them apart."""

    async def body():
        store = await opened(MemoryTree())
        store.lose_next_answer()
        with pytest.raises(ConnectionLostError):
            await store.create("/done")
        store.lose_next_request()
        with pytest.raises(ConnectionLostError):
            await store.create("/not-done")
        assert await store.exists("/done") is not None
        assert await store.exists("/not-done") is None

    asyncio.run(body())


def test_a_cut_between_request_and_answer_loses_the_answer():
    """The request was on its way before the cut; with latency, both halves can be hit."""

    async def body():
        tree = MemoryTree()
        store, other = await opened(tree, latency_s=0.02), await opened(tree)
        for delay_s, happens in ((0.03, True), (0.01, False)):
            call = asyncio.ensure_future(store.create(f"/n{happens}"))
            await asyncio.sleep(delay_s)
            store.cut()
            with pytest.raises(ConnectionLostError):
                await call
            assert (await other.exists(f"/n{happens}") is not None) is happens
            store.heal()

    asyncio.run(body())


def test_a_call_of_a_session_that_ended_is_not_done_in_the_next_one():
    """What was on its way when the session expired fails with it."""

    async def body():
        store = await opened(MemoryTree(), latency_s=0.01)
        call = asyncio.ensure_future(store.create("/late"))
        await asyncio.sleep(0)
        store.expire()
        with pytest.raises(SessionExpiredError):
            await call
        assert await store.exists("/late") is None

    asyncio.run(body())


def test_ephemerals_have_no_children_and_reprs_are_one_line():
    """ZooKeeper refuses it; the reprs are for logs."""

    async def body():
        tree = MemoryTree()
        store = await opened(tree)
        await store.create("/e", ephemeral=True)
        with pytest.raises(Exception, match="ephemeral"):
            await store.create("/e/child")
        assert repr(store) == f"MemoryStore(session={store.session_id:#x}, connected)"
        assert "nodes=2" in repr(tree)

    asyncio.run(body())


def test_a_slow_link_brings_everything_late_and_in_order():
    """Requests, answers and events; what comes after it is quick again does not overtake."""

    async def body():
        loop, tree, heard = asyncio.get_running_loop(), MemoryTree(), []
        store = await opened(tree, latency_s=0.001)
        store.watch_data("/n", lambda: heard.append(("event", loop.time())))
        await asyncio.sleep(0.01)
        heard.clear()
        store.slow(1.0)
        began_s = loop.time()
        asking = asyncio.ensure_future(store.exists("/m"))
        tree.multi(0, [Create("/n")])
        await asyncio.sleep(0.5)
        store.slow(None)
        tree.multi(0, [Create("/m")])
        assert await asking is not None
        # The request took a second; its answer could not come before the event of half a second ago.
        assert heard == [("event", began_s + 1.0)]
        assert loop.time() == pytest.approx(began_s + 1.001)
        again_s = loop.time()
        assert await store.exists("/m") is not None
        assert loop.time() == pytest.approx(again_s + 0.002)

    run(body())


def test_a_broken_link_loses_what_is_under_way_at_once():
    """Nobody waits for a slow answer over a link that is cut."""

    async def body():
        loop = asyncio.get_running_loop()
        store = await opened(MemoryTree(), latency_s=0.001)
        store.slow(5.0)
        asking = [asyncio.ensure_future(store.exists("/n")) for _ in range(3)]
        await asyncio.sleep(1.0)
        store.cut()
        assert all(
            isinstance(end, ConnectionLostError) for end in await asyncio.gather(*asking, return_exceptions=True)
        )
        assert loop.time() == 1.0

    run(body())


@pytest.mark.parametrize(("end", "error"), [("cut", ConnectionLostError), ("close", SessionExpiredError)])
def test_nobody_waits_for_a_follower_that_lags_once_the_link_is_gone(end: str, error: type[Exception]):
    """The write has happened, but no one here can be told: neither over a link that is cut, nor after a close."""

    async def body():
        loop, tree = asyncio.get_running_loop(), MemoryTree()
        store = await opened(tree, latency_s=0.001)
        store.lag(3.0)
        writing = asyncio.ensure_future(store.create("/n"))
        await asyncio.sleep(1.0)
        if end == "cut":
            store.cut()
        else:
            await store.close()
        with pytest.raises(error):
            await writing
        assert loop.time() == 1.0
        assert tree.exists("/n") is not None

    run(body())


def test_a_client_of_a_follower_that_lags_reads_what_is_old_but_its_own_writes():
    """What others write is seen and heard of late, all of it in order, and at once when the follower has caught up."""

    async def body():
        loop, tree, heard = asyncio.get_running_loop(), MemoryTree(), []
        store, other = await opened(tree), await opened(tree)
        store.watch_children("/", lambda: heard.append(loop.time()))
        await asyncio.sleep(0.01)
        heard.clear()
        store.lag(2.0)
        began_s = loop.time()
        await other.create("/n", b"1")
        await other.set("/n", b"2")
        await asyncio.sleep(1.0)
        assert (await store.exists("/n"), await store.children("/"), heard) == (None, [], [])
        with pytest.raises(NoNodeError):
            await store.get("/n")
        # Its own write is answered when the follower has it, and with it all before.
        asking = asyncio.ensure_future(store.create("/mine"))
        await asyncio.sleep(0)
        behind = asyncio.ensure_future(store.exists("/mine"))
        assert await asking == "/mine"
        assert await behind is not None
        assert loop.time() == began_s + 3.0
        assert (await store.get("/n"))[0] == b"2"
        assert heard == [began_s + 2.0, began_s + 3.0]
        await other.delete("/n")
        assert await store.exists("/n") is not None
        with pytest.raises(NodeExistsError):
            await store.create("/mine")
        assert await store.exists("/n") is None
        await other.create("/n")
        writing = asyncio.ensure_future(store.set("/n", b"3", 0))
        await asyncio.sleep(0.5)
        store.keep_up()
        assert (await writing).version == 1
        assert loop.time() == began_s + 5.5
        assert (await store.get("/n"))[0] == b"3"

    run(body())
