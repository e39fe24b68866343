"""A static member that restarts in the middle of a cooperative handover (KIP-345, KIP-429)."""

from __future__ import annotations

import pytest

from cluster.coordinator.group.handover import MOST_BYTES
from cluster.coordinator.group.requests import Protocols
from cluster.coordinator.group.states import GroupState
from cluster.protocol.consumer_protocol import (
    PartitionAssignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from cluster.topic_partition import TopicPartition
from tests.cluster.coordinator.group.world import TOPIC, World

COOPERATIVE = "cooperative-sticky"
I1, I2 = "i-1", "j-2"
T0, T1, T2 = (TOPIC, 0), (TOPIC, 1), (TOPIC, 2)


def cooperative(*owned: TopicPartition, topics: tuple[str, ...] = (TOPIC,), user_data: bytes = b"") -> Protocols:
    return ((COOPERATIVE, encode_subscription(Subscription(topics, user_data, owned, 1))),)


def formed(first: Protocols, *of_first: TopicPartition, other: tuple[TopicPartition, ...] = ()) -> World:
    """A Stable group of the static members i, which joined as ``first`` says, and j, which owned nothing."""
    world = World()
    waiters = [world.join(instance="i", protocols=first), world.join(instance="j", protocols=cooperative())]
    world.advance(2 * world.settings.group_initial_rebalance_delay_ms)
    assert [world.answers[waiter].member_id for waiter in waiters] == [I1, I2]
    assigned = {I1: of_first, I2: other}
    told = {member_id: encode_assignment(PartitionAssignment(tuple(places))) for member_id, places in assigned.items()}
    world.sync(I2, 1)
    world.sync(I1, 1, told)
    world.settle()
    assert world.group.state is GroupState.STABLE
    return world


@pytest.mark.parametrize("instance", ["i", "j"])
@pytest.mark.parametrize("fails_over", [False, True])
def test_a_restart_in_a_handover_rebalances(instance: str, fails_over: bool) -> None:
    """i gave T2 away, and is not there to join again for it: in a generation that stays, nobody would read T2."""
    world = formed(cooperative(T0, T1, T2), T0, T1)
    if fails_over:
        world.join(I1, instance="i", protocols=cooperative(T0, T1))  # the next coordinator does not know of it
        world.fail_over()
        assert world.group.state is GroupState.STABLE
    world.join(instance=instance, protocols=cooperative())
    assert world.group.state is GroupState.PREPARING_REBALANCE


@pytest.mark.parametrize(
    ("first", "of_first", "other"),
    [
        (cooperative(T0, T1, T2), (T0, T1), (T2,)),
        (cooperative(), (T0, T1), ()),
        (cooperative(T0, ("gone", 0)), (T0,), ()),
        (((COOPERATIVE, b"of another kind"),), (T0,), ()),
        (cooperative(T0, T1, T2, user_data=bytes(MOST_BYTES)), (T0, T1), ()),
    ],
    ids=["handed over", "nothing was owned", "not wanted anymore", "unreadable", "too large to be read"],
)
def test_a_restart_without_a_handover_does_not_rebalance(
    first: Protocols, of_first: tuple[TopicPartition, ...], other: tuple[TopicPartition, ...]
) -> None:
    """The assignment stays, as in Kafka; also where it is not known what was given away."""
    world = formed(first, *of_first, other=other)
    world.join(instance="i", protocols=cooperative())
    world.settle()
    assert world.group.state is GroupState.STABLE
