"""What must change when brokers come, die or ask to go, and when partitions are new. Pure.

Owns the new state of each partition that is concerned; the executor writes it, then applies it to the context. The
rules are KafkaController's: leader epoch +1 at each election and each change of the ISR by the controller; the last
member of an ISR is never removed (the partition has no leader then, and the ISR stays as it was, since no record can
have been committed without it).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from cluster.controller.context import (
    INITIAL_LEADER_EPOCH,
    NO_LEADER,
    Broker,
    ControllerContext,
    Partition,
    PartitionState,
    TopicPartition,
)
from cluster.controller.election import Election, elect_controlled_shutdown, elect_new

#: ``elect_offline`` or a defect around it: (replicas, isr, live, unclean) -> Election or None.
ElectOffline = Callable[..., Election | None]


@dataclass(frozen=True, slots=True)
class Change:
    """One partition's next state, to be written only over ``expected_epoch`` (None: there is no node yet)."""

    topic_partition: TopicPartition
    state: PartitionState
    expected_epoch: int | None
    reason: str

    @property
    def creates(self) -> bool:
        return self.expected_epoch is None


@dataclass(frozen=True, slots=True)
class BrokerChanges:
    """How the registered brokers differ from what the controller knew. Ids, sorted."""

    started: tuple[int, ...]
    gone: tuple[int, ...]
    bounced: tuple[int, ...]

    @property
    def nothing(self) -> bool:
        return not (self.started or self.gone or self.bounced)


def compare_brokers(context: ControllerContext, registered: Mapping[int, int]) -> BrokerChanges:
    """``registered`` maps broker id to epoch (czxid). The same id with a larger epoch died and came back unseen."""
    known = context.brokers
    return BrokerChanges(
        started=tuple(sorted(set(registered) - set(known))),
        gone=tuple(sorted(set(known) - set(registered))),
        bounced=tuple(sorted(b for b in set(known) & set(registered) if registered[b] > known[b].epoch)),
    )


def remove_brokers(context: ControllerContext, broker_ids: Iterable[int]) -> None:
    for broker_id in broker_ids:
        context.brokers.pop(broker_id, None)


def add_brokers(context: ControllerContext, registered: Mapping[int, int], broker_ids: Iterable[int]) -> None:
    for broker_id in broker_ids:
        context.brokers[broker_id] = Broker(broker_id, registered[broker_id])


def repair(
    partition: Partition,
    *,
    registered: Collection[int],
    eligible: Collection[int],
    unclean: bool,
    elect_offline: ElectOffline,
) -> PartitionState | None:
    """The state a partition should have, given who is there; None if it is right as it is (or still new).

    ``registered`` brokers are alive and can host it; ``eligible`` ones may also lead it (not shutting down).
    """
    state = partition.state
    if state is None:
        return None
    if state.leader in registered:
        isr = tuple(member for member in state.isr if member in registered)
        return None if isr == state.isr else replace(state, isr=isr, leader_epoch=state.leader_epoch + 1)
    election = elect_offline(partition.replicas, state.isr, eligible, unclean=unclean)
    if election is not None:
        return replace(
            state,
            leader=election.leader,
            isr=election.isr,
            leader_epoch=state.leader_epoch + 1,
            recovering=election.recovering or state.recovering,
        )
    if state.leader == NO_LEADER:
        return None
    return replace(state, leader=NO_LEADER, leader_epoch=state.leader_epoch + 1)


def plan_repairs(context: ControllerContext, elect_offline: ElectOffline) -> list[Change]:
    """After brokers were removed from or added to the context: every partition that must change."""
    registered, eligible = context.registered(), context.eligible()
    changes = []
    for topic_partition, topic, partition in context.partitions():
        state = repair(
            partition,
            registered=context.online(topic_partition, registered),
            eligible=context.online(topic_partition, eligible),
            unclean=topic.unclean,
            elect_offline=elect_offline,
        )
        if state is not None and partition.state is not None:
            changes.append(change_of(context, topic_partition, partition.state, state, _reason(partition.state, state)))
    return changes


def plan_unseen_bounces(context: ControllerContext, elect_offline: ElectOffline) -> list[Change]:
    """At a failover: what the former controller would have done had it seen brokers die and come back meanwhile.

    A broker that was registered after a partition's state was written is not the life of which that state speaks. As
    after any death it leads no more and is out of the ISR, as far as there are others; what its new life holds, it must
    prove. Without this it would lead on in the same leader epoch, with a high watermark of its checkpoint, or, after a
    power loss, with a shorter log (Kafka's controllers with ZooKeeper do not look).
    """
    changes = []
    for topic_partition, _, partition in context.partitions():
        state = partition.state
        if state is None:
            continue
        bounced = {
            member
            for member in {*state.isr, state.leader}
            if member in context.brokers and context.brokers[member].epoch > partition.found_zxid
        }
        if bounced:
            repaired = repair(
                partition,
                registered=context.registered() - bounced,
                eligible=context.eligible() - bounced,
                unclean=False,
                elect_offline=elect_offline,
            )
            if repaired is not None:
                changes.append(change_of(context, topic_partition, state, repaired, "bounced unseen"))
    return changes


def plan_new(context: ControllerContext) -> list[Change]:
    """Partitions without a state node whose first leader can be named now; the others wait for a broker."""
    eligible = context.eligible()
    changes = []
    for topic_partition, _, partition in context.partitions():
        if partition.state is None:
            election = elect_new(partition.replicas, eligible)
            if election is not None:
                state = PartitionState(election.leader, INITIAL_LEADER_EPOCH, election.isr, 0, context.controller_epoch)
                changes.append(Change(topic_partition, state, None, "new partition"))
    return changes


@dataclass(frozen=True, slots=True)
class ShutdownPlan:
    """A controlled shutdown: what changes, which of the broker's replicas stop, which partitions cannot be moved."""

    changes: tuple[Change, ...]
    stop: tuple[TopicPartition, ...]
    remaining: tuple[TopicPartition, ...]


def plan_controlled_shutdown(context: ControllerContext, broker_id: int) -> ShutdownPlan:
    """``broker_id`` wants to go: others lead what it leads, and it leaves every ISR but one where it is the last.

    Partitions with a single replica are left alone and are not "remaining": no one else could ever lead them.
    """
    registered = context.registered()
    shutting_down = (registered - context.eligible()) | {broker_id}
    changes: list[Change] = []
    stop: list[TopicPartition] = []
    remaining: list[TopicPartition] = []
    for topic_partition, _, partition in context.partitions():
        state = partition.state
        if state is None or broker_id not in partition.replicas or len(partition.replicas) == 1:
            continue
        if state.leader == broker_id:
            live = context.online(topic_partition, registered)
            election = elect_controlled_shutdown(partition.replicas, state.isr, live, shutting_down)
            if election is None:
                remaining.append(topic_partition)
                continue
            moved = replace(state, leader=election.leader, isr=election.isr, leader_epoch=state.leader_epoch + 1)
            changes.append(change_of(context, topic_partition, state, moved, "controlled shutdown of the leader"))
        else:
            others = tuple(member for member in state.isr if member != broker_id)
            if others and others != state.isr:
                left = replace(state, isr=others, leader_epoch=state.leader_epoch + 1)
                changes.append(change_of(context, topic_partition, state, left, "controlled shutdown of a follower"))
        stop.append(topic_partition)
    return ShutdownPlan(tuple(changes), tuple(stop), tuple(remaining))


def apply_change(context: ControllerContext, change: Change, partition_epoch: int) -> None:
    """Take over what was written; ``partition_epoch`` is the node's version after the write."""
    partition = context.partition(change.topic_partition)
    if partition is not None:
        partition.state = replace(change.state, partition_epoch=partition_epoch)


def change_of(
    context: ControllerContext,
    topic_partition: TopicPartition,
    before: PartitionState,
    after: PartitionState,
    reason: str,
) -> Change:
    """The change from ``before`` to ``after``, signed with this controller's epoch."""
    return Change(
        topic_partition, replace(after, controller_epoch=context.controller_epoch), before.partition_epoch, reason
    )


def _reason(before: PartitionState, after: PartitionState) -> str:
    if after.leader == NO_LEADER:
        return "no live replica in the ISR"
    if after.leader == before.leader:
        return "replica offline"
    return "unclean election" if after.recovering and not before.recovering else "leader offline"
