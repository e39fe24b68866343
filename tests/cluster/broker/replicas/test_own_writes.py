"""Batches of a broker's own: where they are appended, and what is told of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from cluster.broker.replicas.replica import Replica
from cluster.broker.rules import Rules
from cluster.log.appending import AppendInfo
from cluster.log.errors import LogError, OutOfFiles, StorageFailed
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.scenes import TOPIC, cut_followers, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

Told = list[tuple[ErrorCode, int]]


def leading(cluster: MemoryCluster) -> Replica:
    return cluster.nodes[cluster.leader(TOPIC)].replicas.partitions[TOPIC, 0]


def append(
    cluster: MemoryCluster, value: bytes, told: Told, *, leader_epoch: int | None = None, timeout_ms: int = 5000
) -> None:
    replica = leading(cluster)
    epoch = replica.leader_epoch if leader_epoch is None else leader_epoch
    own_writes = cluster.nodes[cluster.leader(TOPIC)].replicas.own_writes
    own_writes.append(TOPIC, 0, epoch, batch(value), timeout_ms, lambda code, offset: told.append((code, offset)))


def test_it_is_told_when_all_in_sync_have_it() -> None:
    """Not at once: the offset is told when the followers have fetched it, and in the order of the log."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        told: Told = []
        for value in (b"a", b"b", b"c"):
            append(cluster, value, told)
        assert told == []
        await cluster.until(lambda: len(told) == 3)
        assert told == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 1), (ErrorCode.NONE, 2)]
        assert (await client.fetch(TOPIC, 0)).values == [b"a", b"b", b"c"]
        assert {cluster.log_bytes(broker, TOPIC) for broker in cluster.broker_ids} == {cluster.log_bytes(1, TOPIC)}

    with_topic(check, brokers=3)


def test_the_only_replica_is_enough() -> None:
    """Then it is told before the call returns."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        told: Told = []
        append(cluster, b"a", told)
        assert told == [(ErrorCode.NONE, 0)]

    with_topic(check)


@pytest.mark.parametrize("step", [-1, 1])
def test_another_epoch_is_not_written_to(step: int) -> None:
    """What was decided before this leadership, or of one to come, is no longer or not yet true."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        told: Told = []
        append(cluster, b"a", told, leader_epoch=leading(cluster).leader_epoch + step)
        assert told == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
        assert (await client.fetch(TOPIC, 0)).values == []

    with_topic(check)


def test_no_such_partition() -> None:
    """UNKNOWN_TOPIC_OR_PARTITION, as a client is told."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        told: Told = []
        own_writes = cluster.nodes[1].replicas.own_writes
        own_writes.append("nowhere", 0, 0, batch(b"a"), 1000, lambda code, offset: told.append((code, offset)))
        assert told == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]

    with_topic(check)


def test_a_batch_that_is_too_large() -> None:
    """The topic's limit holds for brokers too."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        told: Told = []
        append(cluster, b"x" * 2000, told)
        assert told == [(ErrorCode.MESSAGE_TOO_LARGE, -1)]

    with_topic(check, message_max_bytes="1000")


def test_followers_that_do_not_come() -> None:
    """REQUEST_TIMED_OUT at its own time; when too few are in sync it is refused, and the log does not grow."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        told: Told = []
        cut_followers(cluster)
        append(cluster, b"a", told, timeout_ms=300)
        await asyncio.sleep(0.29)
        assert told == []
        await cluster.until(lambda: bool(told), 0.1)
        assert told == [(ErrorCode.REQUEST_TIMED_OUT, -1)]
        leader = cluster.leader(TOPIC)
        for broker in cluster.broker_ids:
            if broker != leader:
                await cluster.crash(broker)
        await cluster.until(lambda: len(cluster.isr(TOPIC)) == 1)
        append(cluster, b"b", told)
        assert told[1:] == [(ErrorCode.NOT_ENOUGH_REPLICAS, -1)]
        assert leading(cluster).log.log_end_offset == 1

    with_topic(check, brokers=3, min_insync_replicas="2", default_replication_factor="3")


def test_a_leadership_that_ends() -> None:
    """NOT_LEADER_OR_FOLLOWER, at once: another leader may have something else there."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        told: Told = []
        append(cluster, b"a", told)
        leading(cluster).stop()
        assert told == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]

    with_topic(check, brokers=3)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OutOfFiles("full"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (StorageFailed("broken"), ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_too_many_open_files_are_no_broken_disk(error: LogError, code: ErrorCode) -> None:
    """Clients shall ask again, and ask this very broker: it leads still. The broker hears of both."""

    def fail(*_arguments: Any) -> AppendInfo:
        raise error

    async def main() -> None:
        async with MemoryCluster(1, rules=replace(Rules(), append=fail)) as cluster:
            await cluster.create_topic(TOPIC)
            told: Told = []
            failures: list[LogError] = []
            replicas = cluster.nodes[1].replicas
            replicas.own_writes._storage_failed = failures.append
            append(cluster, b"a", told)
            assert told == [(code, -1)]
            assert failures == [error]

    run(main())


def test_roles_are_told_as_they_are_taken() -> None:
    """Whoever depends on a leadership hears of its begin and of its end, before anything else happens."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        leader = cluster.leader(TOPIC)
        heard: dict[int, list[tuple[bool, int]]] = {broker: [] for broker in cluster.broker_ids}
        for broker, node in cluster.nodes.items():
            roles = node._roles
            assert roles is not None
            roles._role_taken = lambda replica, broker=broker: heard[broker].append(  # type: ignore[misc]
                (replica.leader is not None, replica.leader_epoch)
            )
        await cluster.stop(leader)
        await cluster.until(lambda: cluster.leader(TOPIC) > 0)
        follower = next(iter(cluster.nodes))
        assert heard[leader][-1][0] is False
        assert heard[follower][-1] == (True, leading(cluster).leader_epoch)

    with_topic(check, brokers=2)
