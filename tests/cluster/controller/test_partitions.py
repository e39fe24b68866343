"""What the controller changes when brokers come, die, bounce and leave: examples and a model of whole histories."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.controller.context import NO_LEADER, Broker
from cluster.controller.election import elect_offline
from cluster.controller.partitions import (
    BrokerChanges,
    compare_brokers,
    plan_controlled_shutdown,
    plan_new,
    plan_repairs,
    remove_brokers,
)
from tests.cluster.controller.situations import T0, carry_out, context_with, invariant_violations, led


def test_the_leader_dies_and_the_next_in_sync_one_leads():
    """First in assignment order that is live and in the ISR; ISR minus dead; leader epoch + 1."""
    context = context_with((1, 2, 3), led(1, (1, 3, 2)))
    remove_brokers(context, [1])
    [change] = plan_repairs(context, elect_offline)
    assert (change.state.leader, change.state.isr, change.state.leader_epoch) == (2, (3, 2), 4)
    assert (change.expected_epoch, change.state.controller_epoch) == (9, 5)


def test_a_follower_dies_and_leaves_the_isr_under_a_new_leader_epoch():
    """The controller changed the ISR itself: leader epoch + 1, so that a stale leader's proposal is fenced."""
    context = context_with((1, 2, 3), led(1, (1, 2, 3)))
    remove_brokers(context, [3])
    [change] = plan_repairs(context, elect_offline)
    assert (change.state.leader, change.state.isr, change.state.leader_epoch) == (1, (1, 2), 4)


def test_the_last_member_of_the_isr_is_never_removed():
    """Nobody else has all committed records: no leader, the ISR kept, and its member leads when it is back."""
    context = context_with((1, 2, 3), led(1, (1,)))
    remove_brokers(context, [1])
    [change] = plan_repairs(context, elect_offline)
    assert (change.state.leader, change.state.isr, change.state.leader_epoch) == (NO_LEADER, (1,), 4)
    carry_out(context, [change])
    assert plan_repairs(context, elect_offline) == []
    context.brokers[1] = Broker(1, 200)
    [back] = plan_repairs(context, elect_offline)
    assert (back.state.leader, back.state.isr, back.state.leader_epoch) == (1, (1,), 5)


def test_an_unclean_election_only_where_the_topic_allows_it():
    """unclean.leader.election.enable: a live replica alone in the ISR, marked as recovering."""
    for unclean in (False, True):
        context = context_with((1, 2, 3), led(1, (1,)), unclean=unclean)
        remove_brokers(context, [1])
        [change] = plan_repairs(context, elect_offline)
        assert change.state.leader == (2 if unclean else NO_LEADER)
        assert change.state.recovering is unclean


def test_a_larger_czxid_under_the_same_id_is_a_bounce():
    """The broker died and came back between two looks (KIP-380)."""
    context = context_with((1, 2, 3), led(1, (1, 2, 3)))
    changes = compare_brokers(context, {1: 101, 2: 500, 4: 501})
    assert changes == BrokerChanges(started=(4,), gone=(3,), bounced=(2,))


def test_a_controlled_shutdown_moves_what_it_can_and_names_what_it_cannot():
    """Leadership moved, the leaver out of the ISR, its replica stopped; a sole ISR member remains and is reported."""
    context = context_with((1, 2, 3), led(1, (1, 2, 3)))
    context.brokers[1].shutting_down = True
    plan = plan_controlled_shutdown(context, 1)
    assert [(c.state.leader, c.state.isr) for c in plan.changes] == [(2, (2, 3))]
    assert (plan.stop, plan.remaining) == ((T0,), ())

    context = context_with((1, 2, 3), led(2, (1, 2, 3)))
    context.brokers[1].shutting_down = True
    plan = plan_controlled_shutdown(context, 1)
    assert [(c.state.leader, c.state.isr) for c in plan.changes] == [(2, (2, 3))]
    assert plan.stop == (T0,)

    context = context_with((1, 2, 3), led(1, (1,)))
    context.brokers[1].shutting_down = True
    plan = plan_controlled_shutdown(context, 1)
    assert (plan.changes, plan.stop, plan.remaining) == ((), (), (T0,))


def test_two_brokers_leaving_at_once_do_not_elect_each_other():
    """Who is shutting down is not given leadership."""
    context = context_with((1, 2, 3), led(1, (1, 2, 3)))
    context.brokers[1].shutting_down = context.brokers[2].shutting_down = True
    plan = plan_controlled_shutdown(context, 1)
    assert [(c.state.leader, c.state.isr) for c in plan.changes] == [(3, (3,))]


def test_a_new_partition_waits_for_a_live_replica():
    """No live replica: it stays new, and gets its leader when a broker joins."""
    context = context_with((1, 2), None, brokers={3: 103})
    assert plan_new(context) == []
    context.brokers[2] = Broker(2, 200)
    [change] = plan_new(context)
    assert (change.state.leader, change.state.isr, change.state.leader_epoch) == (2, (2,), 0)
    assert change.creates


def test_a_topic_that_is_being_deleted_is_left_alone():
    """No election gives it a new leader."""
    context = context_with((1, 2), led(1, (1, 2)))
    context.topics["t"].deleting = True
    remove_brokers(context, [1])
    assert plan_repairs(context, elect_offline) == []


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("die"), st.integers(1, 4)),
        st.tuples(st.just("start"), st.integers(1, 4)),
        st.tuples(st.just("leave"), st.integers(1, 4)),
    ),
    max_size=25,
)


@given(st.permutations([1, 2, 3, 4]), st.integers(1, 4), EVENTS, st.booleans())
def test_histories_of_deaths_arrivals_and_departures_keep_the_invariants(order, factor, events, unclean):
    """Leader in ISR, ISR within the assignment and never empty, epochs only grow, nobody dead leads; and without
    unclean elections the ISR never gains a member that was not in it."""
    context = context_with(tuple(order[:factor]), None, brokers={1: 1, 2: 2, 3: 3, 4: 4}, unclean=unclean)
    carry_out(context, plan_new(context))
    epoch = 10
    for kind, broker_id in events:
        before = context.topics["t"].partitions[0].state
        assert before is not None
        epoch += 1
        if kind == "die":
            remove_brokers(context, [broker_id])
            changes = plan_repairs(context, elect_offline)
        elif kind == "start":
            remove_brokers(context, [broker_id])
            carry_out(context, plan_repairs(context, elect_offline))
            before = context.topics["t"].partitions[0].state
            context.brokers[broker_id] = Broker(broker_id, epoch)
            changes = plan_repairs(context, elect_offline)
        elif broker_id in context.brokers:
            context.brokers[broker_id].shutting_down = True
            changes = list(plan_controlled_shutdown(context, broker_id).changes)
        else:
            changes = []
        carry_out(context, changes)
        assert invariant_violations(context) == []
        after = context.topics["t"].partitions[0].state
        assert after is not None
        assert after.leader == NO_LEADER or after.leader in context.brokers
        assert after.leader_epoch == before.leader_epoch + len(changes)
        assert after.partition_epoch == before.partition_epoch + len(changes)
        if not unclean:
            assert set(after.isr) <= set(before.isr)
        if set(before.isr) & context.eligible():
            assert after.leader != NO_LEADER
