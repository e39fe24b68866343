"""``range`` and ``roundrobin``: division by order alone (docs/reference/kafka.md "Assignors").

Owns Kafka's RangeAssignor and RoundRobinAssignor.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.client.consumer.assignors.subscribers import (
    Divided,
    PartitionCounts,
    Subscriber,
    in_order,
    nothing,
    partitions_of,
    wanted_topics,
)


def assign_range(counts: PartitionCounts, subscribers: Sequence[Subscriber]) -> Divided:
    """Each topic by itself, in runs; the first members get the rest. Topics with equal numbers of partitions and the
    same subscribers are divided alike, so that a member gets the same partitions of each."""
    divided = nothing(subscribers)
    members = in_order(subscribers)
    for topic in wanted_topics(counts, subscribers):
        wanting = [each.member_id for each in members if each.wants(topic)]
        share, rest = divmod(counts[topic], len(wanting))
        begin = 0
        for place, member_id in enumerate(wanting):
            end = begin + share + (place < rest)
            divided[member_id] += [(topic, partition) for partition in range(begin, end)]
            begin = end
    return divided


def assign_round_robin(counts: PartitionCounts, subscribers: Sequence[Subscriber]) -> Divided:
    """All partitions in order, one to each member in turn; a member that does not want one is skipped."""
    divided = nothing(subscribers)
    members = in_order(subscribers)
    turn = 0
    for partition in partitions_of(counts, wanted_topics(counts, subscribers)):
        while not members[turn % len(members)].wants(partition[0]):
            turn += 1
        divided[members[turn % len(members)].member_id].append(partition)
        turn += 1
    return divided
