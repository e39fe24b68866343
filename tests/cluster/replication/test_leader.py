"""What a leader knows of its followers: caught up or not, in sync or not, and the watermark that follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.isr import IsrAnswer
from cluster.protocol.errors import ErrorCode
from cluster.replication.high_watermark import (
    follower_high_watermark,
    leader_high_watermark,
    restored_high_watermark,
)
from cluster.replication.isr import IsrOutcome
from cluster.replication.leader import LeaderState, acknowledgement

LAG_MS = 1000
OFFSETS = st.integers(-1, 50)


def leading(
    *,
    isr: tuple[int, ...] = (1, 2, 3),
    replicas: tuple[int, ...] = (1, 2, 3),
    adding: tuple[int, ...] = (),
    end: int = 10,
    watermark: int = 5,
    minimum: int = 2,
    eligible: Callable[[int], bool] = lambda _broker: True,
    leading_since: int | None = None,
) -> LeaderState:
    return LeaderState(
        broker_id=1,
        replicas=replicas,
        adding=adding,
        isr=isr,
        leader_epoch=4,
        partition_epoch=0,
        log_end_offset=end,
        high_watermark=watermark,
        min_insync_replicas=minimum,
        lag_time_max_ms=LAG_MS,
        now_ms=0,
        eligible=eligible,
        leading_since=leading_since,
    )


@given(current=OFFSETS, end=OFFSETS, counted=st.lists(OFFSETS, max_size=4))
def test_the_watermark_is_the_least_end_and_never_goes_back(current: int, end: int, counted: list[int]) -> None:
    """The high watermark agrees with the obvious formula."""
    assert leader_high_watermark(current, end, counted) == max(current, min([end, *counted]))


@given(current=OFFSETS, leader=OFFSETS, end=OFFSETS)
def test_a_followers_watermark_stays_within_its_log(current: int, leader: int, end: int) -> None:
    """It learns as far as its log reaches, and forgets nothing."""
    found = follower_high_watermark(current, leader, end)
    assert found == max(current, min(leader, end))


@pytest.mark.parametrize(("checkpoint", "found"), [(7, 7), (20, 10), (0, 3)])
def test_the_watermark_after_a_start(checkpoint: int, found: int) -> None:
    """The checkpoint, within the log [3, 10)."""
    assert restored_high_watermark(checkpoint, 3, 10) == found


def test_a_new_leader_knows_nothing_of_its_followers() -> None:
    """The watermark stands until every member of the ISR has fetched in this epoch."""
    leader = leading()
    assert not leader.knows_its_end
    assert leader.fetched(2, 10, 10, 1) == (False, None)
    assert leader.fetched(3, 8, 10, 1) == (True, None)
    assert (leader.high_watermark, leader.knows_its_end) == (8, False)
    leader.fetched(3, 10, 10, 2)
    assert (leader.high_watermark, leader.knows_its_end) == (10, True)


def test_members_of_the_isr_get_one_lag_time() -> None:
    """Those outside have to show themselves: they neither hold the watermark nor count as caught up."""
    leader = leading(isr=(1, 2))
    leader.fetched(2, 10, 10, 1)
    assert leader.high_watermark == 10
    assert leader.check_lag(11, LAG_MS) is None
    proposal = leader.check_lag(11, LAG_MS + 2)
    assert proposal is not None
    assert proposal.members == (1,)


def test_a_replica_that_is_about_to_join_holds_the_watermark() -> None:
    """Else a busy leader's watermark would run away from it for ever; a dead broker's does not count."""
    alive = {3}
    leader = leading(isr=(1, 2), eligible=alive.__contains__)
    leader.fetched(3, 10, 10, 1)
    leader.fetched(2, 10, 10, 1)
    leader.isr.pending = None
    leader.isr.maximal = leader.isr.committed
    leader.fetched(2, 12, 12, 2)
    assert leader.high_watermark == 10
    alive.clear()
    assert leader.advance(12, 3)
    assert leader.high_watermark == 12


def test_who_may_join() -> None:
    """At the watermark and at the epoch's start, alive, and nothing else in flight."""
    leader = leading(isr=(1, 2), end=10, watermark=5)
    assert leader.fetched(3, 7, 10, 1)[1] is None, "above the watermark, below the start of the epoch"
    proposal = leader.fetched(3, 10, 12, 2)[1]
    assert proposal is not None
    assert proposal.members == (1, 2, 3)
    assert leader.fetched(3, 11, 12, 3)[1] is None, "in flight already"
    dead = leading(isr=(1, 2), eligible=lambda _broker: False)
    assert dead.fetched(3, 10, 10, 1)[1] is None


def test_a_refused_change_lets_the_watermark_go_on() -> None:
    """Reverted: the replica counts no more, and the watermark moves at once."""
    leader = leading(isr=(1, 2))
    proposal = leader.fetched(3, 10, 10, 1)[1]
    assert proposal is not None
    leader.fetched(2, 12, 12, 2)
    assert leader.high_watermark == 10
    leader.followers[3].caught_up_ms = -(10**6)
    outcome, moved = leader.answered(proposal, IsrAnswer(ErrorCode.INELIGIBLE_REPLICA), 12, 3)
    assert (outcome, moved, leader.high_watermark) == (IsrOutcome.REVERTED, True, 12)


def test_min_insync_replicas_cannot_ask_for_more_than_there_are() -> None:
    """A topic of one replica under a broker's min.insync.replicas of 2 is written to."""
    leader = leading(isr=(1,), replicas=(1,), minimum=2)
    assert leader.has_enough_in_sync
    assert leader.advance(11, 0)
    assert not leader.is_under_replicated


@pytest.mark.parametrize(
    ("replicas", "adding", "isr", "lacks"),
    [
        ((1, 2, 3), (), (1, 2, 3), False),
        ((1, 2, 3), (), (1, 2), True),
        ((1, 2, 3), (3,), (1, 2), False),
        ((1, 2, 3, 4), (3, 4), (1,), True),
        # By number alone: one that has joined makes up for one that has left.
        ((1, 2, 3), (3,), (1, 3), False),
    ],
)
def test_replicas_that_are_added_are_not_missed(
    replicas: tuple[int, ...], adding: tuple[int, ...], isr: tuple[int, ...], lacks: bool
) -> None:
    """UnderReplicatedPartitions compares the in-sync set with the replicas there were before a reassignment."""
    assert leading(replicas=replicas, adding=adding, isr=isr).is_under_replicated is lacks


def test_acknowledgements() -> None:
    """Wait, success, too few replicas, another leadership, no leader."""
    leader = leading(watermark=8)
    since = leading(watermark=8, leading_since=2)
    assert [acknowledgement(since, epoch, 8) for epoch in (2, 3, 4)] == [ErrorCode.NONE] * 3
    assert acknowledgement(since, 1, 8) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert acknowledgement(leader, 4, 9) is None
    assert acknowledgement(leader, 4, 8) is ErrorCode.NONE
    assert acknowledgement(leader, 3, 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert acknowledgement(None, 4, 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert acknowledgement(leading(isr=(1,), watermark=8), 4, 8) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
