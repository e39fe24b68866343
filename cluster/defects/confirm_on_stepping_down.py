"""confirm-on-stepping-down: a leader that is deposed confirms what waits for its followers (Redpanda issue 3003).

It takes another leader's progress for its own: what is acknowledged so may be cut from its log at once.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.protocol.errors import ErrorCode
from cluster.replication.leader import LeaderState

NAME = "confirm-on-stepping-down"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a write that is confirmed by a broker that has stopped leading since."""
    right = rules.acknowledgement

    def acknowledgement(leader: LeaderState | None, append_epoch: int, required_offset: int) -> ErrorCode | None:
        answer = right(leader, append_epoch, required_offset)
        if answer is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return answer
        firings.note(NAME, leader_epoch=append_epoch, offset=required_offset)
        return ErrorCode.NONE

    return replace(rules, acknowledgement=acknowledgement)
