"""Whole brokers move a partition under load: what is acknowledged is on the new replicas, the old ones are erased."""

from __future__ import annotations

import asyncio

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

RETRIED = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.REQUEST_TIMED_OUT}


async def controller(cluster: MemoryCluster) -> Client:
    await cluster.until(lambda: any(node.control.is_controller for node in cluster.nodes.values()))
    found = next(broker for broker, node in cluster.nodes.items() if node.control.is_controller)
    return Client(await cluster.connect(found))


async def create(cluster: MemoryCluster, replicas: list[int]) -> None:
    topic = request_class(ApiKey.CREATE_TOPICS).CreatableTopic
    wanted = topic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[topic.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
        configs=[],
    )
    answer = await (await controller(cluster)).send(
        ApiKey.CREATE_TOPICS, 5, topics=[wanted], timeout_ms=5000, validate_only=False
    )
    assert [t.error_code for t in answer.topics] == [ErrorCode.NONE]


async def move(cluster: MemoryCluster, replicas: list[int]) -> None:
    topic = request_class(ApiKey.ALTER_PARTITION_REASSIGNMENTS).ReassignableTopic
    wanted = topic(name="t", partitions=[topic.ReassignablePartition(partition_index=0, replicas=replicas)])
    answer = await (await controller(cluster)).send(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, topics=[wanted], timeout_ms=1000
    )
    assert [p.error_code for t in answer.responses for p in t.partitions] == [ErrorCode.NONE]


async def write(cluster: MemoryCluster, values: list[bytes], acknowledged: dict[bytes, int]) -> None:
    """One after the other with acks=all, again until each is acknowledged (so some may stand twice)."""
    asked, client = -1, None
    for value in values:
        while value not in acknowledged:
            leader = cluster.leader("t")
            if leader != asked and leader > 0:
                asked, client = leader, Client(await cluster.connect(leader))
            if client is not None:
                answer = await client.produce("t", batch(value))
                if answer.error is ErrorCode.NONE:
                    acknowledged[value] = answer.base_offset
                    continue
                assert answer.error in RETRIED, answer
            await asyncio.sleep(0.02)


def test_a_partition_that_gets_a_replica_lacks_none():
    """The broker that a reassignment adds dies before it has joined: the leader misses it, and reports no lack."""

    async def body():
        async with MemoryCluster(3, {"min.insync.replicas": "1"}) as cluster:
            await create(cluster, [1, 2])
            await cluster.until(lambda: cluster.isr("t") == {1, 2})
            await move(cluster, [1, 2, 3])
            await cluster.crash(3)
            await asyncio.sleep(3)
            leader = cluster.nodes[cluster.leader("t")].replicas.partitions["t", 0].leader
            assert set(leader.followers) | {leader.broker_id} == {1, 2, 3}
            assert leader.isr.committed == {1, 2}
            assert not leader.is_under_replicated
            await cluster.start(3)
            await cluster.until(lambda: cluster.isr("t") == {1, 2, 3})

    run(body())


def test_a_partition_moves_under_load():
    """From two replicas to two others, one of which is the controller and dies on the way."""

    async def body():
        async with MemoryCluster(4, {"min.insync.replicas": "1"}) as cluster:
            first, targets = (2, 3), [4, 1]
            await create(cluster, list(first))
            acknowledged: dict[bytes, int] = {}
            writing = asyncio.create_task(write(cluster, [b"%d" % n for n in range(150)], acknowledged))
            await cluster.until(lambda: len(acknowledged) > 50)
            await move(cluster, targets)
            await cluster.crash(1)
            await asyncio.sleep(3)
            await cluster.start(1)
            await writing
            await cluster.until(lambda: cluster.isr("t") == set(targets))
            await cluster.until(lambda: all(("t", 0) not in cluster.nodes[b].replicas.partitions for b in first))
            assert all(cluster.log_bytes(broker, "t") == b"" for broker in first)
            leader = cluster.leader("t")
            assert leader in targets
            found = dict((await Client(await cluster.connect(leader)).fetch("t", 0, max_bytes=1 << 22)).records)
            assert {found[offset] for offset in acknowledged.values()} == set(acknowledged)
            assert all(found[offset] == value for value, offset in acknowledged.items())
            assert cluster.log_bytes(targets[0], "t") == cluster.log_bytes(targets[1], "t")
            assert not cluster.failures

    run(body())


def test_a_partition_that_begins_within_a_batch_moves():
    """Fetches give whole batches, so the new replica holds the one that the log start lies in, and begins there too."""

    async def body():
        async with MemoryCluster(2, {"min.insync.replicas": "1"}) as cluster:
            await create(cluster, [1])
            await cluster.until(lambda: cluster.leader("t") == 1)
            client = Client(await cluster.connect(1))
            values = [b"%d" % n for n in range(20)]
            written = batch(*values, producer_id=7, base_sequence=0)
            assert (await client.produce("t", written)).error is ErrorCode.NONE
            assert await client.delete_records("t", 5) == (ErrorCode.NONE, 5)
            await move(cluster, [1, 2])
            await cluster.until(lambda: cluster.isr("t") == {1, 2})
            added = cluster.nodes[2].replicas.partitions["t", 0]
            assert (added.log.log_start_offset, added.log.log_end_offset) == (5, 20)
            assert cluster.log_bytes(2, "t") == cluster.log_bytes(1, "t") != b""
            ((_, epoch_began),) = added.log.epochs.entries
            assert epoch_began == 5
            await move(cluster, [2])
            await cluster.until(lambda: cluster.leader("t") == 2)
            client = Client(await cluster.connect(2))
            assert (await client.fetch("t", 5)).records == list(enumerate(values))[5:]
            assert (await client.fetch("t", 4)).error is ErrorCode.OFFSET_OUT_OF_RANGE
            assert await client.list_offset("t", -2) == (ErrorCode.NONE, 5)
            again = await client.produce("t", written)
            assert (again.error, again.base_offset) == (ErrorCode.NONE, 0), "it knows the producer by the whole batch"
            assert (await client.produce("t", batch(b"20", producer_id=7, base_sequence=20))).base_offset == 20
            assert not cluster.failures

    run(body())


def test_the_preferred_leader_leads_again_by_itself():
    """``auto.leader.rebalance.enable``: after the first broker came back, its partitions return to it."""

    async def body():
        async with MemoryCluster(2, {"leader.imbalance.check.interval.seconds": "10"}) as cluster:
            await cluster.create_topic("t", partitions=2)
            preferred = {n: cluster.nodes[1].metadata.partition("t", n).replicas[0] for n in (0, 1)}
            assert set(preferred.values()) == {1, 2}
            await cluster.crash(2)
            await cluster.until(lambda: all(cluster.leader("t", n) == 1 for n in (0, 1)))
            await cluster.start(2)
            await cluster.until(lambda: all(cluster.leader("t", n) == preferred[n] for n in (0, 1)))

    run(body())
