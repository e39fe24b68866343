"""lead-alone: a leader that no one answers drops its followers from the ISR by itself, and acknowledges alone.

The split brain of a leader that is cut off and does not know that another one was elected (KAFKA-14154, KAFKA-15489).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.defects.leaderships import note_leadership
from cluster.isr import IsrProposal
from cluster.replication.leader import LeaderState

NAME = "lead-alone"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a smaller ISR that counts before the controller has agreed."""

    class Alone(LeaderState):
        __slots__ = ()

        def check_lag(self, log_end_offset: int, now_ms: int) -> IsrProposal | None:
            proposal = super().check_lag(log_end_offset, now_ms)
            if proposal is not None:
                note_leadership(NAME, self, log_end_offset, firings)
                # all of them: while a change is pending, no other one is proposed
                alone = frozenset(proposal.members) - self.followers.keys()
                self.isr.committed = self.isr.maximal = alone
                self.min_insync_replicas = 1
            return proposal

    return replace(rules, lead=Alone)
