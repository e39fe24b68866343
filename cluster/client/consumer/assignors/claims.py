"""What members say that they own, and who is believed if two name the same partition.

Owns that of several generations the newest is believed, and of one generation no one: both may read it. Does not own
where the claims are told: ``sticky`` and ``cooperative`` differ in that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cluster.client.consumer.assignors.subscribers import PartitionCounts
from cluster.topic_partition import TopicPartition


class Claim(NamedTuple):
    """What one member had in ``generation_id``, -1 if it does not know which."""

    partitions: tuple[TopicPartition, ...]
    generation_id: int


class Claims(NamedTuple):
    """``owner`` of each partition that is there; ``disputed`` ones have none. ``former`` are owners of a generation
    before the newest: they get a partition back if it has to be moved."""

    owner: dict[TopicPartition, str]
    disputed: frozenset[TopicPartition]
    former: dict[TopicPartition, str]


def settle_claims(counts: PartitionCounts, claims: Mapping[str, Claim]) -> Claims:
    """Members in order of their ids; partitions that are no more are left out."""
    newest = max((claim.generation_id for claim in claims.values()), default=-1)
    believed: dict[TopicPartition, tuple[int, str]] = {}
    disputed: dict[TopicPartition, int] = {}
    former: dict[TopicPartition, tuple[int, str]] = {}
    for member_id in sorted(claims):
        generation_id = claims[member_id].generation_id
        for partition in dict.fromkeys(claims[member_id].partitions):
            if not 0 <= partition[1] < counts.get(partition[0], 0):
                continue
            if generation_id < newest and generation_id > former.get(partition, (-2, ""))[0]:
                former[partition] = generation_id, member_id
            other = believed.get(partition)
            if other is not None and other[0] == generation_id:
                disputed[partition] = generation_id
            elif other is None or other[0] < generation_id:
                believed[partition] = generation_id, member_id
    unsettled = frozenset(partition for partition, at in disputed.items() if believed[partition][0] == at)
    return Claims(
        {partition: member_id for partition, (_, member_id) in believed.items() if partition not in unsettled},
        unsettled,
        {partition: member_id for partition, (_, member_id) in former.items()},
    )
