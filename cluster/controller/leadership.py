"""Elections that no one's death brought about: asked for (ElectLeaders, KIP-460), and the automatic rebalance. Pure.

Owns which partitions get which leader, and why the others do not. Does not own when it is examined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from cluster.controller.context import ControllerContext, Partition, TopicPartition
from cluster.controller.election import elect_preferred
from cluster.controller.partitions import Change, ElectOffline, change_of
from cluster.protocol.errors import ErrorCode


class ElectionType(IntEnum):
    """``election_type`` of ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one partition got no other leader."""

    error_code: ErrorCode
    message: str | None


def plan_elections(
    context: ControllerContext,
    kind: ElectionType,
    wanted: Iterable[TopicPartition],
    elect_offline: ElectOffline,
) -> dict[TopicPartition, Change | Refusal]:
    """For each of ``wanted`` the change to be written, or the reason why there is none."""
    return {topic_partition: _plan(context, kind, topic_partition, elect_offline) for topic_partition in wanted}


def _plan(
    context: ControllerContext, kind: ElectionType, topic_partition: TopicPartition, elect_offline: ElectOffline
) -> Change | Refusal:
    topic = context.topics.get(topic_partition.topic)
    partition = context.partition(topic_partition)
    if topic is None or partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if topic.deleting:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted.")
    if kind is ElectionType.PREFERRED:
        return _plan_preferred(context, topic_partition, partition)
    state = partition.state
    if state is not None and state.leader in context.online(topic_partition, context.registered()):
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, None)
    eligible = context.online(topic_partition, context.eligible())
    election = None if state is None else elect_offline(partition.replicas, state.isr, eligible, unclean=True)
    if state is None or election is None:
        return Refusal(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"No replica of {topic_partition} is alive: {[*partition.replicas]}.",
        )
    elected = replace(
        state,
        leader=election.leader,
        isr=election.isr,
        leader_epoch=state.leader_epoch + 1,
        recovering=election.recovering or state.recovering,
    )
    return change_of(context, topic_partition, state, elected, "unclean election on request")


def _plan_preferred(
    context: ControllerContext, topic_partition: TopicPartition, partition: Partition
) -> Change | Refusal:
    state = partition.state
    if state is not None and state.leader == partition.replicas[0]:
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, None)
    eligible = context.online(topic_partition, context.eligible())
    election = None if state is None else elect_preferred(partition.replicas, state.isr, eligible)
    if state is None or election is None:
        return Refusal(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"The preferred replica {partition.replicas[0]} of {topic_partition} is not alive or not in sync.",
        )
    elected = replace(state, leader=election.leader, isr=election.isr, leader_epoch=state.leader_epoch + 1)
    return change_of(context, topic_partition, state, elected, "preferred replica")


def plan_rebalance(context: ControllerContext, allowed_percentage: int) -> list[Change]:
    """Back to the preferred leaders of those brokers that lead too few of the partitions they are preferred for.

    A broker is left alone while at most ``allowed_percentage`` (``leader.imbalance.per.broker.percentage``) of them are
    led by others. Nothing is done while any partition is moved, as in Kafka: its preferred replica may be about to go.
    """
    by_preferred: dict[int, list[tuple[TopicPartition, Partition]]] = defaultdict(list)
    for topic_partition, _, partition in context.partitions():
        if partition.is_moving:
            return []
        if partition.replicas:
            by_preferred[partition.replicas[0]].append((topic_partition, partition))
    changes: list[Change] = []
    for preferred, members in sorted(by_preferred.items()):
        elsewhere = [
            (topic_partition, partition)
            for topic_partition, partition in members
            if partition.state is not None and partition.state.leader != preferred
        ]
        if len(elsewhere) * 100 > allowed_percentage * len(members):
            planned = (_plan_preferred(context, topic_partition, partition) for topic_partition, partition in elsewhere)
            changes += [change for change in planned if isinstance(change, Change)]
    return changes
