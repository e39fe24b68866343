"""The life of an ISR change: one in flight, settled by an answer about this very change (KIP-497)."""

from __future__ import annotations

import pytest

from cluster.isr import IsrAnswer
from cluster.protocol.errors import ErrorCode
from cluster.replication.isr import InSyncReplicas, IsrOutcome


def isr_with_change() -> InSyncReplicas:
    isr = InSyncReplicas((1, 2), leader_epoch=3, partition_epoch=7)
    assert isr.propose_adding(3, {2: 20, 3: 30}) is not None
    return isr


def test_a_proposal_names_epochs_and_broker_epochs() -> None:
    """What the controller needs to fence it; of a member that was not seen the epoch is unknown."""
    isr = isr_with_change()
    proposal = isr.pending
    assert proposal is not None
    assert (proposal.leader_epoch, proposal.partition_epoch) == (3, 7)
    assert (proposal.members, proposal.isr) == ((1, 2, 3), ((1, -1), (2, 20), (3, 30)))
    assert (isr.committed, isr.maximal) == ({1, 2}, {1, 2, 3})


def test_one_change_at_a_time() -> None:
    """While one is in flight, and for what is so already, nothing is proposed."""
    isr = isr_with_change()
    assert isr.propose_removing([2], {}) is None
    assert isr.propose_adding(4, {}) is None
    calm = InSyncReplicas((1, 2), 3, 7)
    assert calm.propose_adding(2, {}) is None
    assert calm.propose_removing([9], {}) is None


def test_a_replica_to_be_removed_counts_until_it_is() -> None:
    """The maximal ISR keeps it: the controller may say no."""
    isr = InSyncReplicas((1, 2), 3, 7)
    proposal = isr.propose_removing([2], {})
    assert proposal is not None
    assert (proposal.members, isr.maximal) == ((1,), {1, 2})
    assert isr.answered(proposal, IsrAnswer(ErrorCode.NONE, 3, (1,), 8)) is IsrOutcome.COMMITTED
    assert (isr.committed, isr.maximal, isr.partition_epoch, isr.pending) == ({1}, {1}, 8, None)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, IsrOutcome.REVERTED),
        (ErrorCode.INELIGIBLE_REPLICA, IsrOutcome.REVERTED),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, IsrOutcome.WAIT),
        (ErrorCode.UNKNOWN_TOPIC_ID, IsrOutcome.WAIT),
        (ErrorCode.FENCED_LEADER_EPOCH, IsrOutcome.WAIT),
        (ErrorCode.INVALID_UPDATE_VERSION, IsrOutcome.WAIT),
        (ErrorCode.INVALID_REQUEST, IsrOutcome.WAIT),
        (ErrorCode.NOT_CONTROLLER, IsrOutcome.RETRY),
        (ErrorCode.STALE_BROKER_EPOCH, IsrOutcome.RETRY),
        (ErrorCode.UNKNOWN_SERVER_ERROR, IsrOutcome.RETRY),
    ],
)
def test_errors_settle_it_or_not(code: ErrorCode, outcome: IsrOutcome) -> None:
    """Reverted, pending until a LeaderAndIsr, or asked again; only a revert frees the way for another change."""
    isr = isr_with_change()
    proposal = isr.pending
    assert proposal is not None
    assert isr.answered(proposal, IsrAnswer(code)) is outcome
    assert (isr.pending is None) == (outcome is IsrOutcome.REVERTED)
    assert isr.maximal == ({1, 2} if outcome is IsrOutcome.REVERTED else {1, 2, 3})


def test_answers_about_something_else_are_stale() -> None:
    """Another proposal, another leader epoch, an older partition epoch."""
    isr = isr_with_change()
    proposal = isr.pending
    assert proposal is not None
    other = InSyncReplicas((1, 2), 3, 7).propose_adding(3, {})
    assert other is not None
    good = IsrAnswer(ErrorCode.NONE, 3, (1, 2, 3), 8)
    assert isr.answered(other, good) is IsrOutcome.STALE
    assert isr.answered(proposal, IsrAnswer(ErrorCode.NONE, 4, (1, 2, 3), 8)) is IsrOutcome.STALE
    assert isr.answered(proposal, IsrAnswer(ErrorCode.NONE, 3, (1, 2, 3), 6)) is IsrOutcome.STALE
    assert isr.answered(proposal, good) is IsrOutcome.COMMITTED


def test_the_controllers_word_ends_a_pending_change() -> None:
    """A newer partition epoch in the same leader epoch; an older one is passed over."""
    isr = isr_with_change()
    assert not isr.told((1,), 7)
    assert isr.told((1,), 9)
    assert (isr.committed, isr.pending, isr.partition_epoch) == ({1}, None, 9)
