"""``sticky``: as balanced as possible, then with as few moves as possible (KIP-54).

Owns Kafka's StickyAssignor: what a member had is in its user data, since it has given everything away before it joins.
Owns the choice between the quick and the general case too, which ``cooperative`` shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cluster.client.consumer.assignors.claims import Claim, Claims, settle_claims
from cluster.client.consumer.assignors.general import assign_general
from cluster.client.consumer.assignors.subscribers import (
    Divided,
    PartitionCounts,
    Subscriber,
    partitions_of,
    wanted_topics,
)
from cluster.client.consumer.assignors.uniform import assign_uniform
from cluster.protocol.by_topic import by_topic
from cluster.protocol.consumer_protocol import NO_GENERATION
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.primitives import (
    INT32,
    read_count,
    read_string,
    refusing_malformed,
    write_nullable_string,
)
from cluster.topic_partition import TopicPartition


def assign_sticky(counts: PartitionCounts, subscribers: Sequence[Subscriber]) -> Divided:
    claims = {each.member_id: read_user_data(each.subscription.user_data) for each in subscribers}
    return divide(counts, subscribers, settle_claims(counts, claims))


def divide(counts: PartitionCounts, subscribers: Sequence[Subscriber], claims: Claims) -> Divided:
    """By the quick case if all want the same topics."""
    topics = {frozenset(each.subscription.topics) for each in subscribers}
    if len(topics) > 1:
        return assign_general(counts, subscribers, claims.owner, claims.former)
    partitions = partitions_of(counts, wanted_topics(counts, subscribers))
    return assign_uniform(partitions, [each.member_id for each in subscribers], claims.owner)


def user_data(partitions: Iterable[TopicPartition], generation_id: int) -> bytes:
    """What a member tells the next leader about what it had."""
    grouped = by_topic(partitions)
    parts = [INT32.pack(len(grouped))]
    for topic, indexes in grouped.items():
        parts += (write_nullable_string(topic), INT32.pack(len(indexes)), *map(INT32.pack, indexes))
    return b"".join(parts) + INT32.pack(generation_id)


def read_user_data(data: bytes | None) -> Claim:
    """Without a generation in the oldest form. What cannot be read claims nothing."""
    if not data:
        return Claim((), NO_GENERATION)
    try:
        with refusing_malformed("user data"):
            return _read(data)
    except MalformedRequest:
        return Claim((), NO_GENERATION)


def _read(data: bytes) -> Claim:
    count, position = read_count(data, 0, 6)
    partitions = []
    for _ in range(count):
        topic, position = read_string(data, position)
        indexes, position = read_count(data, position, INT32.size)
        for _ in range(indexes):
            (partition,) = INT32.unpack_from(data, position)
            position += INT32.size
            partitions.append((topic, partition))
    if position == len(data):
        return Claim(tuple(partitions), NO_GENERATION)
    (generation_id,) = INT32.unpack_from(data, position)
    return Claim(tuple(partitions), generation_id)
