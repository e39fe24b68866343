"""elect-anybody: one copy is enough for an acknowledgment, and any live replica may lead (Kafka 0.8, KAFKA-1555).

Jepsen lost half of the acknowledged records so in 2013.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.controller.election import Election
from cluster.defects.firings import Firings
from cluster.defects.one_is_enough import with_one

NAME = "elect-anybody"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is an election from outside the ISR that the settings forbid, or an acknowledgment of too few copies."""
    right = rules.control.elect_offline

    def elect_offline(
        replicas: Sequence[int], isr: Collection[int], live: Collection[int], *, unclean: bool
    ) -> Election | None:
        clean = right(replicas, isr, live, unclean=unclean)
        if clean is not None:
            return clean
        anybody = right(replicas, isr, live, unclean=True)
        if anybody is not None:
            firings.note(NAME, leader=anybody.leader)
        # The others do not hear that it was an unclean one.
        return None if anybody is None else replace(anybody, recovering=False)

    control = replace(rules.control, elect_offline=elect_offline)
    return replace(with_one(NAME, rules, firings), control=control)
