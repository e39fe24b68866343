"""The consumer protocol: what members of a group of type ``consumer`` tell their leader, and what it tells them.

Owns the bytes of Subscription and Assignment, versions 0 to 3 (docs/reference/kafka.md "Consumer protocol"). They are
opaque to a coordinator, but for the topics of a subscription. Does not own who is assigned what.

A reader takes a newer version for the newest that it knows, and passes over bytes that follow: each version begins with
all of the one before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.primitives import (
    INT16,
    INT32,
    Buffer,
    read_count,
    read_nullable_string,
    read_slice,
    read_string,
    refusing_malformed,
    write_nullable_string,
)

#: ``protocol_type`` of groups of consumers.
CONSUMER_PROTOCOL_TYPE = "consumer"
NEWEST_VERSION = 3
NO_GENERATION = -1

_LEAST_STRING_BYTES = 2
_LONGEST_STRING = 32_767
#: Where a subscription says how many topics there are: behind its version.
_TOPICS_AT = 2
#: Lists of topics that are recognized when another subscription begins with one.
_KNOWN_LISTS = 4
_LEAST_TOPIC_BYTES = 6


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a consumer wants and, from version 1 on, what it owns; the generation in which it got that is KIP-792's."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[tuple[str, int], ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """What a consumer is assigned. Partitions are sorted as the leader wrote them."""

    partitions: tuple[tuple[str, int], ...] = ()
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    parts = [INT16.pack(version), INT32.pack(len(subscription.topics))]
    parts += (write_nullable_string(topic) for topic in subscription.topics)
    parts.append(_nullable_bytes(subscription.user_data))
    if version >= 1:
        parts.append(_topic_partitions(subscription.owned_partitions))
    if version >= 2:
        parts.append(INT32.pack(subscription.generation_id))
    if version >= 3:
        parts.append(write_nullable_string(subscription.rack_id))
    return b"".join(parts)


def decode_subscription(data: Buffer) -> Subscription:
    """Raises ``MalformedRequest``."""
    with refusing_malformed("subscription"):
        (version,) = INT16.unpack_from(data)
        topics, position = _read_topics(data)
        user_data, position = _read_nullable_bytes(data, position)
        owned: tuple[tuple[str, int], ...] = ()
        generation_id, rack_id = NO_GENERATION, None
        if version >= 1:
            owned, position = _read_topic_partitions(data, position)
        if version >= 2:
            (generation_id,) = INT32.unpack_from(data, position)
            position += 4
        if version >= 3:
            rack_id, position = read_nullable_string(data, position)
        return Subscription(topics, user_data, owned, generation_id, rack_id)


def subscribed_topics(subscriptions: Iterable[bytes], most: int) -> frozenset[str] | None:
    """The topics of all of them, which are at the same place in every version; None if they list more than ``most``
    names. Members usually have one list in common, which is read once. Raises ``MalformedRequest``."""
    lists: deque[bytes] = deque(maxlen=_KNOWN_LISTS)
    names: set[bytes] = set()
    with refusing_malformed("subscription"):
        for data in subscriptions:
            if any(data.startswith(known, _TOPICS_AT) for known in lists):
                continue
            count, position = read_count(data, _TOPICS_AT, _LEAST_STRING_BYTES)
            most -= count
            if most < 0:
                return None
            end = _read_names(data, position, count, names)
            lists.append(data[_TOPICS_AT:end])
        return frozenset(name.decode() for name in names)


def _read_names(data: bytes, position: int, count: int, names: set[bytes]) -> int:
    """Add ``count`` names as they are in ``data``, without a call for each; the position after the last."""
    for _ in range(count):
        begin = position + 2
        position = begin + (data[position] << 8 | data[begin - 1])
        names.add(data[begin:position])
        if position - begin > _LONGEST_STRING or position > len(data):
            raise MalformedRequest(f"a topic of {position - begin} bytes, {len(data) - begin} are left")
    return position


def encode_assignment(assignment: PartitionAssignment, version: int = NEWEST_VERSION) -> bytes:
    return INT16.pack(version) + _topic_partitions(assignment.partitions) + _nullable_bytes(assignment.user_data)


def decode_assignment(data: Buffer) -> PartitionAssignment:
    """Raises ``MalformedRequest``. Without bytes nothing is assigned: what a leader left out has none."""
    if len(data) == 0:
        return PartitionAssignment()
    with refusing_malformed("assignment"):
        INT16.unpack_from(data)
        partitions, position = _read_topic_partitions(data, 2)
        user_data, _ = _read_nullable_bytes(data, position)
        return PartitionAssignment(partitions, user_data)


def _topic_partitions(partitions: Iterable[tuple[str, int]]) -> bytes:
    grouped = by_topic(partitions)
    parts = [INT32.pack(len(grouped))]
    for topic, indexes in grouped.items():
        parts += (write_nullable_string(topic), INT32.pack(len(indexes)), *map(INT32.pack, indexes))
    return b"".join(parts)


def _read_topics(data: Buffer) -> tuple[tuple[str, ...], int]:
    count, position = read_count(data, _TOPICS_AT, _LEAST_STRING_BYTES)
    topics = []
    for _ in range(count):
        topic, position = read_string(data, position)
        topics.append(topic)
    return tuple(topics), position


def _read_topic_partitions(data: Buffer, position: int) -> tuple[tuple[tuple[str, int], ...], int]:
    count, position = read_count(data, position, _LEAST_TOPIC_BYTES)
    found = []
    for _ in range(count):
        topic, position = read_string(data, position)
        partitions, position = read_count(data, position, INT32.size)
        for _ in range(partitions):
            (partition,) = INT32.unpack_from(data, position)
            position += INT32.size
            found.append((topic, partition))
    return tuple(found), position


def _nullable_bytes(data: bytes | None) -> bytes:
    return INT32.pack(-1) if data is None else INT32.pack(len(data)) + data


def _read_nullable_bytes(data: Buffer, position: int) -> tuple[bytes | None, int]:
    (size,) = INT32.unpack_from(data, position)
    position += INT32.size
    if size == -1:
        return None, position
    view, position = read_slice(data, position, size)
    return bytes(view), position
