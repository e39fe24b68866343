"""What the cluster says about itself, from several brokers' Metadata answers. Owns the merging, which is pure.

Brokers disagree while something is broken: an isolated one continues believing in its own world. So the leader is
the broker that the highest leader epoch names, and a broker counts as alive if more than half of those that answer list
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """One partition as one broker sees it; ``leader`` is -1 if there is none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BrokerView:
    """One broker's Metadata answer about one topic. ``answered_by`` is that broker."""

    answered_by: int
    alive: frozenset[int]
    controller: int
    partitions: Mapping[int, ObservedPartition]


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """What the answers add up to."""

    alive: frozenset[int]
    controller: int | None
    partitions: Mapping[int, ObservedPartition]

    def in_sync(self, partitions: int) -> bool:
        """Whether all partitions are known, led, and have every replica in the ISR."""
        if len(self.partitions) < partitions:
            return False
        return all(
            seen.leader >= 0 and bool(seen.replicas) and set(seen.isr) == set(seen.replicas)
            for seen in self.partitions.values()
        )


def merge(answers: Sequence[BrokerView]) -> ObservedCluster:
    """Add the answers up; no answers make an empty view."""
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
    """A higher epoch wins; at the same epoch the leader itself knows its ISR first."""
    if seen.leader_epoch != known.leader_epoch:
        return seen.leader_epoch > known.leader_epoch
    return answer.answered_by == seen.leader
