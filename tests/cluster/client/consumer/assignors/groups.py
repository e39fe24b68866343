"""Groups of subscribers for the tests of assignors, written and drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from cluster.client.consumer.assignors.sticky import user_data
from cluster.client.consumer.assignors.subscribers import Divided, Subscriber
from cluster.protocol.consumer_protocol import Subscription
from cluster.topic_partition import TopicPartition

Owned = Mapping[str, Iterable[TopicPartition]]

TOPICS = ("t0", "t1", "t2", "t3")
MEMBERS = ("A", "B", "C", "D", "E", "F")
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)
#: Member -> topics: of all the same, or each its own.
UNIFORM = st.tuples(st.sets(st.sampled_from(MEMBERS), min_size=1), st.sets(st.sampled_from(TOPICS), min_size=1)).map(
    lambda drawn: {member_id: sorted(drawn[1]) for member_id in sorted(drawn[0])}
)
VARIED = st.dictionaries(st.sampled_from(MEMBERS), st.sets(st.sampled_from(TOPICS)).map(sorted), min_size=1, max_size=6)
GROUPS = st.one_of(UNIFORM, VARIED)


def partitions(text: str) -> list[TopicPartition]:
    """``t0:0,1 t1:2`` as partitions."""
    found = []
    for part in text.split():
        topic, _, indexes = part.partition(":")
        found += [(topic, int(index)) for index in indexes.split(",")]
    return found


def eager(
    wanted: Mapping[str, Iterable[str]],
    owned: Mapping[str, Iterable[TopicPartition]] | None = None,
    generation: int = 1,
) -> list[Subscriber]:
    """Members that have given away what they had, and tell it in their user data."""
    had = owned or {}
    return [
        Subscriber(
            member_id,
            Subscription(tuple(topics), user_data(had[member_id], generation) if member_id in had else None),
        )
        for member_id, topics in wanted.items()
    ]


def cooperative(
    wanted: Mapping[str, Iterable[str]],
    owned: Mapping[str, Iterable[TopicPartition]] | None = None,
    generation: int = 1,
) -> list[Subscriber]:
    """Members that have kept what they had."""
    had = owned or {}
    return [
        Subscriber(
            member_id, Subscription(tuple(topics), None, tuple(had.get(member_id, ())), generation if had else -1)
        )
        for member_id, topics in wanted.items()
    ]


def all_wanted(counts: Mapping[str, int], wanted: Mapping[str, Iterable[str]]) -> set[TopicPartition]:
    topics = {topic for each in wanted.values() for topic in each} & counts.keys()
    return {(topic, index) for topic in topics for index in range(counts[topic])}


def check_once(counts: Mapping[str, int], wanted: Mapping[str, Iterable[str]], divided: Divided) -> None:
    """Every partition that someone wants has one owner, who wants it; every member is told."""
    given = [partition for owned in divided.values() for partition in owned]
    assert sorted(given) == sorted(all_wanted(counts, wanted))
    assert divided.keys() == wanted.keys()
    assert all(partition[0] in wanted[member_id] for member_id, owned in divided.items() for partition in owned)
