"""OffsetsPartition: where groups are at home, a partition of ``__consumer_offsets`` that this broker leads.

Owns how it is led, and whether its groups are known. Does not own the groups (``group_table``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster.topic_partition import TopicPartition


@dataclass(slots=True)
class OffsetsPartition:
    """A partition of ``__consumer_offsets`` that this broker leads, without a break since ``leading_since``. Something
    of the groups that are ``unavailable`` cannot be read."""

    index: int
    leader_epoch: int
    leading_since: int
    is_loading: bool = True
    unavailable: frozenset[str] = frozenset()
    #: Partitions of topics that were deleted meanwhile.
    deleted: set[TopicPartition] = field(default_factory=set)
