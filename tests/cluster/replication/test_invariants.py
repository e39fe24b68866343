"""Each invariant of a leadership, broken by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.invariants import InvariantBroken
from cluster.isr import IsrProposal
from cluster.replication import invariants
from cluster.replication.leader import LeaderState
from tests.cluster.replication.test_leader import leading
from tests.support.invariants import is_named, raised, stated

END = 10


def leadership() -> LeaderState:
    """Everybody is in sync and holds all but the last record."""
    leader = leading(end=8, watermark=5)
    leader.fetched(2, 9, END, 0)
    leader.fetched(3, 9, END, 0)
    return leader


def forget_the_leader(leader: LeaderState) -> None:
    leader.isr.committed = leader.isr.maximal = frozenset({2, 3})


def admit_a_stranger(leader: LeaderState) -> None:
    leader.isr.committed = leader.isr.maximal = frozenset({1, 2, 3, 4})


def forget_who_leaves(leader: LeaderState) -> None:
    leader.isr.propose_removing([3], {})
    leader.isr.maximal = frozenset({1, 2})


def keep_an_old_proposal(leader: LeaderState) -> None:
    leader.isr.pending = IsrProposal(leader.leader_epoch - 1, 0, ((1, -1), (2, -1), (3, -1)))


def run_ahead(leader: LeaderState) -> None:
    leader.followers[2].log_end_offset = END + 1


def commit_too_much(leader: LeaderState) -> None:
    leader.high_watermark = END + 1


def commit_before_all_have_it(leader: LeaderState) -> None:
    leader.high_watermark = END


def forget_to_advance(leader: LeaderState) -> None:
    leader.followers[2].log_end_offset = leader.followers[3].log_end_offset = END


def lead_in_another_epoch(leader: LeaderState) -> None:
    leader.leader_epoch += 1


def lead_since_later(leader: LeaderState) -> None:
    leader.leading_since += 1


def ask_too_many(leader: LeaderState) -> None:
    leader.min_insync_replicas = 4
    leader.high_watermark = 5


BREAKS: list[tuple[str, Callable[[LeaderState], None]]] = [
    ("leader-in-isr", forget_the_leader),
    ("isr-of-replicas", admit_a_stranger),
    ("isr-maximal", forget_who_leaves),
    ("isr-maximal", keep_an_old_proposal),
    ("follower-within", run_ahead),
    ("watermark-within", commit_too_much),
    ("watermark-within", commit_before_all_have_it),
    ("watermark-reached", forget_to_advance),
    ("leader-epochs", lead_in_another_epoch),
    ("leader-epochs", lead_since_later),
    ("leader-epochs", ask_too_many),
]


@pytest.mark.parametrize(("name", "break_it"), BREAKS)
def test_what_is_broken_is_named(name: str, break_it: Callable[[LeaderState], None]) -> None:
    """One line with the invariant's name and the values."""
    leader = leadership()
    is_named(name, lambda: invariants.validate(leader, END), lambda: break_it(leader))


def test_each_is_stated_checked_and_broken() -> None:
    """In words, in code, and by hand."""
    assert stated(invariants) == raised(invariants) == {name for name, _ in BREAKS}


def test_a_member_that_is_being_removed_may_have_come_back_with_less() -> None:
    """A power loss took what it had, and the controller has agreed to its removal already: the answer was lost."""
    leader = leading(end=8, watermark=5)
    leader.fetched(2, 9, END, 0)
    leader.isr.propose_removing([3], {})
    leader.fetched(3, 0, END, 0)
    invariants.validate(leader, END)
    leader.isr.pending, leader.isr.maximal = None, leader.isr.committed
    with pytest.raises(InvariantBroken, match="watermark-within"):
        invariants.validate(leader, END)
