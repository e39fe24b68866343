"""Replicas that brokers cannot host: which are, whom to ask again and when, and which are back. Pure.

Owns ``offline`` of the brokers in a context, and what each report means for it. A report of another life of a broker
means nothing; a replica that was moved or deleted is not its broker's anymore. Does not own the elections that follow
(``partitions``), nor the requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from cluster.controller.context import Broker, ControllerContext, TopicPartition

#: The first pause before brokers are asked again; each later one is twice as long, up to the second.
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0

#: A topic's id and the number of a partition.
Named = tuple[UUID, int]


@dataclass(slots=True)
class OfflineReports:
    """What was reported to one controller. ``pause_s`` is how long to wait before ``to_ask``."""

    context: ControllerContext
    pause_s: float = FIRST_PAUSE_S

    def cannot_host(self, broker_id: int, broker_epoch: int, replicas: Sequence[Named]) -> set[TopicPartition]:
        """A broker says so of replicas that it was given a role in. Those that are news: then pauses are short
        again."""
        broker = self._broker(broker_id, broker_epoch)
        if broker is None:
            return set()
        news = self._named(replicas) - broker.offline
        if news:
            broker.offline |= news
            self.pause_s = FIRST_PAUSE_S
        return news

    def can_host(self, broker_id: int, broker_epoch: int, replicas: Sequence[Named]) -> set[TopicPartition]:
        """A broker has taken a role in these. Those of which that is news."""
        broker = self._broker(broker_id, broker_epoch)
        if broker is None:
            return set()
        back = self._named(replicas) & broker.offline
        broker.offline -= back
        return back

    def to_ask(self) -> list[tuple[Broker, list[TopicPartition]]]:
        """A pause is over: which brokers to tell their roles in what they could not host. If there are any, the next
        pause is longer."""
        self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)
        for broker in self.context.brokers.values():
            broker.offline -= set(self._not_theirs(broker))
        return [(broker, sorted(broker.offline)) for broker in self.context.brokers.values() if broker.offline]

    def _broker(self, broker_id: int, broker_epoch: int) -> Broker | None:
        """None if it has begun another life since."""
        broker = self.context.brokers.get(broker_id)
        return broker if broker is not None and broker.epoch == broker_epoch else None

    def _named(self, replicas: Sequence[Named]) -> set[TopicPartition]:
        topics = {topic_id: self.context.topic_by_id(topic_id) for topic_id in {each for each, _ in replicas}}
        found = ((topics[topic_id], number) for topic_id, number in replicas)
        return {TopicPartition(topic.name, number) for topic, number in found if topic is not None}

    def _not_theirs(self, broker: Broker) -> Iterator[TopicPartition]:
        for topic_partition in broker.offline:
            partition = self.context.partition(topic_partition)
            if partition is None or broker.broker_id not in partition.replicas:
                yield topic_partition
