"""time-out-unfenced: a transaction that times out is aborted under its producer's current epoch (KAFKA-6119).

The producer is not fenced: it continues in the middle of its transaction, and commits the rest as if it were all of it.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.coordinator.transaction.state import TransactionMetadata
from cluster.coordinator.transaction.transitions import prepare_abort_or_commit
from cluster.defects.firings import Firings

NAME = "time-out-unfenced"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """Applies whenever the correct rule would abort and fence."""
    right = rules.transactions.abort_if_timed_out

    def abort_if_timed_out(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata | None:
        if right(metadata, now_ms) is None:
            return None
        firings.note(
            NAME,
            transactional_id=metadata.transactional_id,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
        )
        return prepare_abort_or_commit(metadata, commit=False, now_ms=now_ms)

    return replace(rules, transactions=replace(rules.transactions, abort_if_timed_out=abort_if_timed_out))
