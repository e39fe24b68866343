"""add-in-memory: a coordinator keeps the partitions of a transaction only in memory (Redpanda issue 6018).

They are stored with the decision. A coordinator that takes over before that does not know about the transaction, so no
marker is written.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.coordinator.transaction.decisions import TransactionAnswer, TxnDecision
from cluster.coordinator.transaction.ownership import ServedPartition
from cluster.coordinator.transaction.state import TransactionMetadata, TransactionState, complete_transition
from cluster.defects.firings import Firings

NAME = "add-in-memory"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """AddPartitionsToTxn is answered at once, and nothing is appended."""
    right = rules.transactions.changed

    def changed(
        partition: int, served: ServedPartition, decided: TransactionMetadata, answer: TransactionAnswer
    ) -> TxnDecision:
        transit = decided.pending
        if transit is None or transit.state is not TransactionState.ONGOING:
            return right(partition, served, decided, answer)
        firings.note(
            NAME,
            transactional_id=decided.transactional_id,
            producer_id=transit.producer_id,
            producer_epoch=transit.producer_epoch,
            partitions=len(transit.topic_partitions),
        )
        served.put(complete_transition(decided, transit))
        return TxnDecision(answer)

    return replace(rules, transactions=replace(rules.transactions, changed=changed))
