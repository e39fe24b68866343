"""fetch-unstable-offsets: OffsetFetch returns offsets that an undecided transaction is about to change (KAFKA-8587).

Two members process the same records, each in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.coordinator.group.answers import FetchedOffset
from cluster.coordinator.group.group import Group
from cluster.defects.firings import Firings
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

NAME = "fetch-unstable-offsets"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """``require_stable`` is ignored (KIP-447). Returning a stable offset is not a firing."""
    right = rules.groups.fetch

    def fetch(
        group: Group | None, partitions: Iterable[TopicPartition] | None, /, *, require_stable: bool
    ) -> dict[TopicPartition, FetchedOffset]:
        wanted = None if partitions is None else list(partitions)
        told = right(group, wanted, require_stable=False)
        if group is None or not require_stable:
            return told
        asked = right(group, wanted, require_stable=True)
        unstable = [each for each in asked if asked[each].error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT]
        for topic, partition in unstable:
            offset = told[topic, partition].offset
            firings.note(NAME, group=group.group_id, topic=topic, partition=partition, offset=offset)
        return told

    return replace(rules, groups=replace(rules.groups, fetch=fetch))
