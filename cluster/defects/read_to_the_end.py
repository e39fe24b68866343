"""read-to-the-end: consumers are given what is not replicated yet (KAFKA-9835).

The end of the log is read twice while it grows, and the second result bounds what is read.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.partition_log import PartitionLog

NAME = "read-to-the-end"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a fetch, with ``probability``, whose bound is not the right one."""
    right = rules.fetch_end

    def fetch_end(log: PartitionLog, high_watermark: int, only_committed: bool) -> int:
        end = right(log, high_watermark, only_committed)
        if log.log_end_offset <= end or random.random() >= probability:
            return end
        firings.note(NAME, topic=log.topic, partition=log.partition, offset=end, log_end_offset=log.log_end_offset)
        return log.log_end_offset

    return replace(rules, fetch_end=fetch_end)
