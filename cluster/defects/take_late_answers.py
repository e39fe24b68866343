"""take-late-answers: a follower carries out an answer to what it asked before its log or its leader changed
(KAFKA-18723)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.protocol.errors import ErrorCode
from cluster.replication.follower import FetchPosition, Reaction

NAME = "take-late-answers"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is an answer without error that the right rule ignores."""
    right = rules.react

    def react(sent: FetchPosition, here: FetchPosition, error_code: ErrorCode, *, diverges: bool) -> Reaction:
        what = right(sent, here, error_code, diverges=diverges)
        if what is not Reaction.IGNORE or error_code is not ErrorCode.NONE:
            return what
        firings.note(NAME, leader_epoch=here.leader_epoch, offset=here.fetch_offset, asked_from=sent.fetch_offset)
        return right(here, here, error_code, diverges=diverges)

    return replace(rules, react=react)
