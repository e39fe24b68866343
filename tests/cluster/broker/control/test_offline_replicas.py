"""A broker that cannot host a replica says so, and the controller looks for another leader."""

from __future__ import annotations

import asyncio
import errno
from uuid import uuid4

import pytest

from cluster.controller.context import Broker, ControllerContext, Partition, PartitionState, Topic, TopicPartition
from cluster.controller.election import elect_offline
from cluster.controller.leadership import ElectionType, Refusal, plan_elections
from cluster.controller.partitions import plan_controlled_shutdown, plan_repairs
from cluster.log.checkpoints import partition_metadata_text
from cluster.metadata.paths import state_path
from cluster.metadata.znodes import StateNode
from cluster.seams.storage import File
from tests.cluster.log.builders import append
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

PLACE = TopicPartition("t", 0)


def context(leader: int, *, offline: int, unclean: bool = False, isr: tuple[int, ...] = (1, 2, 3)) -> ControllerContext:
    partition = Partition((1, 2, 3), PartitionState(leader, 4, isr))
    brokers = {broker_id: Broker(broker_id, 10 + broker_id) for broker_id in (1, 2, 3)}
    brokers[offline].offline.add(PLACE)
    return ControllerContext(7, brokers, {"t": Topic("t", uuid4(), {0: partition}, unclean=unclean)})


def test_an_offline_replica_is_as_good_as_dead() -> None:
    """It loses its leadership and its place in the in-sync set, and is elected by no kind of election."""
    (change,) = plan_repairs(context(1, offline=1), elect_offline)
    assert (change.state.leader, change.state.isr, change.state.leader_epoch) == (2, (2, 3), 5)
    (change,) = plan_repairs(context(1, offline=3), elect_offline)
    assert (change.state.leader, change.state.isr) == (1, (1, 2))
    (change,) = plan_repairs(context(1, offline=1, isr=(1,)), elect_offline)
    assert (change.state.leader, change.state.isr) == (-1, (1,))
    (change,) = plan_repairs(context(1, offline=1, isr=(1,), unclean=True), elect_offline)
    assert (change.state.leader, change.state.recovering) == (2, True)
    preferred = plan_elections(context(2, offline=1), ElectionType.PREFERRED, [PLACE], elect_offline)
    assert isinstance(preferred[PLACE], Refusal)
    (moved,) = plan_controlled_shutdown(context(1, offline=2), 1).changes
    assert moved.state.leader == 3


def test_a_leader_that_cannot_open_its_log_leads_on_paper_no_longer() -> None:
    """The log of another topic is found in its place: the partition has no leader, instead of one that refuses all."""

    async def main() -> None:
        async with MemoryCluster(3) as cluster:
            await cluster.create_topic("t", replicas=3)
            state = StateNode.decode(state_path("t", 0), cluster.tree.get(state_path("t", 0))[0])
            leader = state.leader
            controller = next(each for each in cluster.broker_ids if each != leader)
            for broker_id in cluster.broker_ids:
                if broker_id not in (leader, controller):
                    await cluster.crash(broker_id)
            await cluster.crash(controller)
            await cluster.until(lambda: cluster.isr("t") == {leader})
            await cluster.crash(leader)
            path = "/data/t-0/partition.metadata"
            cluster.storages[leader].write_atomic(path, partition_metadata_text(uuid4()).encode())
            await cluster.start(controller)
            await cluster.start(leader)

            def state_now() -> StateNode:
                return StateNode.decode(state_path("t", 0), cluster.tree.get(state_path("t", 0))[0])

            await cluster.until(lambda: state_now().leader == -1 and state_now().leader_epoch > state.leader_epoch + 2)
            known = cluster.nodes[controller].metadata.partition
            await cluster.until(lambda: leader in known("t", 0).offline_replicas)

    run(main())


def test_a_broker_is_asked_again_what_it_can_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many files were open when it was given its role: once there are fewer, it leads, without a restart."""

    async def main() -> None:
        async with MemoryCluster(1) as cluster:
            storage = cluster.storages[1]
            open_file = storage.open

            def full(path: str, *, create: bool = True, keep: bool = False) -> File:
                if keep and "/t-" in path and "/t-0" not in path:
                    raise OSError(errno.EMFILE, "too many open files", path)
                return open_file(path, create=create, keep=keep)

            monkeypatch.setattr(storage, "open", full)

            def leaders() -> list[int]:
                states = (state_path("t", number) for number in range(3))
                return [StateNode.decode(path, cluster.tree.get(path)[0]).leader for path in states]

            created = asyncio.ensure_future(cluster.create_topic("t", partitions=3))
            await asyncio.sleep(60)
            assert leaders() == [1, -1, -1]
            monkeypatch.undo()
            await cluster.until(lambda: leaders() == [1, 1, 1])
            await created
            assert cluster.failures == []

    run(main())


def test_a_log_that_lacked_a_descriptor_at_the_start_is_led_without_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that was in it: it is opened, not made, once there are fewer files."""

    async def main() -> None:
        async with MemoryCluster(1) as cluster:
            await cluster.create_topic("t")
            log = cluster.nodes[1].logs.get("t", 0)
            assert log is not None
            append(log)
            await cluster.crash(1)
            storage = cluster.storages[1]
            open_file = storage.open

            def full(path: str, *, create: bool = True, keep: bool = False) -> File:
                if keep and "/t-0/" in path:
                    raise OSError(errno.EMFILE, "too many open files", path)
                return open_file(path, create=create, keep=keep)

            monkeypatch.setattr(storage, "open", full)
            await cluster.start(1)

            def leader() -> int:
                return StateNode.decode(state_path("t", 0), cluster.tree.get(state_path("t", 0))[0]).leader

            await cluster.until(lambda: leader() == -1)
            await asyncio.sleep(60)
            assert leader() == -1
            monkeypatch.undo()
            await cluster.until(lambda: leader() == 1)
            log = cluster.nodes[1].logs.get("t", 0)
            assert log is not None and log.log_end_offset == 1
            assert cluster.failures == []

    run(main())
