"""A topic that names no partition takes time too: long requests of nothing but names are divided like any others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cluster.broker.handlers import (
    add_partitions_to_txn,
    describe_producers,
    list_offsets,
    list_partition_reassignments,
    offset_for_leader_epoch,
)
from cluster.broker.handlers.named_once import naming
from cluster.broker.pauses import Shares
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import request_class

TOPICS = 300


def offsets() -> Any:
    request = request_class(ApiKey.LIST_OFFSETS)
    topics = [request.ListOffsetsTopic(name=f"t{number}", partitions=[]) for number in range(TOPICS)]
    return request(replica_id=-1, isolation_level=0, topics=topics)


def epochs() -> Any:
    request = request_class(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    topics = [request.OffsetForLeaderTopic(topic=f"t{number}", partitions=[]) for number in range(TOPICS)]
    return request(replica_id=-1, topics=topics)


def producers() -> Any:
    request = request_class(ApiKey.DESCRIBE_PRODUCERS)
    topics = [request.TopicRequest(name=f"t{number}", partition_indexes=[]) for number in range(TOPICS)]
    return request(topics=topics)


@pytest.mark.parametrize(
    ("handle", "ask"),
    [(list_offsets.handle, offsets), (offset_for_leader_epoch.handle, epochs), (describe_producers.handle, producers)],
)
def test_an_answer_in_steps_has_one_for_each_topic(handle: Callable[..., Any], ask: Callable[[], Any]) -> None:
    """At least: to merge them is one, and to answer for each another."""
    steps, count = handle(SimpleNamespace(), ask(), SimpleNamespace(api_version=0)), 0
    while True:
        try:
            assert next(steps) is None
        except StopIteration as end:
            answer = end.value
            break
        count += 1
    assert len(answer.topics) == TOPICS and count >= 2 * TOPICS


def test_partitions_of_one_topic_are_steps_as_well() -> None:
    """Half a million of them may be named."""
    assert len([*naming([("t", ((number, None) for number in range(TOPICS)))])]) == TOPICS + 1


class Looks:
    """Counts how often the time is asked for, which is what a pause does first."""

    def __init__(self) -> None:
        self.count = 0
        self.shares = Shares(self._now_ns)

    def _now_ns(self) -> int:
        self.count += 1
        return 0


@pytest.mark.parametrize(("topics", "partitions"), [(TOPICS, 0), (1, 2 * add_partitions_to_txn.PARTITIONS_AT_ONCE)])
def test_verifying_transactions_pauses(topics: int, partitions: int) -> None:
    """Brokers ask for a few; who else reaches their listener may ask for a hundred thousand."""
    looks = Looks()
    request = request_class(ApiKey.ADD_PARTITIONS_TO_TXN)
    numbers = [*range(partitions)]
    named = [request.AddPartitionsToTxnTopic(name=f"t{number}", partitions=numbers) for number in range(topics)]
    transaction = request.AddPartitionsToTxnTransaction(
        transactional_id="", producer_id=1, producer_epoch=0, verify_only=True, topics=named
    )
    coordinator: Any = SimpleNamespace(owned=None)
    services: Any = SimpleNamespace(shares=looks.shares, transactions=SimpleNamespace(coordinator=coordinator))

    async def main() -> Any:
        exchange: Any = SimpleNamespace(api_version=4)
        return await add_partitions_to_txn.handle(services, request(transactions=[transaction]), exchange)

    found = asyncio.run(main()).results_by_transaction[0].topic_results
    assert [(topic.name, len(topic.results_by_partition)) for topic in found] == [
        (f"t{number}", partitions) for number in range(topics)
    ]
    assert looks.count >= max(topics, partitions // add_partitions_to_txn.PARTITIONS_AT_ONCE)


def test_listing_reassignments_pauses() -> None:
    """For each topic that is asked for."""
    looks = Looks()
    request = request_class(ApiKey.LIST_PARTITION_REASSIGNMENTS)
    topics = [
        request.ListPartitionReassignmentsTopics(name=f"t{number}", partition_indexes=[]) for number in range(TOPICS)
    ]
    asked_for: list[Any] = []

    async def moving(asked: Any) -> list[Any]:
        asked_for.extend(asked)
        return []

    apis = SimpleNamespace(list_reassignments=moving)
    services: Any = SimpleNamespace(shares=looks.shares, control=SimpleNamespace(apis=apis))

    async def main() -> Any:
        exchange: Any = SimpleNamespace(api_version=0)
        return await list_partition_reassignments.handle(services, request(timeout_ms=1000, topics=topics), exchange)

    assert asyncio.run(main()).topics == []
    assert len(asked_for) == TOPICS
    assert looks.count >= TOPICS
