"""Defects of the transaction coordinator: each decides wrongly where the right rule would not, and notes it first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.broker.rules import Rules
from cluster.coordinator.transaction.coordinator import UNLIMITED, TransactionCoordinator
from cluster.coordinator.transaction.decisions import AppendRecord, SendMarkers, TxnDecision
from cluster.coordinator.transaction.state import TransactionMetadata
from cluster.protocol.errors import ErrorCode
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.coordinator.transaction.situations import EPOCH, NOW, PID, T0, T1, TIMEOUT_MS, S, metadata_in
from tests.cluster.defects.journal import fired, planted

LATE = NOW + TIMEOUT_MS


def serving(rules: Rules, known: TransactionMetadata) -> tuple[TransactionCoordinator, TxnDecision]:
    """A coordinator that has just read what is known, and what it does then."""
    coordinator = TransactionCoordinator(1, 900_000, 1000, UNLIMITED, rules.transactions)
    coordinator.elected(0, 1)
    return coordinator, coordinator.loaded(0, 1, {"id": known}, NOW)


def kinds(decision: TxnDecision) -> list[str]:
    """What follows: the state of each record, or that markers are sent."""
    return [
        each.transit.state.name if isinstance(each, AppendRecord) else type(each).__name__ for each in decision.effects
    ]


def names(storage: MemoryStorage) -> list[object]:
    return [line["defect"] for line in fired(storage)]


def test_end_whichever_is_open_takes_anyone_for_the_producer() -> None:
    """An EndTxn of a former epoch ends what is open; where nothing is, it is refused as ever."""
    storage = MemoryStorage()
    rules = planted(storage, "end-whichever-is-open")
    for state, ends in ((S.EMPTY, False), (S.ONGOING, True)):
        known = metadata_in(state)
        right, _ = serving(Rules(), known)
        assert right.end_txn("id", PID, EPOCH - 1, NOW, commit=True).answer is not None
        wrong, _ = serving(rules, known)
        assert kinds(wrong.end_txn("id", PID, EPOCH - 1, NOW, commit=True)) == (["PREPARE_COMMIT"] if ends else [])
    mine, _ = serving(rules, metadata_in(S.ONGOING))
    assert kinds(mine.end_txn("id", PID, EPOCH, NOW, commit=False)) == ["PREPARE_ABORT"]
    [line] = fired(storage)
    assert (line["defect"], line["producer_epoch"], line["ended_producer_epoch"], line["commit"]) == (
        "end-whichever-is-open", EPOCH - 1, EPOCH, True
    )  # fmt: skip


def test_time_out_unfenced_keeps_the_epoch() -> None:
    """What is open too long is aborted in the epoch of its producer, which may go on."""
    storage = MemoryStorage()
    for rules, epoch in ((Rules(), EPOCH + 1), (planted(storage, "time-out-unfenced"), EPOCH)):
        coordinator, _ = serving(rules, metadata_in(S.ONGOING))
        assert kinds(coordinator.abort_timed_out([(0, "id")], NOW)) == []
        [effect] = coordinator.abort_timed_out([(0, "id")], LATE).effects
        assert isinstance(effect, AppendRecord)
        assert (effect.transit.state, effect.transit.producer_epoch) == (S.PREPARE_ABORT, epoch)
    assert names(storage) == ["time-out-unfenced"]


def test_add_in_memory_stores_nothing_before_the_end() -> None:
    """Partitions are added and answered at once; the decision is stored with all of them."""
    storage = MemoryStorage()
    coordinator, _ = serving(planted(storage, "add-in-memory"), metadata_in(S.EMPTY))
    for count, added in enumerate((T0, T1), 1):
        decision = coordinator.add_partitions("id", PID, EPOCH, {added}, NOW)
        assert decision.answer is not None and decision.answer.error_code is ErrorCode.NONE and not decision.effects
        assert [line["partitions"] for line in fired(storage)] == list(range(1, count + 1))
    [effect] = coordinator.end_txn("id", PID, EPOCH, NOW, commit=True).effects
    assert isinstance(effect, AppendRecord) and effect.transit.topic_partitions == {T0, T1}
    assert names(storage) == ["add-in-memory"] * 2


@pytest.mark.parametrize(("is_commit", "decision"), [(True, "PREPARE_COMMIT"), (False, "PREPARE_ABORT")])
def test_end_in_memory_sends_markers_of_what_is_not_stored(is_commit: bool, decision: str) -> None:
    """EndTxn is answered and its markers go out at once; only that all are written is stored."""
    storage = MemoryStorage()
    coordinator, _ = serving(planted(storage, "end-in-memory"), metadata_in(S.ONGOING))
    ended = coordinator.end_txn("id", PID, EPOCH, NOW, commit=is_commit)
    assert ended.answer is not None and ended.answer.error_code is ErrorCode.NONE
    [effect] = ended.effects
    assert isinstance(effect, SendMarkers) and effect.markers.commit is is_commit
    written = coordinator.markers_answered(effect.markers, {T0: ErrorCode.NONE})
    assert kinds(written) == [decision.replace("PREPARE", "COMPLETE")]
    assert [(line["defect"], line["decision"]) for line in fired(storage)] == [("end-in-memory", decision)]


def test_end_in_memory_stores_what_a_new_producer_aborts() -> None:
    """InitProducerId is told to ask again: that it may is stored first."""
    storage = MemoryStorage()
    coordinator, _ = serving(planted(storage, "end-in-memory"), metadata_in(S.ONGOING))
    assert kinds(coordinator.init_producer_id("id", TIMEOUT_MS, None, lambda: 9, NOW)) == ["PREPARE_ABORT"]
    assert not fired(storage)


def test_do_not_resume_leaves_what_was_decided() -> None:
    """A new coordinator sends no markers; what is not decided is no firing."""
    storage = MemoryStorage()
    rules = planted(storage, "do-not-resume")
    decided = replace(metadata_in(S.PREPARE_COMMIT), pending=None)
    assert kinds(serving(Rules(), decided)[1]) == ["SendMarkers"]
    assert kinds(serving(rules, decided)[1]) == []
    assert kinds(serving(rules, metadata_in(S.ONGOING))[1]) == []
    assert [(line["defect"], line["decision"]) for line in fired(storage)] == [("do-not-resume", "PREPARE_COMMIT")]
