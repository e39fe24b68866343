"""The contract of a metadata store, run on the one in memory and on a real ZooKeeper through kazoo."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cluster.metadata.store import (
    BadVersionError,
    Check,
    ConnectionLostError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    SessionState,
    SetData,
    Stat,
)
from tests.cluster.metadata.harness import Harness, Sessions, Watcher, eventually


def run(make_harness: Callable[[], Harness], test: Callable[[Harness, str], Awaitable[None]]) -> None:
    async def body() -> None:
        harness = make_harness()
        try:
            await test(harness, harness.root)
        finally:
            await harness.close()

    asyncio.run(body())


def test_nodes_have_data_versions_and_children(make_harness):
    """Create, get, set, delete, exists, children; and the error of each when it cannot be."""

    async def test(harness, root):
        store = await harness.open()
        assert await store.create(root, b"one") == root
        with pytest.raises(NodeExistsError):
            await store.create(root)
        data, first = await store.get(root)
        assert (data, first.version, first.ephemeral_owner) == (b"one", 0, 0)
        assert (await store.set(root, b"two", 0)).version == 1
        with pytest.raises(BadVersionError):
            await store.set(root, b"three", 0)
        assert (await store.set(root, b"three")).version == 2
        await store.create(f"{root}/b")
        await store.create(f"{root}/a")
        assert await store.children(root) == ["a", "b"]
        with pytest.raises(NotEmptyError):
            await store.delete(root)
        with pytest.raises(BadVersionError):
            await store.delete(f"{root}/a", 7)
        await store.delete(f"{root}/a", 0)
        assert await store.exists(f"{root}/a") is None
        stat = await store.exists(root)
        assert stat is not None
        assert (stat.version, stat.created_zxid) == (2, first.created_zxid)
        for call in (
            store.get(f"{root}/no"),
            store.set(f"{root}/no", b""),
            store.delete(f"{root}/no"),
            store.children(f"{root}/no"),
            store.create(f"{root}/no/deeper"),
        ):
            with pytest.raises(NoNodeError):
                await call

    run(make_harness, test)


def test_parents_and_sequences(make_harness):
    """make_parents creates what is missing; a sequence appends ten digits that grow."""

    async def test(harness, root):
        store = await harness.open()
        await store.create(f"{root}/a/b/c", b"x", make_parents=True)
        assert (await store.get(f"{root}/a"))[0] == b""
        first = await store.create(f"{root}/a/n_", sequence=True)
        second = await store.create(f"{root}/a/n_", sequence=True)
        assert first < second
        assert len(first) == len(f"{root}/a/n_") + 10

    run(make_harness, test)


def test_a_node_made_again_has_a_larger_czxid(make_harness):
    """The broker epoch (KIP-380) rests on it."""

    async def test(harness, root):
        store = await harness.open()
        await store.create(root)
        before = await store.exists(root)
        await store.delete(root)
        await store.create(root)
        after = await store.exists(root)
        assert before is not None
        assert after is not None
        assert after.created_zxid > before.created_zxid

    run(make_harness, test)


def test_a_multi_is_all_or_nothing(make_harness):
    """Results in order; the error of the first operation that fails, and nothing of the others."""

    async def test(harness, root):
        store = await harness.open()
        await store.create(root, b"0")
        path, stat, gone, checked = await store.multi(
            [Create(f"{root}/a", b"a"), SetData(root, b"1", 0), Delete(f"{root}/a"), Check(root, 1)]
        )
        assert (path, gone, checked) == (f"{root}/a", None, None)
        assert isinstance(stat, Stat)
        assert stat.version == 1
        for operations, error in (
            ([Create(f"{root}/b"), Check(root, 5), Create(root)], BadVersionError),
            ([SetData(root, b"2", 1), Create(root), Check(root, 9)], NodeExistsError),
            ([Create(f"{root}/b"), Delete(f"{root}/no")], NoNodeError),
            ([Create(f"{root}/b"), Create(f"{root}/b/c"), Delete(f"{root}/b")], NotEmptyError),
        ):
            with pytest.raises(error):
                await store.multi(operations)
        assert await store.get(root) == (b"1", await store.exists(root))
        assert await store.children(root) == []

    run(make_harness, test)


def test_an_ephemeral_node_is_handed_over(make_harness):
    """It carries its session, goes when that is closed, and a watcher can take the place."""

    async def test(harness, root):
        owner, heir = await harness.open(), await harness.open()
        await heir.create(root)
        await owner.create(f"{root}/e", b"owner", ephemeral=True)
        stat = await heir.exists(f"{root}/e")
        assert stat is not None
        assert stat.ephemeral_owner == owner.session_id != heir.session_id
        watcher = Watcher()
        heir.watch_data(f"{root}/e", watcher)
        await watcher.called()
        await owner.close()
        while await heir.exists(f"{root}/e") is not None:
            await watcher.called()
        await heir.create(f"{root}/e", b"heir", ephemeral=True)
        with pytest.raises(SessionExpiredError):
            await owner.get(root)

    run(make_harness, test)


def test_a_data_watch_lasts(make_harness):
    """Called once in place, and after each creation, change and deletion, any number of times."""

    async def test(harness, root):
        store, other = await harness.open(), await harness.open()
        watcher = Watcher()
        store.watch_data(root, watcher)
        await watcher.called()
        await other.create(root, b"1")
        await watcher.called()
        assert (await store.get(root))[0] == b"1"
        await other.set(root, b"2")
        await watcher.called()
        assert (await store.get(root))[0] == b"2"
        await other.delete(root)
        await watcher.called()
        assert await store.exists(root) is None
        await other.create(root, b"3")
        await watcher.called()

    run(make_harness, test)


def test_a_children_watch_lasts_and_needs_no_node(make_harness):
    """The path need not exist; afterwards each change of the set of children is heard."""

    async def test(harness, root):
        store, other = await harness.open(), await harness.open()
        watcher = Watcher()
        store.watch_children(root, watcher)
        await watcher.called()
        await other.create(root)
        await watcher.called()
        for name in ("a", "b"):
            await other.create(f"{root}/{name}")
            await eventually(lambda name=name: _has_child(store, root, name))
            await watcher.called()
        await other.delete(f"{root}/a")
        await watcher.called()
        assert await store.children(root) == ["b"]

    run(make_harness, test)


async def _has_child(store, path, name):
    return name in await store.children(path)


def test_a_session_expires_and_a_new_one_follows(make_harness):
    """EXPIRED, then CONNECTED with another id; ephemerals are gone; watches work on, and are called once for it."""

    async def test(harness, root):
        store, other = await harness.open(), await harness.open()
        await other.create(root)
        await store.create(f"{root}/e", ephemeral=True)
        watcher = Watcher()
        store.watch_children(root, watcher)
        await watcher.called()
        sessions, first = Sessions(store), store.session_id
        await harness.expire(store)
        await eventually(lambda: _is_gone(other, f"{root}/e"))
        seen = await sessions.until(SessionState.EXPIRED)
        assert SessionState.CONNECTED not in seen[:-1]
        await sessions.until(SessionState.CONNECTED)
        assert store.session_id not in (0, first)
        await watcher.called()
        await other.create(f"{root}/x")
        await eventually(lambda: _has_child(store, root, "x"))
        await store.create(f"{root}/e", ephemeral=True)

    run(make_harness, test)


async def _is_gone(store, path):
    return await store.exists(path) is None


def test_a_short_cut_keeps_the_session(make_harness):
    """SUSPENDED, calls fail as lost, then CONNECTED in the same session with its ephemerals, and watches are called."""

    async def test(harness, root):
        store, other = await harness.open(), await harness.open()
        await other.create(root)
        await store.create(f"{root}/e", ephemeral=True)
        watcher = Watcher()
        store.watch_data(root, watcher)
        await watcher.called()
        sessions, first = Sessions(store), store.session_id
        await harness.cut(store)
        assert await sessions.next() is SessionState.SUSPENDED
        with pytest.raises(ConnectionLostError):
            await store.get(root)
        await other.set(root, b"meanwhile")
        await harness.heal(store)
        assert await sessions.next() is SessionState.CONNECTED
        assert store.session_id == first
        await watcher.called()
        assert (await store.get(root))[0] == b"meanwhile"
        assert await other.exists(f"{root}/e") is not None

    run(make_harness, test)


def test_a_long_cut_ends_the_session(make_harness):
    """The server ends it after its timeout; the client learns it when it is back."""

    async def test(harness, root):
        store, other = await harness.open(), await harness.open()
        await other.create(root)
        await store.create(f"{root}/e", ephemeral=True)
        sessions, first = Sessions(store), store.session_id
        await harness.cut(store)
        await eventually(lambda: _is_gone(other, f"{root}/e"))
        await harness.heal(store)
        seen = await sessions.until(SessionState.EXPIRED)
        assert SessionState.CONNECTED not in seen
        await sessions.until(SessionState.CONNECTED)
        assert store.session_id not in (0, first)

    run(make_harness, test)


def test_calls_that_run_together_are_done_in_their_order(make_harness):
    """A session's requests are not reordered, however many wait."""

    async def test(harness, root):
        store = await harness.open()
        await store.create(root)
        stats = await asyncio.gather(*(store.set(root, str(n).encode()) for n in range(200)))
        assert [stat.version for stat in stats] == list(range(1, 201))
        assert (await store.get(root))[0] == b"199"

    run(make_harness, test)


def test_starting_without_a_server_times_out(make_harness):
    """A clear TimeoutError, and nothing left behind."""

    async def test(harness, root):
        store = await harness.open()
        await harness.cut(store)
        await store.close()
        fresh = type(store).__new__(type(store))
        if hasattr(store, "_tree"):
            fresh.__init__(store._tree)
            fresh._link.clear()
        else:
            fresh.__init__(store._hosts, 1000)
        with pytest.raises(TimeoutError):
            await fresh.start(300)
        await fresh.close()

    run(make_harness, test)
