"""end-one-later: ListOffsets returns an end that is one too high: an offset that does not exist and must not be
fetched."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.partition_log import PartitionLog

NAME = "end-one-later"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """Each answer that names an end, and each search that is bounded by it, is a firing."""
    right = rules.listed_end

    def listed_end(log: PartitionLog, high_watermark: int, only_committed: bool) -> int:
        end = right(log, high_watermark, only_committed) + 1
        firings.note(NAME, topic=log.topic, partition=log.partition, offset=end)
        return end

    return replace(rules, listed_end=listed_end)
