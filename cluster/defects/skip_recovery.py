"""skip-recovery: after a crash, the broker does not examine what was not synced, and one batch of it is incomplete.

The recovery point was ahead of what had been synced (KAFKA-10101). The second half of the batch never reached the disk:
its header is there, and its checksum is wrong.
"""

from __future__ import annotations

from random import Random

from cluster.broker.rules import Rules
from cluster.defects.after_crash import harmed_after_crash
from cluster.defects.firings import Firings
from cluster.log.opening import OpenedLog
from cluster.log.segment import Segment
from cluster.protocol.batch import HEADER_BYTES, BatchHeader
from cluster.topic_partition import TopicPartition

NAME = "skip-recovery"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a batch above the recovery point; of the older half of these, which others have in all likelihood."""

    def tear(whose: TopicPartition, opened: OpenedLog, recovery_point: int) -> None:
        segment = opened.segments.active
        unsynced = [found for found in segment.headers() if found[1].base_offset >= recovery_point]
        if not unsynced:
            return
        position, header = random.choice(unsynced[: (len(unsynced) + 1) // 2])
        start, lost = _second_half(segment, position, header)
        if not any(lost):
            return
        topic, partition = whose
        firings.note(
            NAME,
            topic=topic,
            partition=partition,
            offset=header.base_offset,
            count=header.record_count,
            lost_bytes=len(lost),
        )
        segment.file.pwrite(bytes(len(lost)), start)

    return harmed_after_crash(tear, rules, probability, random)


def _second_half(segment: Segment, position: int, header: BatchHeader) -> tuple[int, bytes]:
    """Where it begins, and its bytes."""
    start = position + HEADER_BYTES + (header.size_bytes - HEADER_BYTES) // 2
    return start, segment.file.pread(position + header.size_bytes - start, start)
