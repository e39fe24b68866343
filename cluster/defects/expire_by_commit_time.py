"""expire-by-commit-time: offsets expire by the time of their commit, even while members use them (KAFKA-4682)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.coordinator.group.group import Group
from cluster.defects.firings import Firings
from cluster.topic_partition import TopicPartition

NAME = "expire-by-commit-time"

#: By far less than anything lives: ``offsets.retention.minutes`` is a minute at least, as long as a run.
_SHORT_MS = 300


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is an offset that the right rule would keep."""
    right = rules.groups.expired_offsets

    def expired_offsets(group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
        expired = right(group, now_ms, retention_ms)
        for partition, placed in group.offsets.committed.items():
            is_young = now_ms - placed.committed.commit_timestamp_ms < min(_SHORT_MS, retention_ms)
            if is_young or partition in expired or group.offsets.is_uncommitted(partition):
                continue
            topic, number = partition
            offset = placed.committed.offset
            firings.note(NAME, group=group.group_id, topic=topic, partition=number, offset=offset)
            expired.append(partition)
        return expired

    return replace(rules, groups=replace(rules.groups, expired_offsets=expired_offsets))
