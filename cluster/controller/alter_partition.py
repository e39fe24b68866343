"""May a leader change its ISR? The controller's checks of AlterPartition, in the order of KIP-497
(docs/reference/kafka.md "ISR changes"). Pure.

The checks keep three real bugs out: KIP-903 (a broker that came back empty re-enters the ISR by a proposal made for
its former life), a stale leader's proposal (KAFKA-14154) and an ISR that names a replica outside the assignment.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from cluster.controller.context import ControllerContext, Partition, PartitionState, TopicPartition
from cluster.controller.partitions import Change
from cluster.isr import UNKNOWN_BROKER_EPOCH, IsrProposal
from cluster.protocol.errors import ErrorCode


def check_sender(context: ControllerContext, broker_id: int, broker_epoch: int) -> ErrorCode:
    """The top level: is the sender the broker that is registered now? (That we are the controller was checked.)"""
    broker = context.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def check_proposal(
    context: ControllerContext, broker_id: int, topic_id: UUID, number: int, proposal: IsrProposal
) -> Change | ErrorCode:
    """The change to write, NONE if the ISR is so already, else what is wrong. ``number`` is the partition's;
    ``broker_id`` is the sender, who passed ``check_sender``.
    """
    topic = context.topic_by_id(topic_id)
    if topic is None or topic.deleting:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(number)
    if partition is None or partition.state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    state = partition.state
    error = _check_epochs(state, proposal)
    if error is not ErrorCode.NONE or _is_so_already(state, proposal):
        return error
    if proposal.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    error = _check_members(context, partition, state, broker_id, proposal)
    if error is not ErrorCode.NONE:
        return error
    changed = replace(
        state, isr=proposal.members, recovering=proposal.recovering, controller_epoch=context.controller_epoch
    )
    return Change(TopicPartition(topic.name, number), changed, state.partition_epoch, "alter partition")


def _check_epochs(state: PartitionState, proposal: IsrProposal) -> ErrorCode:
    if proposal.leader_epoch > state.leader_epoch or proposal.partition_epoch > state.partition_epoch:
        # The leader knows more than this controller: it is the controller that may be of yesterday.
        return ErrorCode.NOT_CONTROLLER
    if proposal.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.NONE


def _is_so_already(state: PartitionState, proposal: IsrProposal) -> bool:
    """A repeated proposal whose first answer was lost: the same ISR at the same leader epoch."""
    return set(proposal.members) == set(state.isr) and proposal.recovering == state.recovering


def _check_members(
    context: ControllerContext,
    partition: Partition,
    state: PartitionState,
    broker_id: int,
    proposal: IsrProposal,
) -> ErrorCode:
    members = proposal.members
    if proposal.recovering and (len(members) > 1 or not state.recovering):
        return ErrorCode.INVALID_REQUEST
    if (
        state.leader != broker_id
        or broker_id not in members
        or len(set(members)) != len(members)
        or not set(members) <= set(partition.replicas)
    ):
        return ErrorCode.INVALID_REQUEST
    for member, epoch in proposal.isr:
        broker = context.brokers.get(member)
        if broker is None or epoch not in (UNKNOWN_BROKER_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
        if broker.shutting_down and member not in state.isr:
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
