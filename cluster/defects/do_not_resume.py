"""do-not-resume: a new coordinator does not send the markers of transactions decided before it took over.

The transaction stays open in the partitions that lack their marker, and its producer is told to retry forever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.coordinator.transaction.state import TransactionMetadata
from cluster.defects.firings import Firings

NAME = "do-not-resume"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a transaction that is left as it was found."""
    right = rules.transactions.unfinished

    def unfinished(found: Iterable[TransactionMetadata]) -> list[TransactionMetadata]:
        for each in right(found):
            firings.note(
                NAME,
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                decision=each.state.name,
                partitions=len(each.topic_partitions),
            )
        return []

    return replace(rules, transactions=replace(rules.transactions, unfinished=unfinished))
