"""keep-zeros: after a crash the zeros of a preallocated segment stay in the log, and batches follow them (KAFKA-5431).

Where a batch must begin there are zeros, and no reader gets past them.
"""

from __future__ import annotations

from random import Random

from cluster.broker.rules import Rules
from cluster.defects.after_crash import harmed_after_crash
from cluster.defects.firings import Firings
from cluster.log.opening import OpenedLog
from cluster.topic_partition import TopicPartition

NAME = "keep-zeros"
#: Kafka preallocates a whole segment.
PREALLOCATED_BYTES = 4096


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a segment with batches that continues behind zeros."""

    def keep(whose: TopicPartition, opened: OpenedLog, _recovery_point: int) -> None:
        segment = opened.segments.active
        if segment.size_bytes == 0:
            return
        topic, partition = whose
        firings.note(NAME, topic=topic, partition=partition, offset=segment.next_offset, zero_bytes=PREALLOCATED_BYTES)
        segment.file.append(bytes(PREALLOCATED_BYTES))
        segment.size_bytes += PREALLOCATED_BYTES

    return harmed_after_crash(keep, rules, probability, random)
