"""end-whichever-is-open: EndTxn ends the open transaction of its ID, no matter which producer sent it (KAFKA-17754).

A late EndTxn, or one from a fenced producer, ends a transaction of another epoch, or the next one of the same producer.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.coordinator.transaction.state import TransactionMetadata, TransactionState
from cluster.defects.firings import Firings
from cluster.protocol.errors import ErrorCode

NAME = "end-whichever-is-open"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """The sender is taken for the producer that owns the ID. An EndTxn that still ends nothing is not a firing."""
    right = rules.transactions.end_txn

    def end_txn(
        metadata: TransactionMetadata | None, producer_id: int, producer_epoch: int, now_ms: int, /, *, commit: bool
    ) -> TransactionMetadata | ErrorCode:
        decided = right(metadata, producer_id, producer_epoch, now_ms, commit=commit)
        if metadata is None or not isinstance(decided, ErrorCode) or metadata.state is not TransactionState.ONGOING:
            return decided
        wrong = right(metadata, metadata.producer_id, metadata.producer_epoch, now_ms, commit=commit)
        if not isinstance(wrong, ErrorCode):
            firings.note(
                NAME,
                transactional_id=metadata.transactional_id,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                ended_producer_id=metadata.producer_id,
                ended_producer_epoch=metadata.producer_epoch,
                commit=commit,
            )
        return wrong

    return replace(rules, transactions=replace(rules.transactions, end_txn=end_txn))
