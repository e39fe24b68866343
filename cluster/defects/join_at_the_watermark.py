"""join-at-the-watermark: a follower joins the ISR when it has reached the watermark, which lags after an election
(KAFKA-7128)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings

NAME = "join-at-the-watermark"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a follower that may not join yet."""
    right = rules.may_join

    def may_join(end_offset: int, high_watermark: int, epoch_start_offset: int) -> bool:
        if right(end_offset, high_watermark, epoch_start_offset):
            return True
        if end_offset < high_watermark:
            return False
        firings.note(NAME, offset=end_offset, high_watermark=high_watermark, epoch_start_offset=epoch_start_offset)
        return True

    return replace(rules, may_join=may_join)
