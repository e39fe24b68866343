"""read-undecided: readers of committed records get everything up to the high watermark, decided or not (KAFKA-9807)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.partition_log import PartitionLog

NAME = "read-undecided"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is each last stable offset that a fetch goes beyond, not each fetch that does."""
    right, passed = rules.fetch_end, dict[tuple[str, int], int]()

    def fetch_end(log: PartitionLog, high_watermark: int, only_committed: bool) -> int:
        stable, key = right(log, high_watermark, only_committed), (log.topic, log.partition)
        if stable < high_watermark and passed.get(key) != stable:
            passed[key] = stable
            firings.note(NAME, topic=log.topic, partition=log.partition, offset=stable, end_offset=high_watermark)
        return high_watermark

    return replace(rules, fetch_end=fetch_end)
