"""Contexts for the controller's tests, and the strategy that draws whole histories of one."""

from __future__ import annotations

from uuid import UUID

from cluster.controller.context import (
    Broker,
    ControllerContext,
    Partition,
    PartitionState,
    Topic,
    TopicPartition,
)
from cluster.controller.invariants import validate
from cluster.controller.partitions import Change, apply_change
from cluster.invariants import InvariantBroken

TOPIC_ID = UUID(int=7)
T0 = TopicPartition("t", 0)


def context_with(
    replicas: tuple[int, ...],
    state: PartitionState | None,
    brokers: dict[int, int] | None = None,
    *,
    unclean: bool = False,
) -> ControllerContext:
    """One topic with one partition. ``brokers`` maps id to epoch; by default all replicas, epoch 100 + id."""
    registered = {replica: 100 + replica for replica in replicas} if brokers is None else brokers
    context = ControllerContext(controller_epoch=5)
    context.brokers = {broker_id: Broker(broker_id, epoch) for broker_id, epoch in registered.items()}
    context.topics["t"] = Topic("t", TOPIC_ID, {0: Partition(replicas, state)}, unclean=unclean)
    return context


def led(leader: int, isr: tuple[int, ...], leader_epoch: int = 3, partition_epoch: int = 9) -> PartitionState:
    return PartitionState(leader, leader_epoch, isr, partition_epoch, controller_epoch=4)


def carry_out(context: ControllerContext, changes: list[Change]) -> None:
    """Apply changes as the executor does, holding it to the znode's versions."""
    for change in changes:
        partition = context.partition(change.topic_partition)
        assert partition is not None
        if change.expected_epoch is None:
            assert partition.state is None
            apply_change(context, change, 0)
        else:
            assert partition.state is not None
            assert partition.state.partition_epoch == change.expected_epoch
            apply_change(context, change, change.expected_epoch + 1)


def invariant_violations(context: ControllerContext) -> list[str]:
    """What is wrong with a context, in a line; empty if nothing is."""
    try:
        validate(context)
    except InvariantBroken as error:
        return [str(error)]
    return []
