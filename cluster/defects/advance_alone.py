"""advance-alone: the high watermark moves no matter how few replicas are in sync (KAFKA-15583).

Readers get records that only one replica may have.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.defects.leaderships import note_leadership
from cluster.replication.leader import LeaderState

NAME = "advance-alone"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a watermark that moves although too few are in sync."""

    class Hasty(LeaderState):
        __slots__ = ()

        def advance(self, log_end_offset: int, now_ms: int) -> bool:
            if self.has_enough_in_sync:
                return super().advance(log_end_offset, now_ms)
            wanted, self.min_insync_replicas = self.min_insync_replicas, 1
            try:
                moved = super().advance(log_end_offset, now_ms)
            finally:
                self.min_insync_replicas = wanted
            if moved:
                note_leadership(NAME, self, self.high_watermark, firings)
            return moved

    return replace(rules, lead=Hasty)
