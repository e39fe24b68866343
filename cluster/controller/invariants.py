"""Invariants of what a controller knows.

``validate`` holds whenever no synchronous step of the controller is running:

* ``replicas-once``: a partition has at least one replica, and none of them twice. Replicas that a move adds or removes
  are among them, and none is both added and removed.
* ``isr-of-replicas``: the ISR is never empty, has no duplicates, and contains only replicas.
* ``leader-in-isr``: the leader, if there is one, is in the ISR.
* ``epochs-not-above``: leader and partition epochs are not negative; no state is from a later controller epoch.
* ``brokers-by-id``: brokers are stored under their ids.

``validate_settled`` holds between two events of the controller, once it has taken over (within an event, the controller
learns of a broker's failure before it acts on it):

* ``leader-alive``: the leader is registered and can host the partition; without a leader, no member of the ISR could.
* ``isr-alive``: the members of the ISR are registered and can host the partition, except the last one.

``validate_written`` holds against the states in ZooKeeper, as long as no other controller has succeeded this one:

* ``not-ahead``: a state is written before the context has it. Neither its partition epoch nor its leader epoch is above
  the one that was written, and at the same partition epoch, the state is the one that was written.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.controller.context import NO_LEADER, ControllerContext, Partition, PartitionState, TopicPartition
from cluster.invariants import InvariantBroken


def validate(context: ControllerContext) -> None:
    """Each partition separately. Raises ``InvariantBroken``."""
    for broker_id, broker in context.brokers.items():
        if broker.broker_id != broker_id:
            raise InvariantBroken(context, "brokers-by-id", f"{broker_id} is {broker}")
    for topic_partition, _, partition in context.partitions():
        _validate_placement(topic_partition, partition)
        if partition.state is not None:
            _validate_state(topic_partition, partition.replicas, partition.state, context.controller_epoch)


def _validate_placement(topic_partition: TopicPartition, partition: Partition) -> None:
    replicas, adding, removing = partition.replicas, set(partition.adding), set(partition.removing)
    is_once = len(set(replicas)) == len(replicas) > 0
    if not (is_once and adding | removing <= set(replicas) and adding.isdisjoint(removing)):
        raise InvariantBroken(topic_partition, "replicas-once", f"{partition}")


def _validate_state(
    topic_partition: TopicPartition, replicas: tuple[int, ...], state: PartitionState, controller_epoch: int
) -> None:
    isr = state.isr
    if not isr or len(set(isr)) != len(isr) or not set(isr) <= set(replicas):
        raise InvariantBroken(topic_partition, "isr-of-replicas", f"{isr} of {replicas}")
    if state.leader != NO_LEADER and state.leader not in isr:
        raise InvariantBroken(topic_partition, "leader-in-isr", f"{state.leader} in {isr}")
    if min(state.leader_epoch, state.partition_epoch) < 0 or state.controller_epoch > controller_epoch:
        values = f"{state}, this is controller epoch {controller_epoch}"
        raise InvariantBroken(topic_partition, "epochs-not-above", values)


def validate_settled(context: ControllerContext) -> None:
    """The states against the live brokers. Raises ``InvariantBroken``."""
    registered, eligible = context.registered(), context.eligible()
    for topic_partition, _, partition in context.partitions():
        state = partition.state
        if state is None:
            continue
        online = context.online(topic_partition, registered)
        could_lead = context.online(topic_partition, eligible) & set(state.isr)
        if (state.leader == NO_LEADER and could_lead) or not {state.leader} <= online | {NO_LEADER}:
            values = f"leader {state.leader}, isr {state.isr}, online {sorted(online)}, may lead {sorted(could_lead)}"
            raise InvariantBroken(topic_partition, "leader-alive", values)
        if len(state.isr) > 1 and state.leader != NO_LEADER and not set(state.isr) <= online:
            raise InvariantBroken(topic_partition, "isr-alive", f"{state.isr}, online {sorted(online)}")


def validate_written(context: ControllerContext, written: Callable[[TopicPartition], PartitionState | None]) -> None:
    """``written`` is the state in ZooKeeper, or None before the first write. Raises ``InvariantBroken``."""
    for topic_partition, _, partition in context.partitions():
        believed = partition.state
        if believed is None:
            continue
        stands = written(topic_partition)
        if stands is None:
            raise InvariantBroken(topic_partition, "not-ahead", f"{believed}, nothing was written")
        is_ahead = believed.partition_epoch > stands.partition_epoch or believed.leader_epoch > stands.leader_epoch
        if is_ahead or (believed != stands and believed.partition_epoch == stands.partition_epoch):
            raise InvariantBroken(topic_partition, "not-ahead", f"{believed}, written was {stands}")
