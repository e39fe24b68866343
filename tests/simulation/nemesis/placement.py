"""Placement: a partition moves to other replicas, or its leadership to the first of them."""

from __future__ import annotations

from cluster.controller.leadership import ElectionType
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import request_class
from tests.simulation.nemesis.administration import ask
from tests.simulation.nemesis.base import Nemesis

TIMEOUT_MS = 1000
#: Two replicas at least: one alone would be the last in sync, whose disk must not be lost.
SIZES = (2, 3, 3)


async def reassign(nemesis: Nemesis) -> None:
    """Two or three brokers, in any order, get a partition; mostly the rest of it is done while other things happen."""
    topic, partition = nemesis.random.choice(nemesis.world.everything)
    targets = nemesis.random.sample(nemesis.world.broker_ids, nemesis.random.choice(SIZES))
    request = request_class(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    moved = request.ReassignableTopic
    wanted = moved(name=topic, partitions=[moved.ReassignablePartition(partition_index=partition, replicas=targets)])
    nemesis.begin("reassign", f"{topic}-{partition} to {targets}")
    message = request(topics=[wanted], timeout_ms=TIMEOUT_MS)
    # Who is not the controller any more answers without partitions.
    await ask(
        nemesis,
        message,
        0,
        lambda answer: [result for each in answer.responses for result in each.partitions] or [answer],
    )


async def _elect(nemesis: Nemesis, name: str, kind: ElectionType) -> None:
    topic, partition = nemesis.random.choice(nemesis.world.everything)
    request = request_class(ApiKey.ELECT_LEADERS)
    wanted = request.TopicPartitions(topic=topic, partitions=[partition])
    message = request(election_type=kind.value, topic_partitions=[wanted], timeout_ms=TIMEOUT_MS)
    nemesis.begin(name, f"{topic}-{partition}")
    await ask(
        nemesis, message, 2,
        lambda answer: [found for each in answer.replica_election_results for found in each.partition_result]
        or [answer],
    )  # fmt: skip


async def elect_preferred(nemesis: Nemesis) -> None:
    await _elect(nemesis, "elect-preferred", ElectionType.PREFERRED)


async def elect_unclean(nemesis: Nemesis) -> None:
    """On request, which does not ask what the topic allows: only if nobody in sync is there does it do anything."""
    await _elect(nemesis, "elect-unclean", ElectionType.UNCLEAN)
