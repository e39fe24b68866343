"""Moving partitions: the replicas on the way, the end of a move, what is refused. All with values alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.controller.context import NO_LEADER, Partition
from cluster.controller.reassignment import Placement, ReassignmentError, plan_request, plan_step
from cluster.protocol.errors import ErrorCode
from tests.cluster.controller.situations import T0, context_with, led

replica_sets = st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True).map(tuple)


@pytest.mark.parametrize(
    ("before", "targets", "after"),
    [
        (Placement((1, 2, 3)), (4, 5, 6), Placement((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))),
        (Placement((1, 2, 3)), (3, 4), Placement((3, 4, 1, 2), (4,), (1, 2))),
        (Placement((1, 2)), (2, 1), Placement((2, 1))),
        (Placement((4, 5, 1, 2), (4, 5), (1, 2)), (6, 1), Placement((6, 1, 2), (6,), (2,))),
        (Placement((4, 5, 1, 2), (4, 5), (1, 2)), (1, 2), Placement((1, 2))),
    ],
)
def test_the_replicas_on_the_way_are_those_of_kip_455(before, targets, after):
    """Targets first, in their order, then what it comes from; a new move starts from where the first one did."""
    assert before.toward(targets) == after
    assert after.target == targets


@given(replica_sets, replica_sets, replica_sets)
def test_a_move_always_knows_where_it_came_from_and_where_it_goes(start, first, second):
    """Whatever moves follow each other: origin and target are exact, and a cancelled move is as if never begun."""
    moving = Placement(start).toward(first)
    assert (set(moving.origin), moving.target) == (set(start), first)
    again = moving.toward(second)
    assert (set(again.origin), again.target) == (set(start), second)
    back = again.toward(again.origin)
    assert not back.adding
    assert not back.removing
    assert set(back.replicas) == set(start)


@given(replica_sets, replica_sets, st.data())
def test_no_step_gives_up_what_is_in_sync(start, targets, data):
    """The ISR is never empty and within the replicas, the leader in it or none, the leader epoch one higher."""
    moving = Placement(start).toward(targets)
    isr = tuple(data.draw(st.lists(st.sampled_from(moving.replicas), min_size=1, unique=True)))
    leader = data.draw(st.sampled_from([*isr, NO_LEADER]))
    live = data.draw(st.sets(st.sampled_from(moving.replicas)))
    step = plan_step(moving, moving, led(leader, isr), live)
    assert step.state is not None
    assert step.state.isr
    assert set(step.state.isr) <= set(step.placement.replicas)
    assert step.state.leader == NO_LEADER or step.state.leader in step.state.isr
    assert step.state.leader_epoch == led(leader, isr).leader_epoch + 1
    assert step.is_done == (set(targets) <= set(isr) or set(targets) == set(start))
    assert not set(step.stop) & set(step.placement.replicas)
    if step.is_done:
        assert step.placement == Placement(targets)
        assert set(step.placement.replicas) | set(step.stop) == set(moving.replicas)


def test_another_leads_when_the_leader_is_moved_away():
    """The first of the targets that is alive; nobody, if none of them is, until one comes back."""
    moving = Placement((1, 2)).toward((3, 4))
    state = led(1, (1, 2, 3, 4))
    assert plan_step(moving, moving, state, {1, 2, 4}).state.leader == 4
    assert plan_step(moving, moving, state, {1, 2}).state.leader == NO_LEADER
    assert plan_step(moving, moving, replace(state, leader=4), {1, 3, 4}).state.leader == 4


def asking(partition: Partition, targets, brokers=(1, 2, 3, 4)):
    context = context_with(partition.replicas, partition.state, dict.fromkeys(brokers, 9))
    context.topics["t"].partitions[0] = partition
    return plan_request(context, T0, targets)


@pytest.mark.parametrize(
    ("targets", "code", "text"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Empty replica list"),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Duplicate replica ids"),
        ([-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Invalid broker id"),
        ([1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not alive: [9]"),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment"),
    ],
)
def test_what_makes_no_sense_is_refused(targets, code, text):
    """Impossible targets are refused with Kafka's error codes."""
    with pytest.raises(ReassignmentError, match=re.escape(text)) as refused:
        asking(Partition((1, 2), led(1, (1, 2))), targets)
    assert refused.value.error_code is code


def test_a_dead_replica_may_stay_but_not_come():
    """A move can be asked for while a replica that it keeps is away."""
    assert asking(Partition((1, 7), led(1, (1,))), [7, 2]).adding == (2,)


def test_a_move_that_alone_holds_the_records_is_not_cancelled():
    """All that came from are behind: going back would lose what is committed, and is refused, as KRaft does."""
    moving = Partition((3, 1, 2), led(3, (3,)), adding=(3,), removing=(1, 2))
    for targets in (None, [1, 2], [4, 1]):
        with pytest.raises(ReassignmentError, match="unclean"):
            asking(moving, targets)
    assert asking(moving, [3, 4]).adding == (3, 4)


def test_what_is_not_there_or_going_is_refused():
    """An unknown partition, and one of a topic that is being deleted."""
    context = context_with((1,), led(1, (1,)))
    with pytest.raises(ReassignmentError) as refused:
        plan_request(context, T0._replace(partition=5), [1])
    assert refused.value.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    context.topics["t"].deleting = True
    with pytest.raises(ReassignmentError, match="being deleted"):
        plan_request(context, T0, [1])


def test_brokers_that_do_not_exist_are_refused_first(monkeypatch):
    """A request may name a hundred thousand of them: none is compared with the others, and the message names a few."""
    context = context_with((1, 2, 3), led(1, (1, 2, 3)))
    monkeypatch.setattr(Placement, "toward", lambda *_: pytest.fail("a move is planned"))
    for targets in ([*range(100_000)], [7] * 100_000, [-1, *range(100_000)]):
        with pytest.raises(ReassignmentError) as refused:
            plan_request(context, T0, targets)
        assert refused.value.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert len(refused.value.message) < 300
