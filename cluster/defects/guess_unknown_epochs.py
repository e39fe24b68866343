"""guess-unknown-epochs: a leader reports its log end as the end of an epoch that it does not know (KIP-279).

The follower keeps records at its end that the leader never had.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.epochs import LeaderEpochCache

NAME = "guess-unknown-epochs"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is an answer about an epoch that is not in the leader's log."""
    right = rules.end_offset_for

    def end_offset_for(epochs: LeaderEpochCache, epoch: int, log_end_offset: int) -> tuple[int, int]:
        found = right(epochs, epoch, log_end_offset)
        if found[0] == epoch or found == (epoch, log_end_offset):
            return found
        firings.note(NAME, epoch=epoch, found_epoch=found[0], found_offset=found[1], offset=log_end_offset)
        return epoch, log_end_offset

    return replace(rules, end_offset_for=end_offset_for)
