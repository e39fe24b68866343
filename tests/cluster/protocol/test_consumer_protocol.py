"""What consumers of a group send to each other, in the bytes of kafka-python and of other clients."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol.by_topic import by_topic
from cluster.protocol.consumer_protocol import (
    PartitionAssignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.kafka_schemas import consumer

TOPICS = st.text(min_size=1, max_size=10)
PARTITIONS = st.lists(st.tuples(TOPICS, st.integers(0, 1 << 20)), unique=True, max_size=8).map(
    lambda found: tuple((topic, each) for topic, indexes in by_topic(found).items() for each in indexes)
)
SUBSCRIPTIONS = st.builds(
    Subscription,
    st.lists(TOPICS, max_size=5).map(tuple),
    st.none() | st.binary(max_size=20),
    PARTITIONS,
    st.integers(-1, 1 << 20),
    st.none() | TOPICS,
)
ASSIGNMENTS = st.builds(PartitionAssignment, PARTITIONS, st.none() | st.binary(max_size=20))


def theirs(subscription: Subscription) -> object:
    owned = [
        consumer.ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(subscription.owned_partitions).items()
    ]
    return consumer.ConsumerProtocolSubscription(
        topics=list(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=owned,
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )


@given(SUBSCRIPTIONS, st.integers(0, 3))
def test_subscriptions_are_kafkas(subscription: Subscription, version: int) -> None:
    """The bytes are those that kafka-python's schemas give, which begin with the version there too."""
    data = encode_subscription(subscription, version)
    assert data == bytes(theirs(subscription).encode(version=version))  # type: ignore[attr-defined]
    assert subscribed_topics([data], 5) == set(subscription.topics)


@given(SUBSCRIPTIONS)
def test_subscriptions_come_back(subscription: Subscription) -> None:
    """In the newest version as a whole, in older ones with what these have."""
    assert decode_subscription(encode_subscription(subscription)) == subscription
    oldest = decode_subscription(encode_subscription(subscription, 0))
    assert oldest == Subscription(subscription.topics, subscription.user_data)


@given(ASSIGNMENTS, st.integers(0, 3))
def test_assignments_come_back(assignment: PartitionAssignment, version: int) -> None:
    """The versions of an assignment differ in their number alone; no bytes are no partitions."""
    assert decode_assignment(encode_assignment(assignment, version)) == assignment
    assert decode_assignment(b"") == PartitionAssignment()


def test_newer_versions_are_read_as_the_newest_known() -> None:
    """What a newer version adds comes last and is passed over."""
    subscription = Subscription(("t",), None, (("t", 1),), 4, "rack")
    data = (9).to_bytes(2, "big") + encode_subscription(subscription)[2:] + b"more"
    assert decode_subscription(data) == subscription
    assert decode_assignment((9).to_bytes(2, "big") + encode_assignment(PartitionAssignment())[2:] + b"more")


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No bytes raise anything but ``MalformedRequest``."""
    for read in (decode_subscription, decode_assignment, lambda told: subscribed_topics([told], 20)):
        with suppress(MalformedRequest):
            read(data)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=2), max_size=8), st.integers(0, 3))
def test_the_topics_of_several_subscriptions(lists: list[list[str]], version: int) -> None:
    """All that any of them lists, whatever else it says."""
    told = [
        encode_subscription(Subscription(tuple(topics), bytes(number)), version) for number, topics in enumerate(lists)
    ]
    assert subscribed_topics(told, 16) == {topic for topics in lists for topic in topics}


def test_only_so_many_topics_are_read() -> None:
    """Beyond that it is not known what they want. A list that many have in common counts once, from wherever on."""
    one, other = (encode_subscription(Subscription(topics)) for topics in (("a", "b", "c"), ("a", "b", "d")))
    assert subscribed_topics([one] * 100, 3) == {"a", "b", "c"}
    assert subscribed_topics([one, other] * 100, 6) == {"a", "b", "c", "d"}
    assert subscribed_topics([one, other], 5) is None


@pytest.mark.parametrize("names", [b"\xff\xff", b"\x00\x09short", b"\x00\x01\xff"])
def test_a_list_of_topics_that_is_damaged(names: bytes) -> None:
    """A null, one that is cut short, and one that is no text."""
    with pytest.raises(MalformedRequest):
        subscribed_topics([b"\x00\x01" + b"\x00\x00\x00\x01" + names], 5)


def test_cut_bytes_are_refused() -> None:
    """Every cut of a subscription is."""
    data = encode_subscription(Subscription(("a", "b"), b"u", (("a", 0), ("b", 1)), 2, "r"))
    for length in range(len(data)):
        with pytest.raises(MalformedRequest):
            decode_subscription(data[:length])
