"""Offsets of topics that are deleted while they are committed: none is left for a topic of the same name."""

from __future__ import annotations

import asyncio

import pytest

from cluster.broker.pauses import Shares
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.groups.scenes import Member, service, with_groups
from tests.cluster.broker.scenes import TOPIC
from tests.simulation.nodes import MemoryCluster


class UsedUp(Shares):
    """No turn has anything left before ``goes_on`` is set."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.waits, self.goes_on = asyncio.Event(), asyncio.Event()

    def is_over(self) -> bool:
        return not self.goes_on.is_set()

    async def next(self, had: int = 0) -> int:
        self.waits.set()
        await self.goes_on.wait()
        return 0


async def delete_topic(cluster: MemoryCluster, member: Member, name: str) -> None:
    state = request_class(ApiKey.DELETE_TOPICS).DeleteTopicState
    answer = await member.client.send(
        ApiKey.DELETE_TOPICS, 6, topics=[state(name=name, topic_id=None)], topic_names=[name], timeout_ms=5000
    )
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]
    await cluster.until(lambda: all(node.metadata.topic(name) is None for node in cluster.nodes.values()))


def test_a_commit_that_waits_for_its_turn_stores_nothing_of_a_deleted_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic was there when the request came, and its offsets were removed before the commit was decided."""

    async def check(cluster: MemoryCluster, member: Member) -> None:
        await cluster.create_topic("kept")
        shares = UsedUp()
        monkeypatch.setattr(service(cluster, 1), "_shares", shares)
        committing = asyncio.ensure_future(member.commit({(TOPIC, 0): 7, (TOPIC, 1): 8, ("kept", 0): 9}))
        await shares.waits.wait()
        other = Member(type(member.client)(await cluster.connect(1)))
        await delete_topic(cluster, other, TOPIC)
        shares.goes_on.set()
        assert await committing == {
            (TOPIC, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (TOPIC, 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("kept", 0): ErrorCode.NONE,
        }
        assert await member.committed() == (ErrorCode.NONE, {("kept", 0): 9})

    with_groups(check)


def test_a_commit_of_deleted_topics_alone_makes_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit whose topics were all deleted meanwhile stores nothing."""

    async def check(cluster: MemoryCluster, member: Member) -> None:
        shares = UsedUp()
        monkeypatch.setattr(service(cluster, 1), "_shares", shares)
        committing = asyncio.ensure_future(member.commit({(TOPIC, 0): 7}))
        await shares.waits.wait()
        other = Member(type(member.client)(await cluster.connect(1)))
        await delete_topic(cluster, other, TOPIC)
        shares.goes_on.set()
        assert await committing == {(TOPIC, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert service(cluster, 1).coordinator.all_groups() == []

    with_groups(check)
