"""Reading back after a lost answer, and the fence: the two rules on which every write of a controller rests."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from cluster.broker.control.controller.epoch_fence import ControllerMovedError, EpochFence
from cluster.broker.control.membership.event_queue import EventQueue
from cluster.broker.control.membership.membership import Membership, Registrar
from cluster.broker.control.membership.session import Session
from cluster.broker.control.office.elector import Elector
from cluster.metadata.memory import MemoryStore, MemoryTree
from cluster.metadata.paths import CONTROLLER, CONTROLLER_EPOCH, broker_path
from cluster.metadata.store import BadVersionError, Create, Delete, NodeExistsError, SessionExpiredError, SetData
from cluster.metadata.znodes import BrokerRegistration
from tests.support.virtual_time import LoopClock, run


async def opened(tree: MemoryTree) -> tuple[Session, MemoryStore]:
    store = MemoryStore(tree, session_timeout_ms=1000, latency_s=0.001)
    session = Session(store)
    await store.start(1000)
    await asyncio.sleep(0)
    return session, store


def test_a_write_whose_answer_was_lost_is_done_once():
    """It is looked for before it is tried again: no second version, no NodeExists."""

    async def body():
        tree = MemoryTree()
        session, store = await opened(tree)
        for operation in (Create("/a", b"1"), SetData("/a", b"2", 0), SetData("/a", b"3", 1), Delete("/a")):
            store.lose_next_answer()
            await session.write([operation])
            if not isinstance(operation, Delete):
                assert tree.get("/a")[0] == operation.data
        assert tree.exists("/a") is None

    run(body())


def test_a_write_whose_request_was_lost_is_done_after_all():
    """Reading back shows that it has not happened."""

    async def body():
        tree = MemoryTree()
        session, store = await opened(tree)
        for operation in (Create("/a", b"1"), SetData("/a", b"2", 0)):
            store.lose_next_request()
            await session.write([operation])
        assert (tree.get("/a")[0], tree.get("/a")[1].version) == (b"2", 1)

    run(body())


def test_the_same_bytes_at_another_version_are_not_our_success():
    """Another writer wrote what we meant to, and more: a compare-and-set must not be taken for done."""

    async def body():
        tree = MemoryTree()
        session, store = await opened(tree)
        tree.create(0, Create("/a", b"1"))
        store.lose_next_request()
        write = asyncio.ensure_future(session.write([SetData("/a", b"2", 0)]))
        await asyncio.sleep(0.01)
        tree.multi(0, [SetData("/a", b"x"), SetData("/a", b"2")])
        with pytest.raises(BadVersionError):
            await write

    run(body())


def test_an_ephemeral_node_of_another_session_is_not_our_success():
    """Equal data proves nothing: a former life of this broker writes the same."""

    async def body():
        tree = MemoryTree()
        session, store = await opened(tree)
        _, other = await opened(tree)
        store.lose_next_request()
        write = asyncio.ensure_future(session.write([Create("/e", b"1", ephemeral=True)]))
        await asyncio.sleep(0.01)
        await other.create("/e", b"1", ephemeral=True)
        with pytest.raises(NodeExistsError):
            await write

    run(body())


def test_reads_wait_for_the_connection_and_end_with_the_session():
    """A cut is waited out; an expiry is not, although a new session follows."""

    async def body():
        session, store = await opened(MemoryTree())
        await store.create("/a", b"1")
        store.cut()
        read = asyncio.ensure_future(session.read(lambda: store.get("/a")))
        await asyncio.sleep(0.5)
        assert not read.done()
        store.heal()
        assert (await read)[0] == b"1"
        store.cut()
        read = asyncio.ensure_future(session.read(lambda: store.get("/a")))
        await asyncio.sleep(1.5)
        store.heal()
        with pytest.raises(SessionExpiredError):
            await read
        assert (await session.read(lambda: store.get("/a")))[0] == b"1"

    run(body())


async def elected(tree: MemoryTree, broker_id: int) -> tuple[EpochFence | None, Session, Elector]:
    session, _ = await opened(tree)
    elector = Elector(session, broker_id, LoopClock())
    return await elector.run(), session, elector


def test_a_former_controller_cannot_write():
    """KAFKA-14154: its fence fails although the node itself is as it thinks; nothing is written, and it is told why."""

    async def body():
        tree = MemoryTree()
        fence, _, elector = await elected(tree, 1)
        assert fence is not None
        await fence.write(Create("/state", b"by 1"))
        await elector.release()
        successor, _, _ = await elected(tree, 2)
        assert successor is not None
        assert (fence.epoch, successor.epoch) == (1, 2)
        with pytest.raises(ControllerMovedError):
            await fence.write(SetData("/state", b"by 1 again", 0))
        assert tree.get("/state")[0] == b"by 1"
        await successor.write(SetData("/state", b"by 2", 0))
        with pytest.raises(BadVersionError):
            await successor.write(SetData("/state", b"by 2 again", 0))

    run(body())


def test_a_revoked_fence_writes_nothing():
    """Resigning takes effect at once, also for what is on its way to being written."""

    async def body():
        tree = MemoryTree()
        fence, _, _ = await elected(tree, 1)
        assert fence is not None
        fence.revoke()
        with pytest.raises(ControllerMovedError):
            await fence.write(Create("/state"))
        assert tree.exists("/state") is None

    run(body())


@pytest.mark.parametrize("lost", ["answer", "request"])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_an_election_is_won_once_whatever_is_lost(lost, call):
    """The multi's answer may be lost: the same session and the proposed epoch say that it was our own success."""

    async def body():
        tree = MemoryTree()
        session, store = await opened(tree)
        tree.create(0, Create(CONTROLLER_EPOCH, b"4"))
        elector = Elector(session, 1, LoopClock())
        seen = 0
        forward = store._call

        async def counting(operation, writes=()):
            nonlocal seen
            seen += 1
            if seen == call:
                (store.lose_next_answer if lost == "answer" else store.lose_next_request)()
            return await forward(operation, writes)

        store._call = counting  # type: ignore[method-assign]
        fence = await elector.run()
        if fence is None:
            # A lost request of the multi itself is a lost election; the next attempt wins.
            assert lost == "request"
            fence = await elector.run()
        assert fence is not None
        assert (fence.epoch, tree.get(CONTROLLER_EPOCH)[0]) == (5, b"5")
        await fence.write(Create("/state"))

    run(body())


def test_the_loser_of_an_election_knows_it():
    """Same epoch read, another's node: not won, even with the same broker id (a former life)."""

    async def body():
        tree = MemoryTree()
        first, _, _ = await elected(tree, 1)
        second, _, loser = await elected(tree, 1)
        assert first is not None
        assert second is None
        incumbent = await loser.incumbent()
        assert incumbent is not None
        assert (incumbent.broker_id, incumbent.ours) == (1, False)

    run(body())


def test_release_never_touches_another_session_s_node():
    """Only our own /controller, and only while no other was elected since."""

    async def body():
        tree = MemoryTree()
        first, _, _ = await elected(tree, 1)
        _, _, other = await elected(tree, 2)
        await other.release()
        assert first is not None
        assert tree.exists(CONTROLLER) is not None
        await first.write(Create("/still-mine"))

    run(body())


@pytest.mark.parametrize("lost", ["answer", "request", "none"])
def test_a_registration_whose_answer_was_lost_is_recognized(lost):
    """The node is of our session: registered, with its czxid as epoch, and made only once."""

    async def body():
        tree = MemoryTree()
        session, store = await opened(tree)
        for path in ("/brokers", "/brokers/ids"):
            tree.create(0, Create(path))
        forward = store.create

        async def create(*arguments, **options):
            if lost != "none":
                (store.lose_next_answer if lost == "answer" else store.lose_next_request)()
                store.create = forward  # type: ignore[method-assign]
            return await forward(*arguments, **options)

        store.create = create  # type: ignore[method-assign]
        epoch = await Registrar(session, 1).register(BrokerRegistration(1, ()), patience_s=None)
        stat = tree.exists(broker_path(1))
        assert stat is not None
        assert (epoch, stat.ephemeral_owner, stat.version) == (stat.created_zxid, store.session_id, 0)

    run(body())


def test_a_former_node_is_waited_for_and_never_deleted():
    """It goes with its own session; a third broker that takes the place in between is waited for as well."""

    async def body():
        tree = MemoryTree()
        _, former = await opened(tree)
        session, store = await opened(tree)
        for path in ("/brokers", "/brokers/ids"):
            tree.create(0, Create(path))
        await former.create(broker_path(1), b"", ephemeral=True)
        registering = asyncio.ensure_future(Registrar(session, 1).register(BrokerRegistration(1, ()), patience_s=None))
        await asyncio.sleep(30)
        assert not registering.done()
        assert tree.exists(broker_path(1)).ephemeral_owner == former.session_id
        former.expire()
        epoch = await registering
        assert tree.exists(broker_path(1)).ephemeral_owner == store.session_id
        assert epoch == tree.exists(broker_path(1)).created_zxid

    run(body())


@pytest.mark.timeout(10)
def test_a_session_that_ends_before_the_first_registration_is_waited_for():
    """Not asked again and again meanwhile: nothing else would run, not even what brings the next session."""

    async def body():
        tree = MemoryTree()
        session, store = await opened(tree)
        membership = Membership(
            broker_id=1,
            session=session,
            queue=EventQueue("membership"),
            registration=lambda: BrokerRegistration(1, ()),
            journal=lambda _name, _fields: None,
        )
        loop = asyncio.get_running_loop()
        back_at_s, calls, forward = loop.time() + 1, 0, store.exists

        async def exists(path):
            nonlocal calls
            calls += 1
            if loop.time() < back_at_s:
                raise SessionExpiredError("the session is over")
            return await forward(path)

        store.exists = exists  # type: ignore[method-assign]
        await membership.cluster_id(Random(1))
        await membership.join()
        assert membership.is_registered
        assert calls < 50

    run(body())
