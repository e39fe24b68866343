"""The transaction coordinator's decision functions in one frozen value, so that a defect can wrap one at start-up.

Owns nothing but the bundle and its correct functions that have no other home (docs/design.md "Pure decisions, six
seams").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from cluster.coordinator.transaction.decisions import TransactionAnswer, TxnDecision
from cluster.coordinator.transaction.effects import begin_append
from cluster.coordinator.transaction.expiry import abort_if_timed_out
from cluster.coordinator.transaction.ownership import ServedPartition
from cluster.coordinator.transaction.request_decisions import end_txn
from cluster.coordinator.transaction.state import PREPARED, TransactionMetadata
from cluster.protocol.errors import ErrorCode


class EndTxn(Protocol):
    """(metadata, producer id, producer epoch, now) -> the decision to write, or the error to answer."""

    def __call__(
        self,
        metadata: TransactionMetadata | None,
        producer_id: int,
        producer_epoch: int,
        now_ms: int,
        /,
        *,
        commit: bool,
    ) -> TransactionMetadata | ErrorCode: ...


def store_first(
    partition: int, served: ServedPartition, decided: TransactionMetadata, answer: TransactionAnswer
) -> TxnDecision:
    """What a request has changed is stored, and then answered."""
    return TxnDecision(effects=(begin_append(partition, served, decided, answer),))


def unfinished(found: Iterable[TransactionMetadata]) -> list[TransactionMetadata]:
    """Of what a new coordinator has read: the transactions whose outcome is decided, and whose markers may lack."""
    return [each for each in found if each.state in PREPARED]


@dataclass(frozen=True, slots=True)
class TransactionRules:
    """What a transaction coordinator decides by. The defaults are the correct rules."""

    end_txn: EndTxn = end_txn
    #: (metadata, now) -> the abort of a transaction that is open too long, or None
    abort_if_timed_out: Callable[[TransactionMetadata, int], TransactionMetadata | None] = abort_if_timed_out
    #: (partition, what is served there, what a request has changed, its answer) -> what follows
    changed: Callable[[int, ServedPartition, TransactionMetadata, TransactionAnswer], TxnDecision] = store_first
    unfinished: Callable[[Iterable[TransactionMetadata]], list[TransactionMetadata]] = unfinished


CORRECT = TransactionRules()
