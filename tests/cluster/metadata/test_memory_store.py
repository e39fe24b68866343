"""What tests and simulation need of the store in memory beyond the contract: answers and requests that are lost."""

from __future__ import annotations

import asyncio

import pytest

from cluster.metadata.memory import MemoryStore, MemoryTree
from cluster.metadata.store import ConnectionLostError, SessionExpiredError


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
