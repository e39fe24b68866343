"""The receiving broker's fence, and who is told what."""

from __future__ import annotations

import pytest

from cluster.controller.context import Partition, Topic, TopicPartition
from cluster.controller.control_fence import control_request_error
from cluster.controller.outbox import Outbox
from cluster.controller.partitions import Change
from cluster.protocol.errors import ErrorCode
from tests.cluster.controller.situations import T0, TOPIC_ID, context_with, led


@pytest.mark.parametrize(
    ("controller_epoch", "broker_epoch", "own", "code"),
    [
        (7, 50, 50, ErrorCode.NONE),
        (8, 50, 50, ErrorCode.NONE),
        (6, 50, 50, ErrorCode.STALE_CONTROLLER_EPOCH),
        (7, 49, 50, ErrorCode.STALE_BROKER_EPOCH),
        (7, 51, 50, ErrorCode.NONE),
        (7, -1, 50, ErrorCode.STALE_BROKER_EPOCH),
        (7, 50, -1, ErrorCode.STALE_BROKER_EPOCH),
        (6, 49, 50, ErrorCode.STALE_CONTROLLER_EPOCH),
    ],
)
def test_the_fence(controller_epoch, broker_epoch, own, code):
    """Stale controllers are 11, requests for a former life 77; a broker that is not registered obeys nobody."""
    found = control_request_error(controller_epoch, broker_epoch, known_controller_epoch=7, own_broker_epoch=own)
    assert found is code


def test_a_change_goes_to_the_replicas_and_its_metadata_to_everybody():
    """LeaderAndIsr to live replicas only, UpdateMetadata to all registered brokers."""
    context = context_with((1, 2, 3), led(1, (1, 2)), brokers={1: 101, 2: 102, 4: 104})
    outbox = Outbox(context)
    outbox.add_changes([Change(T0, led(1, (1, 2)), 9, "test")])
    assert {b: sorted(p.leader_and_isr) for b, p in outbox.parcels.items()} == {1: [T0], 2: [T0], 4: []}
    assert all(parcel.update_metadata == {T0} for parcel in outbox.parcels.values())


def test_a_broker_can_be_left_out():
    """Who is to stop its replica need not hear who leads it next."""
    outbox = Outbox(context_with((1, 2, 3), led(1, (1, 2, 3))))
    outbox.add_leader_and_isr(T0, but=2)
    assert sorted(outbox.parcels) == [1, 3]


def test_a_partition_that_is_new_stays_marked_as_new():
    """is_new tells a broker that there may be no log yet; a second mention must not take it back."""
    context = context_with((1, 2), led(1, (1, 2)))
    outbox = Outbox(context)
    outbox.add_changes([Change(T0, led(1, (1, 2)), None, "new")])
    outbox.add_all_leader_and_isr(1)
    assert outbox.parcels[1].leader_and_isr == {T0: True}
    assert outbox.parcels[1].full_leader_and_isr
    assert not outbox.parcels[2].full_leader_and_isr


def test_partitions_without_a_leader_state_are_not_told():
    """A new partition has nothing to say yet."""
    context = context_with((1, 2), led(1, (1, 2)))
    context.topics["u"] = Topic("u", TOPIC_ID, {0: Partition((1,), None)})
    outbox = Outbox(context)
    outbox.add_all_leader_and_isr(1)
    outbox.add_leader_and_isr(TopicPartition("u", 0))
    assert list(outbox.parcels[1].leader_and_isr) == [T0]


def test_roles_in_a_topic_that_is_being_deleted_are_not_told():
    """Whoever has deleted its replica would make it again, in a topic that nobody knows any more."""
    context = context_with((1, 2, 3), led(1, (1, 2, 3)))
    context.topics[T0.topic].deleting = True
    outbox = Outbox(context)
    outbox.add_leader_and_isr(T0, but=2)
    assert outbox.parcels == {}


def test_stop_replica_goes_to_registered_brokers_only():
    """There is no channel to the others."""
    outbox = Outbox(context_with((1, 2), led(1, (1, 2)), brokers={1: 101}))
    outbox.add_stop_replica(1, T0, delete=True)
    outbox.add_stop_replica(2, T0, delete=True)
    assert {broker: parcel.stop_replica for broker, parcel in outbox.parcels.items()} == {1: {T0: True}}
