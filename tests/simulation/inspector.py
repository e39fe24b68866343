"""Inspector: the invariants of everything that runs in a cluster, after every callback of a broker.

Owns when which of them is looked at. Does not own any invariant: those stand next to what they are about
(``cluster.invariants`` names the modules).

After each callback a few numbers of each replica, of its fetchers and of the controller are compared with the last
ones; what has changed is validated at a cost that does not grow with the log. Batches are read where they can have
changed otherwise than by an append: all of a log that is new here or was cut, a segment when it is rolled, and
everything at a quiet point (``inspect_all``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from functools import partial

from cluster.broker.control.controller.controller import Controller
from cluster.broker.control.membership.event_queue import EventQueue
from cluster.broker.node import Node
from cluster.broker.replicas import invariants as replica_invariants
from cluster.broker.replicas.replica import Replica
from cluster.controller import invariants as context_invariants
from cluster.controller.context import PartitionState, TopicPartition
from cluster.invariants import InvariantBroken
from cluster.log import invariants as log_invariants
from cluster.log import producer_invariants
from cluster.log.sequence import ProducerEntry
from cluster.metadata.memory_tree import MemoryTree
from cluster.metadata.paths import CONTROLLER_EPOCH, state_path
from cluster.metadata.store import NoNodeError
from cluster.metadata.znodes import StateNode
from tests.simulation.coordinator_looks import CoordinatorLooks
from tests.simulation.faulty_storage import FaultyStorage
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import VirtualTimeLoop


class Inspector:
    """``found`` is told (broker id, what is broken), of each broker and invariant the first time."""

    def __init__(self, cluster: MemoryCluster, found: Callable[[int, InvariantBroken], None]) -> None:
        self._cluster = cluster
        self._found = found
        self._told: set[tuple[int, str]] = set()
        self._seen: dict[int, _Seen] = {}
        #: How often something was validated: the whole of a log, a segment, a replica, a controller.
        self.looks = 0

    def __repr__(self) -> str:
        return f"<Inspector, {self.looks} looks, {len(self._told)} broken>"

    def install(self) -> None:
        """Look from now on, on the running loop."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.watcher = self._ran

    def _ran(self, owner: Hashable) -> None:
        """A callback of ``owner``, the life of a broker, has ended."""
        if owner is None:
            return
        broker_id = owner[0]
        process = self._cluster.processes.get(broker_id)
        if process is None or process.life != owner or process.node._control is None:
            return
        seen = self._seen.get(broker_id)
        if seen is None or seen.life != owner:
            seen = self._seen[broker_id] = _Seen(owner)
        storage = self._cluster.storages[broker_id]
        try:
            if isinstance(storage, FaultyStorage) and storage.fault is not None:
                # A disk that fails for its broker does not fail for us, and no failure is used up by a look.
                with storage.well():
                    self._look(process.node, seen)
            else:
                self._look(process.node, seen)
        except InvariantBroken as error:
            self._tell(broker_id, error)

    def inspect_all(self) -> None:
        """A quiet point: everything of all brokers that run, batch by batch."""
        for broker_id, process in self._cluster.processes.items():
            self._seen.pop(broker_id, None)
            self._ran(process.life)

    def _tell(self, broker_id: int, error: InvariantBroken) -> None:
        if (broker_id, error.name) not in self._told:
            self._told.add((broker_id, error.name))
            self._found(broker_id, error)

    # What a broker is

    def _look(self, node: Node, seen: _Seen) -> None:
        replicas = node._replicas
        if replicas is not None:
            has_changed = False
            for partition in replicas.partitions.values():
                facts = _facts(partition)
                before = seen.replicas.get(partition)
                if before != facts and not partition.log.is_failed:
                    # First: what is broken is told once.
                    seen.replicas[partition] = facts
                    has_changed = True
                    self._look_at(partition, seen)
            if has_changed:
                self._look_at_fetchers(node)
        if node._coordinators is not None:
            if seen.coordinators is None:
                seen.coordinators = CoordinatorLooks(node._coordinators)
            seen.coordinators.look()
        office = node.control._candidate._office
        if office is not None:
            self._look_at_controller(office.controller, node.control._queue, seen)

    def _look_at(self, partition: Replica, seen: _Seen) -> None:
        self.looks += 1
        replica_invariants.validate(partition)
        log = partition.log
        segments = log._local.segments
        known = seen.logs.get(partition)
        if known is None or known.cuts != log._local.cuts:
            headers = log_invariants.validate_whole(log)
            producer_invariants.validate(log.producers, log.log_end_offset)
            holes_allowed = log.holes_allowed
            producer_invariants.validate_batches(
                log.producers, headers, log.log_start_offset, holes_allowed=holes_allowed
            )
            known = seen.logs[partition] = _Known(log._local.cuts, segments.active.base_offset)
        elif known.active_base != segments.active.base_offset:
            for segment in segments.from_offset(known.active_base):
                if segment is not segments.active:
                    log_invariants.validate_segment(
                        segment, log.epochs, log.log_start_offset, holes_allowed=log.holes_allowed
                    )
            known.active_base = segments.active.base_offset
        entries = known.producers
        for producer_id, entry in log.producers.entries.items():
            if entries.get(producer_id) is not entry:
                entries[producer_id] = entry
                producer_invariants.validate_entry(producer_id, entry, log.log_end_offset)

    def _look_at_fetchers(self, node: Node) -> None:
        for leader_id, fetcher in node._fetchers._fetchers.items():
            is_answered = fetcher._link.in_flight == 0
            replica_invariants.validate_following(fetcher._following, leader_id, is_answered=is_answered)

    def _look_at_controller(self, controller: Controller, queue: EventQueue, seen: _Seen) -> None:
        context = controller.context
        is_idle = any(not getter.done() for getter in queue._waiting._getters)
        facts = [
            is_idle,
            context,
            *context.brokers.values(),
            *(partition.state for topic in context.topics.values() for partition in topic.partitions.values()),
        ]
        if len(facts) == len(seen.controller) and all(map(_is, facts, seen.controller)):
            return
        seen.controller = facts
        self.looks += 1
        context_invariants.validate(context)
        tree = self._cluster.tree
        if tree.get(CONTROLLER_EPOCH)[0] == b"%d" % context.controller_epoch:
            context_invariants.validate_written(context, partial(_written, tree))
        if is_idle:
            context_invariants.validate_settled(context)


class _Known:
    """What was validated of a log."""

    __slots__ = ("active_base", "cuts", "producers")

    def __init__(self, cuts: int, active_base: int) -> None:
        self.cuts = cuts
        self.active_base = active_base
        self.producers: dict[int, ProducerEntry] = {}


class _Seen:
    """What one life of a broker was when it was last looked at."""

    __slots__ = ("controller", "coordinators", "life", "logs", "replicas")

    def __init__(self, life: Hashable) -> None:
        self.life = life
        self.replicas: dict[Replica, tuple[object, ...]] = {}
        self.logs: dict[Replica, _Known] = {}
        self.controller: list[object] = []
        self.coordinators: CoordinatorLooks | None = None


def _facts(partition: Replica) -> tuple[object, ...]:
    """Numbers of which one changes whenever anything does that an invariant is about."""
    log, leader = partition.log, partition.leader
    local = log._local
    if leader is None:
        replication = partition._follower_log.high_watermark
        return local.log_end_offset, log.log_start_offset, local.recovery_point, local.cuts, replication, (
            partition.leader_id, partition.leader_epoch, partition.partition_epoch,
        )  # fmt: skip
    isr = leader.isr
    ends = [follower.log_end_offset for follower in leader.followers.values()]
    return (
        local.log_end_offset, log.log_start_offset, local.recovery_point, local.cuts, leader.high_watermark, ends,
        isr.committed, isr.pending, leader.leader_epoch, isr.partition_epoch, leader.min_insync_replicas,
    )  # fmt: skip


def _is(one: object, other: object) -> bool:
    return one is other


def _written(tree: MemoryTree, topic_partition: TopicPartition) -> PartitionState | None:
    path = state_path(*topic_partition)
    try:
        data, stat = tree.get(path)
    except NoNodeError:
        return None
    node = StateNode.decode(path, data)
    return PartitionState(
        node.leader, node.leader_epoch, node.isr, stat.version, node.controller_epoch, node.recovering
    )
