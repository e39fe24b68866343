"""cut-to-the-watermark: a follower begins with what it knows to be committed, as before KIP-101 (KAFKA-1211).

What it knows lags behind. If it leads before it has fetched the rest again, acknowledged records are gone.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings

NAME = "cut-to-the-watermark"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a cut that the right rule would not make."""
    right = rules.initial_truncation

    def initial_truncation(latest_epoch: int | None, high_watermark: int, log_end_offset: int) -> int:
        end = right(latest_epoch, high_watermark, log_end_offset)
        if high_watermark >= end:
            return end
        firings.note(NAME, offset=high_watermark, log_end_offset=log_end_offset)
        return high_watermark

    return replace(rules, initial_truncation=initial_truncation)
