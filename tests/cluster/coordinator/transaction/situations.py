"""Metadata in every state, and a coordinator of one partition whose effects a test carries out."""

from __future__ import annotations

from dataclasses import replace

from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.decisions import AppendRecord, SendMarkers, TxnDecision
from cluster.coordinator.transaction.invariants import validate, validate_metadata
from cluster.coordinator.transaction.state import NO_TIMESTAMP, TransactionMetadata, TransactionState
from cluster.coordinator.transaction.transitions import (
    prepare_abort_or_commit,
    prepare_add_partitions,
    prepare_complete,
    prepare_dead,
)
from cluster.protocol.errors import ErrorCode

S = TransactionState
E = ErrorCode
T0, T1 = ("t", 0), ("t", 1)
PID, EPOCH, TIMEOUT_MS, NOW = 7, 4, 60_000, 1_000_000


def metadata_in(state: TransactionState, **fields) -> TransactionMetadata:
    """An id of producer 7 in epoch 4, as it is between two events; in PREPARE states the completion is pending."""
    is_open = state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT)
    found = TransactionMetadata(
        "id",
        PID,
        EPOCH,
        TIMEOUT_MS,
        NOW - 10,
        state,
        frozenset({T0}) if is_open else frozenset(),
        NO_TIMESTAMP if state is S.EMPTY else NOW - 20,
    )
    found = replace(found, **fields)
    if state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
        found = prepare_complete(found, NOW - 5)
    validate_metadata(found)
    return found


#: Everything that an id can be between two events, by name.
SITUATIONS: dict[str, TransactionMetadata] = {
    **{state.name: metadata_in(state) for state in S if state not in (S.DEAD, S.PREPARE_EPOCH_FENCE)},
    "EMPTY -> ONGOING": prepare_add_partitions(metadata_in(S.EMPTY), {T0}, NOW),
    "ONGOING -> ONGOING": prepare_add_partitions(metadata_in(S.ONGOING), {T1}, NOW),
    "ONGOING -> PREPARE_COMMIT": prepare_abort_or_commit(metadata_in(S.ONGOING), commit=True, now_ms=NOW),
    "ONGOING -> PREPARE_ABORT": prepare_abort_or_commit(metadata_in(S.ONGOING), commit=False, now_ms=NOW),
    "COMPLETE_COMMIT -> DEAD": prepare_dead(metadata_in(S.COMPLETE_COMMIT)),
}


class Bench:
    """A coordinator that serves the only partition in epoch 1, with the metadata that is given."""

    def __init__(self, *known: TransactionMetadata) -> None:
        self.coordinator = TransactionCoordinator(1, 900_000, 1000)
        self.next_producer_id: int | None = 100
        self.coordinator.elected(0, 1)
        self.started = self.coordinator.loaded(0, 1, {each.transactional_id: each for each in known}, NOW)
        self.known = self.coordinator.owned.served[0].transactions

    def take_producer_id(self) -> int | None:
        if self.next_producer_id is not None:
            self.next_producer_id += 1
        return self.next_producer_id

    def init(self, expected=None, transactional_id="id", timeout_ms=TIMEOUT_MS) -> TxnDecision:
        return self.coordinator.init_producer_id(transactional_id, timeout_ms, expected, self.take_producer_id, NOW)

    def written(self, decision: TxnDecision, error: ErrorCode = E.NONE) -> TxnDecision:
        """The one record of a decision is appended, or its append failed."""
        append = append_of(decision)
        decided = self.coordinator.appended(append, error, NOW)
        validate(self.coordinator)
        return decided

    def markers(self, decision: TxnDecision, errors) -> TxnDecision:
        """The one group of markers of a decision is answered."""
        [effect] = decision.effects
        assert isinstance(effect, SendMarkers)
        decided = self.coordinator.markers_answered(effect.markers, errors)
        validate(self.coordinator)
        return decided


def append_of(decision: TxnDecision) -> AppendRecord:
    [effect] = decision.effects
    assert isinstance(effect, AppendRecord)
    return effect


def code_of(decision: TxnDecision) -> ErrorCode:
    assert decision.answer is not None
    return decision.answer.error_code
