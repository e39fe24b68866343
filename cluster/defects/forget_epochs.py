"""forget-epochs: after a crash, a replica does not know in which leader epochs its log was written (KAFKA-16541).

``leader-epoch-checkpoint`` was not synced, and the epochs are not rebuilt. As a follower, the replica starts at its
high watermark; as a leader, it mistakes the ends of earlier epochs for its own.
"""

from __future__ import annotations

from random import Random

from cluster.broker.rules import Rules
from cluster.defects.after_crash import harmed_after_crash
from cluster.defects.firings import Firings
from cluster.log.opening import OpenedLog
from cluster.topic_partition import TopicPartition

NAME = "forget-epochs"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a log with batches whose epochs are forgotten."""

    def forget(whose: TopicPartition, opened: OpenedLog, _recovery_point: int) -> None:
        epochs = opened.epochs.entries
        if epochs and opened.segments.size_bytes:
            topic, partition = whose
            end = opened.segments.active.next_offset
            firings.note(NAME, topic=topic, partition=partition, epochs=len(epochs), offset=end)
            opened.epochs.clear()

    return harmed_after_crash(forget, rules, probability, random)
