"""Merges the Metadata answers of several brokers into one view of the cluster. Pure. Sends no request.

Brokers disagree while something is broken; an isolated one still reports what was true before. The leader of a
partition is therefore the one reported with the highest leader epoch, and a broker counts as alive if more than half
of the answers list it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """One partition as one broker reports it. ``leader`` is -1 if there is none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BrokerView:
    """One broker's Metadata answer about one topic.

    ``answered_by`` is the id of that broker, ``alive`` has the ids that it lists, and ``partitions`` maps partition
    numbers to what it reports.
    """

    answered_by: int
    alive: frozenset[int]
    controller: int
    partitions: Mapping[int, ObservedPartition]


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """The merged view: ids of the brokers that are alive, the controller's id, and the partitions by number."""

    alive: frozenset[int]
    controller: int | None
    partitions: Mapping[int, ObservedPartition]

    def in_sync(self, partitions: int) -> bool:
        """Whether at least this many partitions are known, and each has a leader and every replica in its ISR."""
        if len(self.partitions) < partitions:
            return False
        return all(
            seen.leader >= 0 and bool(seen.replicas) and set(seen.isr) == set(seen.replicas)
            for seen in self.partitions.values()
        )


def merge(answers: Sequence[BrokerView]) -> ObservedCluster:
    """Merge the answers. Without answers, the view is empty."""
    if not answers:
        return ObservedCluster(frozenset(), None, {})
    votes = Counter(broker_id for answer in answers for broker_id in answer.alive)
    alive = frozenset(broker_id for broker_id, count in votes.items() if 2 * count > len(answers))
    controllers = Counter(answer.controller for answer in answers if answer.controller in alive)
    partitions: dict[int, ObservedPartition] = {}
    for answer in answers:
        for index, seen in answer.partitions.items():
            known = partitions.get(index)
            if known is None or _newer(answer, seen, known):
                partitions[index] = seen
    return ObservedCluster(alive, controllers.most_common(1)[0][0] if controllers else None, partitions)


def _newer(answer: BrokerView, seen: ObservedPartition, known: ObservedPartition) -> bool:
    """Whether ``seen`` replaces ``known``: its epoch is higher, or equal and the leader itself reports it.

    A leader knows its ISR before the other brokers do.
    """
    if seen.leader_epoch != known.leader_epoch:
        return seen.leader_epoch > known.leader_epoch
    return answer.answered_by == seen.leader
