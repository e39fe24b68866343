"""AlterPartition's checks in the order of KIP-497, each by what answers when it alone fails."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.controller.alter_partition import (
    check_proposal,
    check_sender,
)
from cluster.controller.context import ControllerContext
from cluster.controller.partitions import Change
from cluster.isr import UNKNOWN_BROKER_EPOCH, IsrProposal
from cluster.protocol.errors import ErrorCode
from tests.cluster.controller.situations import T0, TOPIC_ID, carry_out, context_with, invariant_violations, led


def situation() -> ControllerContext:
    """Broker 1 leads in epoch 3, partition epoch 9; 3 is out of the ISR. Broker epochs 101, 102, 103."""
    return context_with((1, 2, 3), led(1, (1, 2)))


GOOD = IsrProposal(leader_epoch=3, partition_epoch=9, isr=((1, 101), (2, 102), (3, 103)))


def check(context: ControllerContext, sender: int, proposal: IsrProposal, topic_id: UUID = TOPIC_ID, number: int = 0):
    return check_proposal(context, sender, topic_id, number, proposal)


def code_of(verdict: Change | ErrorCode) -> ErrorCode:
    """What is answered once a change is written."""
    return ErrorCode.NONE if isinstance(verdict, Change) else verdict


def test_an_expansion_is_accepted_and_names_the_state_it_replaces():
    """The change is to be written over the partition epoch that was checked; the leader epoch stays."""
    context = situation()
    verdict = check(context, 1, GOOD)
    assert isinstance(verdict, Change)
    assert (verdict.topic_partition, verdict.expected_epoch) == (T0, 9)
    assert (verdict.state.isr, verdict.state.leader_epoch) == ((1, 2, 3), 3)
    carry_out(context, [verdict])
    assert invariant_violations(context) == []


def test_only_the_broker_that_is_registered_now_may_ask():
    """An old broker epoch, or none at all, is 77."""
    context = situation()
    assert check_sender(context, 1, 101) is ErrorCode.NONE
    assert check_sender(context, 1, 100) is ErrorCode.STALE_BROKER_EPOCH
    assert check_sender(context, 9, 101) is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"topic_id": UUID(int=8)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"number": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 4}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 10}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 8}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"recovering": True}, ErrorCode.INVALID_REQUEST),
        ({"isr": ((2, 102),)}, ErrorCode.INVALID_REQUEST),
        ({"isr": ()}, ErrorCode.INVALID_REQUEST),
        ({"isr": ((1, 101), (2, 102), (4, 104))}, ErrorCode.INVALID_REQUEST),
        ({"isr": ((1, 101), (3, 103), (3, 103))}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_each_check_has_its_own_answer(change, code):
    """A proposal with one thing wrong gets the error code of that check."""
    where = {name: change[name] for name in ("topic_id", "number") if name in change}
    proposal = replace(GOOD, **{name: value for name, value in change.items() if name not in where})
    assert check(situation(), 1, proposal, **where) is code


def test_a_repeated_proposal_is_answered_as_done():
    """The first answer was lost: same ISR, same leader epoch, an older partition epoch. No second write."""
    context = situation()
    verdict = check(context, 1, GOOD)
    assert isinstance(verdict, Change)
    carry_out(context, [verdict])
    assert check(context, 1, GOOD) is ErrorCode.NONE


def test_a_stale_epoch_is_told_before_an_ineligible_member():
    """The order decides: a fenced leader must not be told to retry with other members."""
    context = situation()
    del context.brokers[3]
    stale = replace(GOOD, leader_epoch=2)
    assert check(context, 1, stale) is ErrorCode.FENCED_LEADER_EPOCH
    assert check(context, 1, GOOD) is ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_does_not_enter_the_isr_by_a_proposal_for_its_former_life():
    """KIP-903: 3 was caught up as epoch 103, died, lost its disk, and is registered again as 300."""
    context = situation()
    context.brokers[3].epoch = 300
    assert check(context, 1, GOOD) is ErrorCode.INELIGIBLE_REPLICA
    seen_again = replace(GOOD, isr=((1, 101), (2, 102), (3, 300)))
    assert code_of(check(context, 1, seen_again)) is ErrorCode.NONE
    unknown = replace(GOOD, isr=((1, 101), (2, 102), (3, UNKNOWN_BROKER_EPOCH)))
    assert code_of(check(context, 1, unknown)) is ErrorCode.NONE


def test_a_broker_that_is_shutting_down_does_not_join_but_may_stay():
    """The controller took it out; its last fetches must not bring it back."""
    context = situation()
    context.brokers[3].shutting_down = True
    assert check(context, 1, GOOD) is ErrorCode.INELIGIBLE_REPLICA
    context.brokers[3].shutting_down = False
    context.brokers[2].shutting_down = True
    assert code_of(check(context, 1, GOOD)) is ErrorCode.NONE


def test_a_broker_that_does_not_lead_cannot_change_the_isr():
    """Split brain: only the leader of this epoch knows who is in sync."""
    assert check(situation(), 2, GOOD) is ErrorCode.INVALID_REQUEST


@given(
    st.integers(1, 4),
    st.integers(2, 4),
    st.integers(8, 10),
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([-1, 101, 102, 103])), max_size=4),
)
def test_whatever_is_proposed_the_invariants_hold(sender, leader_epoch, partition_epoch, isr):
    """Leader in ISR, ISR within the assignment, members live in the epoch that was named; else no change."""
    context = situation()
    proposal = IsrProposal(leader_epoch, partition_epoch, tuple(isr))
    verdict = check(context, sender, proposal)
    if not isinstance(verdict, Change):
        return
    assert (leader_epoch, partition_epoch, sender) == (3, 9, 1)
    assert all(epoch in (-1, context.brokers[member].epoch) for member, epoch in isr)
    carry_out(context, [verdict])
    assert invariant_violations(context) == []
