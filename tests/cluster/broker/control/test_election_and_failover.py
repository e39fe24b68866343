"""Several control planes over one store and one network: who is controller, and what happens when brokers die."""

from __future__ import annotations

import asyncio
import logging

import pytest

from cluster.broker.control.controller.cluster_reader import ClusterReader
from cluster.broker.control.controller.epoch_fence import NotController
from cluster.broker.control.membership.membership import BrokerIdTaken
from cluster.metadata.paths import CONTROLLER, CONTROLLER_EPOCH, broker_path
from cluster.metadata.store import SessionExpiredError
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.control.cluster import SESSION_MS, Cluster
from tests.support.virtual_time import run


def kinds(broker) -> list[ApiKey]:
    return [ApiKey(request.API_KEY) for request in broker.received]


def test_one_controller_is_elected_and_everybody_knows_it():
    """The first registered broker wins epoch 1; the others follow /controller; all hear of all live brokers."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        assert [broker.plane.is_controller for broker in brokers] == [True, False, False]
        assert [broker.plane.controller_id for broker in brokers] == [1, 1, 1]
        assert cluster.tree.get(CONTROLLER_EPOCH)[0] == b"1"
        await cluster.until(lambda: all(len(broker.cache.alive_brokers()) == 3 for broker in brokers))
        epochs = [cluster.tree.get(broker_path(n))[1].created_zxid for n in (1, 2, 3)]
        assert [broker.plane.broker_epoch for broker in brokers] == epochs
        assert len({broker.cache.cluster_id for broker in brokers}) == 1
        await cluster.stop()

    run(body())


def test_a_topic_is_created_led_and_told(caplog):
    """States in ZooKeeper, LeaderAndIsr at the replicas before UpdateMetadata, metadata at everybody."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3, 4)
        result = await cluster.create_topic("t", 4, 3, configs={"min.insync.replicas": "2"})
        assert (result.num_partitions, result.replication_factor) == (4, 3)
        for number in range(4):
            state = cluster.state("t", number)
            assert state is not None
            assert (state["leader"], state["leader_epoch"], state["version"]) == (state["isr"][0], 0, 0)
            assert len(state["isr"]) == 3
            for broker in brokers:
                known = broker.cache.partition("t", number)
                assert known is not None
                assert (known.leader, known.isr) == (state["leader"], tuple(state["isr"]))
                role = broker.roles.get(("t", number))
                assert (role is not None) == (broker.broker_id in state["isr"])
                assert role is None or role.is_new
        for broker in brokers:
            assert broker.cache.topic("t").topic_id == result.topic_id
            order = kinds(broker)
            if ApiKey.LEADER_AND_ISR in order:
                told = order.index(ApiKey.LEADER_AND_ISR)
                assert ApiKey.UPDATE_METADATA in order[told:]
                assert broker.configs_at_roles == {"t": {"min.insync.replicas": "2"}}
        await cluster.stop()

    with caplog.at_level(logging.WARNING):
        run(body())
    assert [record.getMessage() for record in caplog.records if "stops" not in record.getMessage()] == []


def test_a_controller_that_comes_back_gives_no_topic_the_id_of_another():
    """Although it draws from its seed what it drew in its former life. By a shared id a leader's ISR changes would be
    taken for those of the other topic, and refused for ever."""

    async def body():
        cluster = Cluster()
        await cluster.start(1)
        ids = [(await cluster.create_topic("a", factor=1)).topic_id]
        await cluster.brokers[1].crash()
        await asyncio.sleep(2 * SESSION_MS / 1000)
        await cluster.start(1)
        await cluster.until(lambda: cluster.brokers[1].plane.is_controller)
        ids += [(await cluster.create_topic(name, factor=1)).topic_id for name in "bc"]
        assert len(set(ids)) == 3
        await cluster.stop()

    run(body())


def test_a_dead_leader_is_replaced_when_its_session_ends():
    """The next in assignment order leads, the dead one leaves the ISR, leader epoch + 1, and brokers are told."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [2, 3, 1]}, partitions=-1, factor=-1)
        assert cluster.leader() == 2
        before = asyncio.get_running_loop().time()
        await cluster.brokers[2].crash()
        await cluster.until(lambda: cluster.leader() == 3)
        took_s = asyncio.get_running_loop().time() - before
        assert SESSION_MS / 1000 <= took_s < SESSION_MS / 1000 + 0.1
        state = cluster.state()
        assert (state["isr"], state["leader_epoch"], state["version"]) == ([3, 1], 1, 1)
        for broker in (brokers[0], brokers[2]):
            await cluster.until(lambda broker=broker: broker.roles["t", 0].leader_epoch == 1)
            assert broker.roles["t", 0].leader == 3
            assert broker.cache.partition("t", 0).offline_replicas == (2,)
            assert [live.broker_id for live in broker.cache.alive_brokers()] == [1, 3]
        await cluster.stop()

    run(body())


def test_a_broker_that_comes_back_is_told_what_it_hosts():
    """A full LeaderAndIsr with its new broker epoch; the ISR stays without it until the leader asks."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        await cluster.create_topic()
        leader = cluster.leader()
        gone = next(n for n in (2, 3) if n != leader)
        former = cluster.brokers[gone].plane.broker_epoch
        await cluster.brokers[gone].crash()
        await cluster.until(lambda: gone not in cluster.state()["isr"])
        [back] = await cluster.start(gone)
        assert back.plane.broker_epoch > former
        await cluster.until(lambda: ("t", 0) in back.roles)
        assert {request.broker_epoch for request in back.received} == {back.plane.broker_epoch}
        full = [r for r in back.received if r.API_KEY == ApiKey.LEADER_AND_ISR]
        assert full[0].type == 2
        assert gone not in cluster.state()["isr"]
        await cluster.until(lambda: back.cache.partition("t", 0).offline_replicas == ())
        await cluster.stop()

    run(body())


def test_a_restarted_broker_waits_for_its_former_node_and_does_not_delete_it():
    """Registered only when the former session is over; the rest of the cluster sees a death and an arrival."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2)
        former = cluster.tree.get(broker_path(2))[1]
        await cluster.brokers[2].crash()
        began = asyncio.get_running_loop().time()
        [back] = await cluster.start(2)
        waited_s = asyncio.get_running_loop().time() - began
        assert SESSION_MS / 1000 - 0.1 <= waited_s < SESSION_MS / 1000 + 0.2
        assert back.plane.broker_epoch > former.created_zxid
        await cluster.stop()

    run(body())


def test_a_broker_id_that_is_taken_is_refused_in_the_end():
    """Another live broker holds it: a clear error, and its node is still there."""

    async def body():
        cluster = Cluster()
        [first] = await cluster.start(1)
        with pytest.raises(BrokerIdTaken, match="broker id 1 is registered by another live broker"):
            await cluster.start(1)
        assert cluster.tree.get(broker_path(1))[1].ephemeral_owner == first.store.session_id
        await first.plane.stop(controlled=False)
        await cluster.stop()

    run(body())


def test_a_dead_controller_is_succeeded_and_the_successor_repairs(caplog):
    """Its death is also a leader's death: the new controller elects for what it finds, in a higher epoch."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [1, 2, 3]}, partitions=-1, factor=-1)
        await cluster.brokers[1].crash()
        del cluster.brokers[1]
        await cluster.until(lambda: any(broker.plane.is_controller for broker in cluster.brokers.values()))
        await cluster.until(lambda: cluster.leader() == 2)
        assert cluster.tree.get(CONTROLLER_EPOCH)[0] == b"2"
        state = cluster.state()
        assert (state["isr"], state["controller_epoch"]) == ([2, 3], 2)
        for broker in cluster.brokers.values():
            await cluster.until(lambda broker=broker: broker.roles["t", 0].leader == 2)
            assert broker.plane.controller_id == cluster.controller.broker_id
            assert [live.broker_id for live in broker.cache.alive_brokers()] == [2, 3]
        await cluster.stop()

    with caplog.at_level(logging.INFO):
        run(body())
    assert "is elected controller of epoch 2" in caplog.text


def test_an_expired_session_resigns_first_and_registers_with_a_new_epoch():
    """The controller's own session ends while its process lives on (a long pause)."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await cluster.create_topic()
        former = brokers[0].plane.broker_epoch
        brokers[0].store.expire()
        await cluster.until(lambda: not brokers[0].plane.is_controller)
        await cluster.until(lambda: brokers[0].plane.broker_epoch > former)
        await cluster.until(lambda: any(broker.plane.is_controller for broker in brokers))
        assert int(cluster.tree.get(CONTROLLER_EPOCH)[0]) >= 2
        events = [event for event, _ in brokers[0].journal]
        assert events.index("controller-resigned") < len(events) - 1 - events[::-1].index("registered")
        await cluster.until(lambda: len(cluster.controller.cache.alive_brokers()) == 3)
        await cluster.stop()

    run(body())


def test_a_follower_broker_whose_session_expires_is_seen_as_a_bounce():
    """Same process, new czxid: failure and startup in one; it leads again only by a LeaderAndIsr of its new epoch."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [2, 1, 3]}, partitions=-1, factor=-1)
        brokers[1].store.expire()
        await cluster.until(lambda: cluster.leader() == 1)
        assert cluster.state()["isr"] == [1, 3]
        await cluster.until(lambda: brokers[1].roles["t", 0].leader == 1)
        assert brokers[1].received[-1].broker_epoch == brokers[1].plane.broker_epoch
        await cluster.stop()

    run(body())


def test_a_controller_that_is_cut_off_stops_acting_and_cannot_write():
    """Isolated from ZooKeeper: it resigns after its session timeout, and what it writes meanwhile is refused."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await cluster.create_topic()
        brokers[0].store.cut()
        await cluster.until(lambda: sum(broker.plane.is_controller for broker in brokers[1:]) == 1)
        await asyncio.sleep(0.1)
        assert not brokers[0].plane.is_controller
        brokers[0].store.heal()
        await cluster.until(lambda: len(cluster.controller.cache.alive_brokers()) == 3)
        await cluster.until(lambda: brokers[0].plane.controller_id == cluster.controller.broker_id)
        assert cluster.tree.get(CONTROLLER_EPOCH)[0] == b"2"
        await cluster.stop()

    run(body())


def test_a_short_cut_changes_nothing():
    """Less than the session: the same controller, the same epoch, no election."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await cluster.create_topic()
        for _ in range(3):
            brokers[0].store.cut()
            await asyncio.sleep(SESSION_MS / 1000 * 0.8)
            brokers[0].store.heal()
            await asyncio.sleep(0.5)
        assert brokers[0].plane.is_controller
        assert cluster.tree.get(CONTROLLER_EPOCH)[0] == b"1"
        assert cluster.state()["leader_epoch"] == 0
        await cluster.stop()

    run(body())


def test_an_office_kept_by_a_live_session_is_taken_up_again():
    """The controller resigned after silence, but its session survived (ZooKeeper itself was away): a new epoch."""

    async def body():
        cluster = Cluster()
        [broker] = await cluster.start(1)
        broker.plane._candidate.resign("as after a silence")
        assert cluster.tree.exists(CONTROLLER) is not None
        broker.store.cut()
        broker.store.heal()
        await cluster.until(lambda: broker.plane.is_controller)
        assert cluster.tree.get(CONTROLLER_EPOCH)[0] == b"2"
        await cluster.stop()

    run(body())


def test_the_last_in_sync_replica_comes_back_as_leader():
    """No leader while it is away, although others are alive; then it leads, and nothing was lost."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [2, 3]}, partitions=-1, factor=-1)
        await cluster.brokers[3].crash()
        await cluster.until(lambda: cluster.state()["isr"] == [2])
        await cluster.brokers[2].crash()
        await cluster.until(lambda: cluster.leader() == -1)
        [third] = await cluster.start(3)
        await cluster.until(lambda: ("t", 0) in third.roles)
        assert (cluster.leader(), cluster.state()["isr"]) == (-1, [2])
        await cluster.start(2)
        await cluster.until(lambda: cluster.leader() == 2)
        assert cluster.state()["isr"] == [2]
        await cluster.stop()

    run(body())


def test_an_unreachable_broker_gets_all_its_requests_in_order_when_it_is_back():
    """The link from the controller is cut, the session is not: nothing is skipped, nothing overtaken."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        cluster.network.cut("node-1", "node-3")
        made = [asyncio.ensure_future(cluster.create_topic(f"t{n}", timeout_ms=60_000)) for n in range(3)]
        await asyncio.sleep(5)
        assert not any(task.done() for task in made)
        assert not brokers[2].roles
        cluster.network.heal("node-1", "node-3")
        await asyncio.gather(*made)
        names = [r.topic_states[0].topic_name for r in brokers[2].received if r.API_KEY == ApiKey.LEADER_AND_ISR]
        assert sorted(set(names)) == ["t0", "t1", "t2"]
        assert names == sorted(names)
        await cluster.stop()

    run(body())


def test_a_stale_controller_s_requests_are_refused():
    """11 for an older controller epoch, 77 for a former life of the broker."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2)
        await cluster.until(lambda: brokers[1].received)
        request = brokers[1].received[-1]
        epoch, broker_epoch = request.controller_epoch, request.broker_epoch
        check = brokers[1].plane.check_control_request
        assert check(epoch, broker_epoch) is ErrorCode.NONE
        assert check(epoch, broker_epoch - 1) is ErrorCode.STALE_BROKER_EPOCH
        assert check(epoch - 1, broker_epoch - 1) is ErrorCode.STALE_CONTROLLER_EPOCH
        await cluster.stop()

    run(body())


def test_a_broker_that_stops_as_its_office_falls_sets_no_timer():
    """An office that was lost to an error is run for again in a while, but not by a broker that has stopped."""

    async def body():
        cluster = Cluster()
        [broker] = await cluster.start(1)

        async def fail(_office):
            raise SessionExpiredError("over")

        with pytest.raises(NotController):
            await broker.plane._candidate.serve(fail)
        await broker.plane.stop(controlled=False)
        timers = [timer for _, _, timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]
        assert not [timer for timer in timers if "look_again" in repr(timer)]

    run(body())


def test_a_bounce_that_no_controller_saw_is_made_up_for_at_the_failover():
    """A broker that died and came back while there was no controller leads on in a new leader epoch, if at all."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        await cluster.create_topic("t", 3, 3)
        led = next(n for n in range(3) if cluster.state("t", n)["leader"] == 2)
        await cluster.brokers[1].crash()
        epoch = cluster.brokers[2].plane.broker_epoch
        cluster.brokers[2].store.expire()
        await cluster.until(lambda: cluster.brokers[2].plane.broker_epoch > epoch)
        assert cluster.state("t", led)["leader_epoch"] == 0
        await cluster.until(lambda: any(cluster.brokers[n].plane.is_controller for n in (2, 3)))
        await cluster.until(lambda: cluster.state("t", led)["leader_epoch"] > 0)
        state = cluster.state("t", led)
        assert (state["leader"], state["isr"]) == (3, [3])
        await cluster.stop()

    run(body())


def test_a_controller_that_falls_while_it_takes_over_tells_nobody(monkeypatch):
    """It reads the brokers when it resigns: no channel is opened to them that nobody would close."""

    async def body():
        cluster = Cluster()
        [broker] = await cluster.start(1)
        role = broker.plane._candidate
        await cluster.until(lambda: role.is_active)
        role.resign("a test")
        read = ClusterReader.brokers

        async def resign_meanwhile(view):
            found = await read(view)
            role.resign("its session has ended")
            return found

        with monkeypatch.context() as patched:
            patched.setattr(ClusterReader, "brokers", resign_meanwhile)
            await broker.plane._queue.run(role.incumbent_changed)
        assert not role.is_active
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("control-channel")] == []
        await cluster.stop()

    run(body())
