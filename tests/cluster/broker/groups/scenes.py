"""Scenes: a cluster with ``__consumer_offsets``, and the plain requests of a member of a group."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from cluster.broker.groups.group_service import GroupService
from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.coordinator.group.invariants import validate
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.scenes import TOPIC
from tests.simulation.client import Client
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

GROUP = "g"
PARTITIONS = 4
RANGE = [("range", b"subscription")]

#: (topic, partition) -> offset.
Offsets = dict[tuple[str, int], int]


def with_groups(check: Callable[[MemoryCluster, Member], Awaitable[None]], brokers: int = 1, **properties: str) -> None:
    """Run ``check`` on a fresh cluster that has a topic of two partitions and can coordinate groups."""
    given = {key.replace("_", "."): value for key, value in properties.items()}

    async def main() -> None:
        defaults = {
            "offsets.topic.num.partitions": str(PARTITIONS),
            "offsets.topic.replication.factor": str(brokers),
            "group.initial.rebalance.delay.ms": "0",
        }
        async with MemoryCluster(brokers, {**defaults, **given}) as cluster:
            await cluster.create_topic(TOPIC, partitions=2)
            await cluster.create_topic(OFFSETS_TOPIC, partitions=PARTITIONS, **{"cleanup.policy": "compact"})
            await cluster.until(lambda: is_served(cluster))
            await check(cluster, await member_of(cluster))
            for broker_id in cluster.nodes:
                validate(service(cluster, broker_id).coordinator)

    run(main())


def service(cluster: MemoryCluster, broker_id: int) -> GroupService:
    coordinators = cluster.nodes[broker_id]._coordinators
    assert coordinators is not None
    return coordinators.groups


def partition_of(cluster: MemoryCluster, group_id: str = GROUP) -> int:
    return service(cluster, next(iter(cluster.nodes))).partition_of(group_id)


def coordinator_of(cluster: MemoryCluster, group_id: str = GROUP) -> int:
    """The broker that leads the group's partition; -1 if none does."""
    return cluster.leader(OFFSETS_TOPIC, partition_of(cluster, group_id))


def is_served(cluster: MemoryCluster, group_id: str = GROUP) -> bool:
    """Whether the group has a coordinator that has read its partition."""
    broker_id = coordinator_of(cluster, group_id)
    return broker_id > 0 and service(cluster, broker_id).coordinator.status(group_id) is ErrorCode.NONE


async def member_of(cluster: MemoryCluster, group_id: str = GROUP) -> Member:
    return Member(Client(await cluster.connect(coordinator_of(cluster, group_id))), group_id)


class Member:
    """One connection to the coordinator, and who it is in its group."""

    def __init__(self, client: Client, group_id: str = GROUP) -> None:
        self.client = client
        self.group_id = group_id
        self.member_id = ""
        self.generation_id = -1

    async def join(
        self,
        *,
        version: int = 9,
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 20_000,
        protocols: list[tuple[str, bytes]] | None = None,
        instance: str | None = None,
    ) -> Any:
        """One JoinGroup; what it was told about itself is kept."""
        request = request_class(ApiKey.JOIN_GROUP)
        offered = [request.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols or RANGE]
        answer = await self.client.send(
            ApiKey.JOIN_GROUP, version, group_id=self.group_id, session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms, member_id=self.member_id, group_instance_id=instance,
            protocol_type="consumer", protocols=offered, reason=None,
        )  # fmt: skip
        self.member_id = answer.member_id or self.member_id
        self.generation_id = answer.generation_id
        return answer

    async def joined(self, **fields: Any) -> Any:
        """JoinGroup as often as a new member needs it."""
        answer = await self.join(**fields)
        return await self.join(**fields) if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED else answer

    async def sync(self, assignments: dict[str, bytes] | None = None, *, version: int = 5, **fields: Any) -> Any:
        request = request_class(ApiKey.SYNC_GROUP)
        given = [
            request.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in (assignments or {}).items()
        ]
        named = {"protocol_type": "consumer", "protocol_name": "range", "group_instance_id": None, **fields}
        return await self.client.send(
            ApiKey.SYNC_GROUP, version, group_id=self.group_id, generation_id=self.generation_id,
            member_id=self.member_id, assignments=given, **named,
        )  # fmt: skip

    async def heartbeat(self, *, version: int = 4) -> ErrorCode:
        answer = await self.client.send(
            ApiKey.HEARTBEAT, version, group_id=self.group_id, generation_id=self.generation_id,
            member_id=self.member_id, group_instance_id=None,
        )  # fmt: skip
        return ErrorCode(answer.error_code)

    async def leave(self, *, version: int = 5) -> Any:
        identity = request_class(ApiKey.LEAVE_GROUP).MemberIdentity
        members = [identity(member_id=self.member_id, group_instance_id=None, reason=None)]
        return await self.client.send(
            ApiKey.LEAVE_GROUP, version, group_id=self.group_id, member_id=self.member_id, members=members
        )

    async def commit(
        self, offsets: Offsets, *, version: int = 8, metadata: str | None = "m", retention_ms: int = -1
    ) -> dict[tuple[str, int], ErrorCode]:
        topic_class = request_class(ApiKey.OFFSET_COMMIT).OffsetCommitRequestTopic
        topics: dict[str, list[Any]] = {}
        for (topic, number), offset in offsets.items():
            topics.setdefault(topic, []).append(
                topic_class.OffsetCommitRequestPartition(
                    partition_index=number, committed_offset=offset, committed_leader_epoch=3,
                    committed_metadata=metadata,
                )
            )  # fmt: skip
        answer = await self.client.send(
            ApiKey.OFFSET_COMMIT, version, group_id=self.group_id, member_id=self.member_id, group_instance_id=None,
            generation_id_or_member_epoch=self.generation_id, retention_time_ms=retention_ms,
            topics=[topic_class(name=name, partitions=partitions) for name, partitions in topics.items()],
        )  # fmt: skip
        return {
            (topic.name, each.partition_index): ErrorCode(each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        }

    async def committed(
        self, wanted: list[tuple[str, int]] | None = None, *, version: int = 8
    ) -> tuple[ErrorCode, Offsets]:
        """(error of the group, offsets), of all partitions that have one unless some are named."""
        request = request_class(ApiKey.OFFSET_FETCH)
        group_class = request.OffsetFetchRequestGroup
        topic_class = group_class.OffsetFetchRequestTopics if version >= 8 else request.OffsetFetchRequestTopic
        topics = None
        if wanted is not None:
            topics = [topic_class(name=topic, partition_indexes=[number]) for topic, number in wanted]
        groups = [group_class(group_id=self.group_id, topics=topics)]
        answer = await self.client.send(
            ApiKey.OFFSET_FETCH, version, group_id=self.group_id, topics=topics, groups=groups, require_stable=False
        )
        (found,) = answer.groups if version >= 8 else [answer]
        codes = {each.error_code for topic in found.topics for each in topic.partitions} - {0}
        error_code = found.error_code if version >= 2 else max(codes, default=0)
        offsets = {
            (topic.name, each.partition_index): each.committed_offset
            for topic in found.topics
            for each in topic.partitions
        }
        return ErrorCode(error_code), offsets


async def stable(cluster: MemoryCluster, count: int, **fields: Any) -> list[Member]:
    """So many members of one group, with an assignment each; the first one leads."""
    members = [await member_of(cluster) for _ in range(count)]
    for member in members:
        # Each has its id before any of them waits.
        if (await member.join(**fields)).error_code != ErrorCode.MEMBER_ID_REQUIRED:
            raise AssertionError("a member id was not required")
    answers = await asyncio.gather(*(member.join(**fields) for member in members))
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    leader = answers[0].leader
    assignments = {member.member_id: member.member_id.encode() for member in members}
    synced = await asyncio.gather(
        *(member.sync(assignments if member.member_id == leader else None) for member in members)
    )
    assert [answer.assignment for answer in synced] == [member.member_id.encode() for member in members]
    return sorted(members, key=lambda member: member.member_id != leader)
