"""refuse-above-the-watermark: a position above the high watermark of a new leader is out of range (KAFKA-19902).

The high watermark of a new leader lags behind what its predecessor has shown. The consumer resets its position, to the
start or the end.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.partition_log import PartitionLog

NAME = "refuse-above-the-watermark"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is the refusal of a position that is in the log, or at its end."""
    right = rules.last_position

    def last_position(log: PartitionLog, high_watermark: int, fetch_offset: int) -> int:
        if high_watermark < fetch_offset <= right(log, high_watermark, fetch_offset):
            firings.note(
                NAME, topic=log.topic, partition=log.partition, offset=fetch_offset, high_watermark=high_watermark
            )
        return high_watermark

    return replace(rules, last_position=last_position)
