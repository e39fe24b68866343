"""Elections on request and the automatic rebalance: who gets another leader, and why the others do not."""

from __future__ import annotations

import pytest

from cluster.controller.context import NO_LEADER, Partition, TopicPartition
from cluster.controller.election import elect_offline
from cluster.controller.leadership import ElectionType, Refusal, plan_elections, plan_rebalance
from cluster.controller.partitions import Change
from cluster.protocol.errors import ErrorCode
from tests.cluster.controller.situations import T0, carry_out, context_with, led


def plan(context, kind):
    return plan_elections(context, kind, [T0], elect_offline)[T0]


@pytest.mark.parametrize(
    ("state", "brokers", "code"),
    [
        (led(1, (1, 2)), {1: 9, 2: 9}, ErrorCode.ELECTION_NOT_NEEDED),
        (led(2, (2,)), {1: 9, 2: 9}, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (led(2, (1, 2)), {2: 9}, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (None, {2: 9}, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ],
)
def test_the_preferred_replica_leads_only_if_it_is_there_and_in_sync(state, brokers, code):
    """Else the partition stays as it is, and the answer says why."""
    refusal = plan(context_with((1, 2), state, brokers), ElectionType.PREFERRED)
    assert isinstance(refusal, Refusal)
    assert refusal.error_code is code


def test_a_preferred_election_keeps_the_isr():
    """Another leader, the next leader epoch, nothing else."""
    change = plan(context_with((1, 2, 3), led(2, (2, 1))), ElectionType.PREFERRED)
    assert isinstance(change, Change)
    assert (change.state.leader, change.state.isr, change.state.leader_epoch) == (1, (2, 1), 4)
    assert change.expected_epoch == 9


def test_a_broker_that_is_leaving_is_not_elected():
    """A controlled shutdown would only move the leadership away again."""
    context = context_with((1, 2), led(2, (1, 2)))
    context.brokers[1].shutting_down = True
    assert isinstance(plan(context, ElectionType.PREFERRED), Refusal)


def test_an_unclean_election_is_for_partitions_without_leader():
    """A live leader is not touched; without any live replica there is nobody; else the first live one leads alone."""
    context = context_with((1, 2, 3), led(1, (1,)))
    assert plan(context, ElectionType.UNCLEAN).error_code is ErrorCode.ELECTION_NOT_NEEDED
    change = plan(context_with((1, 2, 3), led(NO_LEADER, (1,)), {2: 9, 3: 9}), ElectionType.UNCLEAN)
    assert (change.state.leader, change.state.isr, change.state.recovering) == (2, (2,), True)
    change = plan(context_with((1, 2, 3), led(NO_LEADER, (3,)), {2: 9, 3: 9}), ElectionType.UNCLEAN)
    assert (change.state.leader, change.state.isr, change.state.recovering) == (3, (3,), False)
    assert (
        plan(context_with((1, 2), led(NO_LEADER, (1,)), {}), ElectionType.UNCLEAN).error_code
        is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    )


def test_what_is_not_there_or_going_is_told_so():
    """Codes as Kafka's controller has them."""
    context = context_with((1,), led(1, (1,)))
    unknown = TopicPartition("u", 0)
    refusal = plan_elections(context, ElectionType.PREFERRED, [unknown], elect_offline)[unknown]
    assert refusal.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    context.topics["t"].deleting = True
    assert plan(context, ElectionType.PREFERRED).error_code is ErrorCode.INVALID_TOPIC_EXCEPTION


def balanced(led_elsewhere: int, total: int = 20):
    context = context_with((1, 2), led(1, (1, 2)))
    for number in range(total):
        leader = 2 if number < led_elsewhere else 1
        context.topics["t"].partitions[number] = Partition((1, 2), led(leader, (1, 2)))
    return context


def test_a_small_imbalance_is_left_alone():
    """Up to the allowed share of a broker's partitions may be led by others; beyond it, all go back that can."""
    assert plan_rebalance(balanced(2), 10) == []
    context = balanced(3)
    context.topics["t"].partitions[0].state = led(2, (2,))
    changes = plan_rebalance(context, 10)
    assert [change.topic_partition.partition for change in changes] == [1, 2]
    carry_out(context, changes)
    assert plan_rebalance(context, 10) == []


def test_nothing_is_rebalanced_while_a_partition_moves():
    """While a reassignment lasts, leaders are not rebalanced, as in Kafka."""
    context = balanced(20)
    context.topics["t"].partitions[7].adding = (3,)
    assert plan_rebalance(context, 10) == []
