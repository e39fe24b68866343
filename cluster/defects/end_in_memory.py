"""end-in-memory: EndTxn is answered and its markers are sent while the decision is only in memory.

A coordinator that takes over before all markers are written finds the transaction open. It aborts the rest of it, or
lets the producer's next transaction continue it.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.coordinator.transaction.decisions import TransactionAnswer, TxnDecision
from cluster.coordinator.transaction.effects import begin_completion
from cluster.coordinator.transaction.ownership import ServedPartition
from cluster.coordinator.transaction.state import PREPARED, TransactionMetadata, complete_transition
from cluster.defects.firings import Firings
from cluster.protocol.errors import ErrorCode

NAME = "end-in-memory"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """Applies to EndTxn; what InitProducerId aborts for a producer is stored first."""
    right = rules.transactions.changed

    def changed(
        partition: int, served: ServedPartition, decided: TransactionMetadata, answer: TransactionAnswer
    ) -> TxnDecision:
        transit = decided.pending
        if transit is None or transit.state not in PREPARED or answer.error_code is not ErrorCode.NONE:
            return right(partition, served, decided, answer)
        firings.note(
            NAME,
            transactional_id=decided.transactional_id,
            producer_id=transit.producer_id,
            producer_epoch=transit.producer_epoch,
            decision=transit.state.name,
        )
        ended = complete_transition(decided, transit)
        return TxnDecision(answer, (begin_completion(partition, served, ended, transit.last_update_timestamp_ms),))

    return replace(rules, transactions=replace(rules.transactions, changed=changed))
