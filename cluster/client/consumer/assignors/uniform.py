"""Sticky division among members that all want the same topics: quick, balanced to one, with the fewest moves.

Owns Kafka's constrained case of AbstractStickyAssignor. Each member keeps what it owns up to its quota; what is left
goes round those that have too little. Does not own who owns what (``claims``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from cluster.client.consumer.assignors.subscribers import Divided
from cluster.topic_partition import TopicPartition


def assign_uniform(
    partitions: Sequence[TopicPartition], member_ids: Sequence[str], owner: Mapping[TopicPartition, str]
) -> Divided:
    """``partitions`` are all, in order; ``owner`` says who keeps which if it may."""
    quota, larger = divmod(len(partitions), len(member_ids))
    divided, below, at_quota = _keep(sorted(member_ids), _owned(partitions, owner), quota, larger)
    taken = {partition for kept in divided.values() for partition in kept}
    turns = deque(below)
    for partition in partitions:
        if partition in taken:
            continue
        if turns:
            member_id = turns.popleft()
            divided[member_id].append(partition)
            if len(divided[member_id]) < quota:
                turns.append(member_id)
            else:
                at_quota.append(member_id)
        else:
            divided[at_quota.popleft()].append(partition)
    return divided


def _owned(
    partitions: Sequence[TopicPartition], owner: Mapping[TopicPartition, str]
) -> dict[str, list[TopicPartition]]:
    """By partition number first, so that what a member keeps is spread over topics."""
    owned: dict[str, list[TopicPartition]] = {}
    for partition in sorted(partitions, key=lambda each: (each[1], each[0])):
        if partition in owner:
            owned.setdefault(owner[partition], []).append(partition)
    return owned


def _keep(
    member_ids: Sequence[str], owned: Mapping[str, list[TopicPartition]], quota: int, larger: int
) -> tuple[Divided, list[str], deque[str]]:
    """What members keep, who has less than its quota, and who has just that. ``larger`` members may have one more."""
    divided: Divided = {}
    below: list[str] = []
    at_quota: deque[str] = deque()
    for member_id in member_ids:
        had = owned.get(member_id, [])
        may_be_larger = larger > 0 and len(had) > quota
        larger -= may_be_larger
        divided[member_id] = had[: quota + may_be_larger]
        if len(had) < quota:
            below.append(member_id)
        elif not may_be_larger:
            at_quota.append(member_id)
    return divided, below, at_quota
