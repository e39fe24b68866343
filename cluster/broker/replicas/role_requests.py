"""What the controller's requests say of this broker's replicas: LeaderAndIsr, StopReplica and UpdateMetadata, decoded.

Owns the values, one for each partition. Does not own what a replica makes of them (``roles``).
"""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from cluster.broker.replicas.values import Role
from cluster.controller.context import LEADER_DURING_DELETE

#: ``leader_recovery_state`` of a leader that was elected from outside the in-sync set.
RECOVERING = 1


class Assignment(NamedTuple):
    """One partition of a LeaderAndIsr request."""

    topic: str
    topic_id: UUID
    partition: int
    role: Role


class Stop(NamedTuple):
    """One partition of a StopReplica request."""

    topic: str
    partition: int
    leader_epoch: int
    delete: bool


class Elsewhere(NamedTuple):
    """One partition of an UpdateMetadata request that this broker has no replica of."""

    topic: str
    topic_id: UUID
    partition: int
    leader_epoch: int
    replicas: tuple[int, ...]


def assignments(request: Any) -> list[Assignment]:
    """The partitions of a decoded LeaderAndIsr request."""
    return [
        Assignment(
            topic.topic_name,
            topic.topic_id,
            state.partition_index,
            Role(
                state.leader,
                state.leader_epoch,
                state.partition_epoch,
                tuple(state.isr),
                tuple(state.replicas),
                is_unclean=state.leader_recovery_state == RECOVERING,
                adding=tuple(state.adding_replicas),
            ),
        )
        for topic in request.topic_states
        for state in topic.partition_states
    ]


def stops(request: Any) -> list[Stop]:
    """The partitions of a decoded StopReplica request."""
    return [
        Stop(topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition)
        for topic in request.topic_states
        for state in topic.partition_states
    ]


def elsewhere(request: Any, broker_id: int) -> list[Elsewhere]:
    """The partitions of a decoded UpdateMetadata request that ``broker_id`` has no replica of; deleted ones are not
    among them.
    """
    return [
        Elsewhere(topic.topic_name, topic.topic_id, state.partition_index, state.leader_epoch, tuple(state.replicas))
        for topic in request.topic_states
        for state in topic.partition_states
        if broker_id not in state.replicas and state.leader != LEADER_DURING_DELETE
    ]
