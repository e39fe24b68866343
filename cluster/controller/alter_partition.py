"""May a leader change its ISR? The controller's checks of AlterPartition, in the order of KIP-497
(docs/reference/kafka.md "ISR changes"). Pure.

The checks keep three real bugs out: KIP-903 (a broker that came back empty re-enters the ISR by a proposal made for
its former life), a stale leader's proposal (KAFKA-14154) and an ISR that names a replica outside the assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from cluster.controller.context import ControllerContext, Partition, PartitionState, Topic, TopicPartition
from cluster.controller.partitions import Change
from cluster.protocol.errors import ErrorCode

#: A member of a proposed ISR whose broker epoch the leader does not know.
UNKNOWN_BROKER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ProposedIsr:
    """One partition of an AlterPartition request. ``isr`` holds (broker id, broker epoch) in the leader's order."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    recovering: bool = False

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id, _ in self.isr)


@dataclass(frozen=True, slots=True)
class IsrVerdict:
    """What to answer. ``change`` is None if nothing is to be written (an error, or the ISR is so already)."""

    error_code: ErrorCode
    topic_partition: TopicPartition | None = None
    change: Change | None = None


def check_sender(context: ControllerContext, broker_id: int, broker_epoch: int) -> ErrorCode:
    """The top level: is the sender the broker that is registered now? (That we are the controller was checked.)"""
    broker = context.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def check_proposal(context: ControllerContext, broker_id: int, proposal: ProposedIsr) -> IsrVerdict:
    """One partition, by its topic id. ``broker_id`` is the sender, who passed ``check_sender``."""
    topic = context.topic_by_id(proposal.topic_id)
    if topic is None or topic.deleting:
        return IsrVerdict(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(proposal.partition)
    if partition is None or partition.state is None:
        return IsrVerdict(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    topic_partition = TopicPartition(topic.name, proposal.partition)
    state = partition.state
    error = _check_epochs(state, proposal)
    if error is not ErrorCode.NONE:
        return IsrVerdict(error, topic_partition)
    if _is_so_already(state, proposal):
        return IsrVerdict(ErrorCode.NONE, topic_partition)
    if proposal.partition_epoch < state.partition_epoch:
        return IsrVerdict(ErrorCode.INVALID_UPDATE_VERSION, topic_partition)
    error = _check_members(context, topic, partition, state, broker_id, proposal)
    if error is not ErrorCode.NONE:
        return IsrVerdict(error, topic_partition)
    changed = replace(
        state, isr=proposal.members, recovering=proposal.recovering, controller_epoch=context.controller_epoch
    )
    return IsrVerdict(
        ErrorCode.NONE, topic_partition, Change(topic_partition, changed, state.partition_epoch, "alter partition")
    )


def _check_epochs(state: PartitionState, proposal: ProposedIsr) -> ErrorCode:
    if proposal.leader_epoch > state.leader_epoch or proposal.partition_epoch > state.partition_epoch:
        # The leader knows more than this controller: it is the controller that may be of yesterday.
        return ErrorCode.NOT_CONTROLLER
    if proposal.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.NONE


def _is_so_already(state: PartitionState, proposal: ProposedIsr) -> bool:
    """A repeated proposal whose first answer was lost: the same ISR at the same leader epoch."""
    return set(proposal.members) == set(state.isr) and proposal.recovering == state.recovering


def _check_members(
    context: ControllerContext,
    topic: Topic,
    partition: Partition,
    state: PartitionState,
    broker_id: int,
    proposal: ProposedIsr,
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
