"""Transitions: which are legal, and what a completed one may change."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from cluster.coordinator.transaction.state import (
    VALID_PREVIOUS,
    IllegalTxnTransition,
    complete_transition,
)
from cluster.coordinator.transaction.transitions import (
    abort_fenced,
    marker_written,
    prepare_abort_or_commit,
    prepare_add_partitions,
    prepare_complete,
    prepare_dead,
    prepare_fence_producer_epoch,
    prepare_increment_producer_epoch,
    prepare_producer_id_rotation,
)
from tests.cluster.coordinator.transaction.situations import NOW, PID, SITUATIONS, T0, T1, S, metadata_in

PREPARE = {
    S.EMPTY: lambda known: prepare_increment_producer_epoch(known, 1, None, NOW),
    S.ONGOING: lambda known: prepare_add_partitions(known, {T0}, NOW),
    S.PREPARE_COMMIT: lambda known: prepare_abort_or_commit(known, commit=True, now_ms=NOW),
    S.PREPARE_ABORT: lambda known: prepare_abort_or_commit(known, commit=False, now_ms=NOW),
    S.DEAD: prepare_dead,
    S.PREPARE_EPOCH_FENCE: prepare_fence_producer_epoch,
}
STORED = [state for state in S if state not in (S.DEAD, S.PREPARE_EPOCH_FENCE)]


@pytest.mark.parametrize(("state", "to"), list(product(STORED, PREPARE)))
def test_only_legal_transitions_are_prepared(state, to):
    """Each state has its predecessors, and no others."""
    known = replace(metadata_in(state), pending=None)
    if state in VALID_PREVIOUS[to]:
        assert PREPARE[to](known).pending.state is to
    else:
        with pytest.raises(IllegalTxnTransition):
            PREPARE[to](known)


@pytest.mark.parametrize("situation", [name for name, known in SITUATIONS.items() if known.pending])
@pytest.mark.parametrize("to", PREPARE)
def test_nothing_is_prepared_while_something_is_pending(situation, to):
    """A transaction has one pending record at a time."""
    with pytest.raises(IllegalTxnTransition):
        PREPARE[to](SITUATIONS[situation])


def test_completion_follows_the_decision():
    """COMPLETE_COMMIT after PREPARE_COMMIT, COMPLETE_ABORT after PREPARE_ABORT, without partitions."""
    for decided, complete in ((S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (S.PREPARE_ABORT, S.COMPLETE_ABORT)):
        known = marker_written(metadata_in(decided), {T0})
        done = complete_transition(known, known.pending)
        assert (done.state, done.topic_partitions, done.pending) == (complete, frozenset(), None)
    for state in (S.EMPTY, S.ONGOING, S.COMPLETE_ABORT):
        with pytest.raises(IllegalTxnTransition):
            prepare_complete(metadata_in(state), NOW)
        with pytest.raises(IllegalTxnTransition):
            marker_written(metadata_in(state), {T0})


EMPTY = prepare_increment_producer_epoch(metadata_in(S.COMPLETE_COMMIT), 5, None, NOW)
ONGOING = prepare_add_partitions(metadata_in(S.ONGOING), {T1}, NOW)
DECIDED = prepare_abort_or_commit(metadata_in(S.ONGOING), commit=True, now_ms=NOW)
COMPLETE = metadata_in(S.PREPARE_ABORT)


@pytest.mark.parametrize(
    ("known", "wrong"),
    [
        (EMPTY, {"producer_epoch": 6}),
        (EMPTY, {"producer_epoch": 3}),
        (EMPTY, {"producer_id": PID + 1}),
        (EMPTY, {"topic_partitions": frozenset({T0})}),
        (EMPTY, {"start_timestamp_ms": NOW}),
        (EMPTY, {"last_update_timestamp_ms": NOW - 11}),
        (EMPTY, {"state": S.ONGOING}),
        (ONGOING, {"producer_epoch": 5}),
        (ONGOING, {"producer_id": PID + 1}),
        (ONGOING, {"topic_partitions": frozenset({T1})}),
        (ONGOING, {"timeout_ms": 1}),
        (ONGOING, {"start_timestamp_ms": -1}),
        (DECIDED, {"producer_epoch": 5}),
        (DECIDED, {"topic_partitions": frozenset({T0, T1})}),
        (DECIDED, {"topic_partitions": frozenset()}),
        (DECIDED, {"start_timestamp_ms": NOW}),
        (DECIDED, {"timeout_ms": 1}),
        (COMPLETE, {"producer_epoch": 3}),
        (COMPLETE, {"timeout_ms": 1}),
        (COMPLETE, {"start_timestamp_ms": -1}),
        (COMPLETE, {"topic_partitions": frozenset({T0})}),
        (COMPLETE, {"last_update_timestamp_ms": 0}),
    ],
)
def test_a_transition_that_does_not_fit_is_not_completed(known, wrong):
    """Epoch, producer id, partitions, timeout and times are compared (Kafka's completeTransitionTo)."""
    assert complete_transition(known, known.pending).state is known.pending.state
    with pytest.raises(IllegalTxnTransition):
        complete_transition(known, replace(known.pending, **wrong))


def test_what_is_never_completed():
    """A fence becomes an abort at once, what is dead is removed, and nothing is completed that is not pending."""
    for known in (prepare_fence_producer_epoch(metadata_in(S.ONGOING)), prepare_dead(metadata_in(S.EMPTY))):
        with pytest.raises(IllegalTxnTransition):
            complete_transition(known, known.pending)
    with pytest.raises(IllegalTxnTransition):
        complete_transition(metadata_in(S.EMPTY), EMPTY.pending)
    with pytest.raises(IllegalTxnTransition):
        abort_fenced(metadata_in(S.ONGOING), NOW)


def test_a_fence_raises_the_epoch_at_once_and_once():
    """In memory before it is written; if that failed, the same epoch is used again, even the last one."""
    fenced = abort_fenced(prepare_fence_producer_epoch(metadata_in(S.ONGOING)), NOW)
    assert (fenced.producer_epoch, fenced.pending.producer_epoch, fenced.pending.state) == (5, 5, S.PREPARE_ABORT)
    for epoch in (5, 32767):
        failed = metadata_in(S.ONGOING, producer_epoch=epoch, has_failed_epoch_fence=True)
        assert prepare_fence_producer_epoch(failed).pending.producer_epoch == epoch
    with pytest.raises(IllegalTxnTransition):
        prepare_fence_producer_epoch(metadata_in(S.ONGOING, producer_epoch=32767))
    assert not prepare_complete(
        replace(metadata_in(S.PREPARE_ABORT), pending=None, has_failed_epoch_fence=True), NOW
    ).has_failed_epoch_fence


def test_times_do_not_go_back():
    """A clock that was set back does not make a record older than the one before."""
    assert prepare_add_partitions(metadata_in(S.ONGOING), {T1}, 5).pending.last_update_timestamp_ms == NOW - 10


def test_a_producer_id_is_changed_only_without_a_transaction():
    """Under the old id markers are still to be written."""
    for state in (S.ONGOING, S.PREPARE_COMMIT):
        with pytest.raises(IllegalTxnTransition):
            prepare_producer_id_rotation(metadata_in(state), 99, 1, NOW, record_last_epoch=True)
