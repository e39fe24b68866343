"""Strategies: partition.assignment.strategy: what a member tells for each, and what a leader makes of all that. Pure.

Owns the subscriptions, Kafka's choice between the eager and the cooperative protocol (KIP-429), and what ``sticky``
remembers. Does not own the assignors (``assignors``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from cluster.client.consumer.assignors import cooperative, sticky
from cluster.client.consumer.assignors.catalogue import ASSIGNORS, COOPERATIVE
from cluster.client.consumer.assignors.subscribers import PartitionCounts, Subscriber
from cluster.client.consumer.group.group_requests import Generation, MemberProtocols, MemberToAssign
from cluster.protocol.consumer_protocol import (
    PartitionAssignment,
    Subscription,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from cluster.protocol.errors import MalformedRequest
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Strategies:
    """NOT thread-safe. ``names`` of the catalogue, in the order in which the member prefers them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        #: Whether members keep what they own while they join: only if each of their assignors can do with it.
        self.is_cooperative = COOPERATIVE.issuperset(self._names)
        self._remembered: tuple[list[TopicPartition], int] | None = None

    def __repr__(self) -> str:
        return f"Strategies({', '.join(self._names)})"

    def remember(self, partitions: Iterable[TopicPartition], generation: Generation) -> None:
        """What was assigned; ``sticky`` tells it when everything was given away."""
        self._remembered = list(partitions), generation.generation_id

    def protocols(
        self, topics: Iterable[str], owned: Iterable[TopicPartition], generation: Generation
    ) -> MemberProtocols:
        """What the member tells when it joins."""
        wanted, kept = tuple(topics), tuple(owned)
        return tuple(
            (
                name,
                encode_subscription(
                    Subscription(wanted, self._user_data(name, generation), kept, generation.generation_id)
                ),
            )
            for name in self._names
        )

    def _user_data(self, name: str, generation: Generation) -> bytes | None:
        if name == "cooperative-sticky":
            return cooperative.user_data(generation.generation_id)
        if name == "sticky" and self._remembered is not None:
            return sticky.user_data(*self._remembered)
        return None


def subscribers_of(members: Iterable[MemberToAssign]) -> list[Subscriber]:
    """The members as assignors know them. One whose subscription cannot be read gets nothing."""
    found = []
    for member in members:
        try:
            subscription = decode_subscription(member.metadata)
        except MalformedRequest as error:
            logger.warning("member %s gets no partitions: %s", member.member_id, error)
            subscription = Subscription(())
        found.append(Subscriber(member.member_id, subscription, member.group_instance_id))
    return found


def topics_of(subscribers: Iterable[Subscriber]) -> set[str]:
    """All topics that the group reads."""
    return {topic for each in subscribers for topic in each.subscription.topics}


def assignments_of(protocol_name: str, counts: PartitionCounts, subscribers: Sequence[Subscriber]) -> dict[str, bytes]:
    """What each member is to be told. Raises ``KeyError`` for a protocol that is not one of ours."""
    divided = ASSIGNORS[protocol_name](counts, subscribers)
    return {
        member_id: encode_assignment(PartitionAssignment(tuple(partitions)))
        for member_id, partitions in divided.items()
    }
