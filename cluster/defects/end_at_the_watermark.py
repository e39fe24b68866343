"""end-at-the-watermark: ListOffsets returns the high watermark to readers of committed records, not the last stable
offset (KAFKA-5522)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.partition_log import PartitionLog

NAME = "end-at-the-watermark"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is an end beyond the last stable offset."""
    right = rules.listed_end

    def listed_end(log: PartitionLog, high_watermark: int, only_committed: bool) -> int:
        stable = right(log, high_watermark, only_committed)
        if stable < high_watermark:
            firings.note(NAME, topic=log.topic, partition=log.partition, offset=stable, end_offset=high_watermark)
        return high_watermark

    return replace(rules, listed_end=listed_end)
