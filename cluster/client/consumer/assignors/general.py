"""Sticky division among members that want different topics: as balanced as possible, then with few moves.

Owns Kafka's general case of AbstractStickyAssignor: what is owned stays, the rest goes to those with least, then
partitions are moved one at a time as long as that makes two members more equal. Does not own who owns what.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

from cluster.client.consumer.assignors.movements import Movements
from cluster.client.consumer.assignors.subscribers import (
    Divided,
    PartitionCounts,
    Subscriber,
    nothing,
    partitions_of,
    wanted_topics,
)
from cluster.topic_partition import TopicPartition


def assign_general(
    counts: PartitionCounts,
    subscribers: Sequence[Subscriber],
    owner: Mapping[TopicPartition, str],
    former: Mapping[TopicPartition, str],
) -> Divided:
    """``former`` owners get partitions back, if they have room, that have to be moved anyway."""
    return _Division(counts, subscribers, owner, former).divided()


class _Division:
    """``_order`` are the members that may get or lose something, by how much they have."""

    def __init__(
        self,
        counts: PartitionCounts,
        subscribers: Sequence[Subscriber],
        owner: Mapping[TopicPartition, str],
        former: Mapping[TopicPartition, str],
    ) -> None:
        topics = wanted_topics(counts, subscribers)
        self._wanting = {topic: [each.member_id for each in subscribers if each.wants(topic)] for topic in topics}
        self._wanted = {each.member_id: {topic for topic in topics if each.wants(topic)} for each in subscribers}
        self._most = {member_id: sum(counts[topic] for topic in wanted) for member_id, wanted in self._wanted.items()}
        topics.sort(key=lambda topic: (len(self._wanting[topic]), topic))
        self._partitions = partitions_of(counts, topics)
        self._former = former
        self._has: Divided = nothing(subscribers)
        self._owner: dict[TopicPartition, str] = {}
        #: Whether something is taken from its owner anyway, who does not want its topic anymore.
        self._revokes = False
        for partition in self._partitions:
            member_id = owner.get(partition)
            if member_id is not None and partition[0] in self._wanted.get(member_id, ()):
                self._has[member_id].append(partition)
                self._owner[partition] = member_id
            elif member_id is not None:
                self._revokes = True
        self._order = sorted((len(has), member_id) for member_id, has in self._has.items())
        self._movements = Movements()

    def divided(self) -> Divided:
        begins = not self._owner
        new = [partition for partition in self._partitions if partition not in self._owner]
        for partition in new:
            self._give(partition, self._least(partition[0]))
        fixed = [member_id for member_id in self._has if not self._takes_part(member_id)]
        self._order = [each for each in self._order if each[1] not in fixed]
        movable = [partition for partition in self._partitions if len(self._wanting[partition[0]]) > 1]
        before = dict(self._owner)
        score = self._score()
        if not self._revokes:
            self._balance([partition for partition in new if len(self._wanting[partition[0]]) > 1])
        if self._balance(movable) and not begins and self._score() >= score:
            return self._as_it_was(before)
        return self._has

    def _as_it_was(self, before: Mapping[TopicPartition, str]) -> Divided:
        divided: Divided = {member_id: [] for member_id in self._has}
        for partition, member_id in before.items():
            divided[member_id].append(partition)
        return divided

    def _least(self, topic: str) -> str:
        """Of the members that want the topic, the one that has least."""
        return next(member_id for _, member_id in self._order if topic in self._wanted[member_id])

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self._resize(member_id, lambda: self._has[member_id].append(partition))
        self._owner[partition] = member_id

    def _resize(self, member_id: str, change: Callable[[], None]) -> None:
        del self._order[bisect_left(self._order, (len(self._has[member_id]), member_id))]
        change()
        insort(self._order, (len(self._has[member_id]), member_id))

    def _takes_part(self, member_id: str) -> bool:
        """Whether it may get more, or lose something to another member."""
        has = self._has[member_id]
        return len(has) < self._most[member_id] or any(len(self._wanting[topic]) > 1 for topic, _ in has)

    def _score(self) -> int:
        """How unequal the members are that take part; 0 is best."""
        return sum(abs(one - other) for (one, _), (other, _) in combinations(self._order, 2))

    def _is_balanced(self) -> bool:
        """Whether no move of one partition makes two members more equal."""
        if self._order[0][0] >= self._order[-1][0] - 1:
            return True
        for size, member_id in self._order:
            if size < self._most[member_id]:
                for partition in self._wanted_partitions(member_id):
                    other = self._owner[partition]
                    if other != member_id and size + 1 < len(self._has[other]):
                        return False
        return True

    def _wanted_partitions(self, member_id: str) -> Iterable[TopicPartition]:
        wanted = self._wanted[member_id]
        return (partition for partition in self._partitions if partition[0] in wanted)

    def _balance(self, movable: Sequence[TopicPartition]) -> bool:
        """Move partitions until nothing improves. Whether any was moved."""
        has_moved = False
        while True:
            is_modified = False
            for partition in movable:
                if self._is_balanced():
                    break
                is_modified |= self._improve(partition)
            has_moved |= is_modified
            if not is_modified:
                return has_moved

    def _improve(self, partition: TopicPartition) -> bool:
        topic = partition[0]
        size = len(self._has[self._owner[partition]])
        former = self._former.get(partition)
        if former is not None and topic in self._wanted.get(former, ()) and size > len(self._has[former]) + 1:
            self._move(partition, former)
            return True
        if any(size > len(self._has[member_id]) + 1 for member_id in self._wanting[topic]):
            self._move(partition, self._least(topic))
            return True
        return False

    def _move(self, partition: TopicPartition, to: str) -> None:
        """Move it, or another partition of its topic whose way back that is."""
        moved = self._movements.instead_of(partition, self._owner[partition], to)
        giver = self._owner[moved]
        self._movements.moved(moved, giver, to)
        self._resize(giver, lambda: self._has[giver].remove(moved))
        self._give(moved, to)
