"""Taking over a partition of ``__consumer_offsets`` that cannot all be read: what clients and the log are told."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from cluster.broker.coordinator_loading import RETRY_S
from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.broker.replicas.replica import Replica
from cluster.coordinator.group.records import offset_key
from cluster.log.partition_log import PartitionLog
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import parse_header
from cluster.protocol.errors import CorruptBatch, ErrorCode
from cluster.protocol.records import NewRecord, build_batch
from tests.cluster.broker.groups.scenes import GROUP, Member, is_served, partition_of, service, with_groups
from tests.cluster.broker.scenes import TOPIC
from tests.simulation.nodes import MemoryCluster


def taken_over(cluster: MemoryCluster, *records: NewRecord) -> Replica:
    """Have records in the log that no broker would take from a client, and the partition taken over again."""
    number = partition_of(cluster)
    replica = cluster.nodes[1].replicas.partitions[OFFSETS_TOPIC, number]
    if records:
        packed = bytearray(build_batch(records))
        replica.append_of_coordinator(packed, parse_header(packed), 0)
    service(cluster, 1).coordinator.resigned(number, 0)
    service(cluster, 1).role_taken(replica)
    return replica


def test_a_record_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """It is told with its offset and counted; its group is not available, any other one is."""

    async def check(cluster: MemoryCluster, member: Member) -> None:
        assert await member.commit({(TOPIC, 0): 5}) == {(TOPIC, 0): ErrorCode.NONE}
        unreadable = NewRecord(0, offset_key("lost", TOPIC, 0), b"\0\x09")
        taken_over(cluster, NewRecord(0, b"\0\0\xff", b"x"), unreadable)
        await cluster.until(lambda: is_served(cluster))
        assert await member.committed() == (ErrorCode.NONE, {(TOPIC, 0): 5})
        service(cluster, 1).coordinator.homes[partition_of(cluster)].unavailable |= {GROUP}
        assert await member.committed() == (ErrorCode.COORDINATOR_NOT_AVAILABLE, {})
        assert cluster.nodes[1].replicas.counters.unreadable_records == 2

    with caplog.at_level(logging.CRITICAL):
        with_groups(check)
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith(f"2 records of {OFFSETS_TOPIC}-")
    assert "at offset 1: key" in told and "at offset 1: OffsetKey(group_id='lost'" in told


def test_a_log_that_cannot_be_read_is_read_again(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is known of its groups until then; what others have is listed, with the error."""

    async def check(cluster: MemoryCluster, member: Member) -> None:
        await member.commit({(TOPIC, 0): 5})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PartitionLog, "read", fail)
            taken_over(cluster)
            await asyncio.sleep(2.5 * RETRY_S)
        listed = await member.client.send(ApiKey.LIST_GROUPS, 4, states_filter=[])
        assert listed.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (await member.committed())[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await cluster.until(lambda: is_served(cluster))
        assert await member.committed() == (ErrorCode.NONE, {(TOPIC, 0): 5})

    with caplog.at_level(logging.CRITICAL):
        with_groups(check)
    assert caplog.text.count("cannot be loaded, and has no coordinator") == 1


def fail(*_arguments: Any, **_named: Any) -> None:
    raise CorruptBatch("rotten")
