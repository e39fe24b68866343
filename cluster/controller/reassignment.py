"""Moving a partition to other replicas (KIP-455): which replicas it has on the way, and what each step changes. Pure.

A move first adds: the leader learns of the whole set, old and new. When all that it goes to are in the ISR, it takes
away: the others leave the ISR, another leads if the leader is among them, and their data is deleted. Owns the checks of
AlterPartitionReassignments with their texts, and the next state of a partition. Does not own the order of writing and
sending (``broker.control.controller.reassignments``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from cluster.controller.context import NO_LEADER, ControllerContext, Partition, PartitionState, TopicPartition
from cluster.controller.election import elect_reassign
from cluster.protocol.errors import ErrorCode

#: Brokers of a request that an error message names.
BROKERS_NAMED = 20


class ReassignmentError(Exception):
    """A move is refused; ``error_code`` and the text go to the client."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


@dataclass(frozen=True, slots=True)
class Placement:
    """The replicas of one partition: ``replicas`` is everything, ``adding`` and ``removing`` as in ``Partition``."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @classmethod
    def of(cls, partition: Partition) -> Placement:
        return cls(partition.replicas, partition.adding, partition.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """Where it came from; what a cancelled move goes back to."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """Where it goes."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    def toward(self, targets: Sequence[int]) -> Placement:
        """The same partition on its way to ``targets`` instead, from where it came from."""
        origin = self.origin
        everything = tuple(dict.fromkeys((*targets, *origin)))
        return Placement(
            everything,
            adding=tuple(replica for replica in everything if replica not in origin),
            removing=tuple(replica for replica in everything if replica not in targets),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of a move makes of a partition. ``stop``: replicas whose data is to be deleted.

    ``is_done``: the partition is where it should be, and ``placement`` has nothing to add or remove anymore.
    """

    placement: Placement
    state: PartitionState | None
    stop: tuple[int, ...]

    @property
    def is_done(self) -> bool:
        return not (self.placement.adding or self.placement.removing)


def plan_request(
    context: ControllerContext, topic_partition: TopicPartition, targets: Sequence[int] | None
) -> Placement:
    """The placement that a client asks for; ``targets`` None: cancel. Raises ReassignmentError."""
    topic = context.topics.get(topic_partition.topic)
    partition = context.partition(topic_partition)
    if topic is None or partition is None:
        raise ReassignmentError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if topic.deleting:
        raise ReassignmentError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic is being deleted.")
    placement = Placement.of(partition)
    if targets is None:
        if not partition.is_moving:
            raise ReassignmentError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
        wanted = placement.toward(placement.origin)
    else:
        checked = _checked_targets(targets)
        # First: a request may name a hundred thousand brokers that do not exist.
        unknown = set(checked).difference(placement.origin, context.registered())
        if unknown:
            raise _bad_targets(
                f"Replica assignment has brokers that are not alive: {_named(sorted(unknown))}; alive: "
                f"{sorted(context.registered())}"
            )
        wanted = placement.toward(checked)
    if partition.state is not None and not set(partition.state.isr) & set(wanted.replicas):
        # What is committed would be abandoned. Kafka's ZooKeeper controller continues here and loses it; KRaft refuses.
        raise _bad_targets(
            f"Unable to go to {[*wanted.replicas]} because none of them is in sync (in sync: "
            f"{[*partition.state.isr]}): it would require an unclean leader election."
        )
    return wanted


def _checked_targets(targets: Sequence[int]) -> tuple[int, ...]:
    if not targets:
        raise _bad_targets("Empty replica list specified in partition reassignment.")
    if len(set(targets)) != len(targets):
        raise _bad_targets(f"Duplicate replica ids in partition reassignment replica list: {_named(targets)}")
    if min(targets) < 0:
        raise _bad_targets(f"Invalid broker id in replica list: {_named(targets)}")
    return tuple(targets)


def _named(broker_ids: Sequence[int]) -> str:
    rest = len(broker_ids) - BROKERS_NAMED
    return f"{[*broker_ids[:BROKERS_NAMED]]}" + (f" and {rest} more" if rest > 0 else "")


def _bad_targets(message: str) -> ReassignmentError:
    return ReassignmentError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def is_complete(placement: Placement, state: PartitionState | None) -> bool:
    """Whether all that it goes to are in sync, so that the others can go."""
    return state is not None and set(placement.target) <= set(state.isr)


def plan_step(before: Placement, wanted: Placement, state: PartitionState | None, live: Collection[int]) -> Step:
    """What a partition is to become on its way to ``wanted``; ``before`` is what its replicas were until now.

    The leader epoch rises in any case: only with a new one do replicas take over another set (Kafka's KafkaController).
    ``live`` are the brokers that may lead.
    """
    unneeded = tuple(replica for replica in before.replicas if replica not in wanted.replicas)
    moving = bool(wanted.adding or wanted.removing)
    if moving and not is_complete(wanted, state):
        return Step(wanted, _limited_to(wanted.replicas, state, live), unneeded)
    target = wanted.target
    stop = tuple(dict.fromkeys((*unneeded, *wanted.removing)))
    return Step(Placement(target), _limited_to(target, state, live), stop)


def _limited_to(
    replicas: tuple[int, ...], state: PartitionState | None, live: Collection[int]
) -> PartitionState | None:
    """``state`` in the next leader epoch, with no one outside ``replicas`` in it. The ISR never becomes empty."""
    if state is None:
        return None
    isr = tuple(member for member in state.isr if member in replicas)
    leader = state.leader
    if leader not in replicas:
        election = elect_reassign(replicas, isr, live)
        leader = NO_LEADER if election is None else election.leader
    return replace(state, leader=leader, isr=isr, leader_epoch=state.leader_epoch + 1)
