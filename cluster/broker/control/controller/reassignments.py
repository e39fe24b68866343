"""Partitions on their way to other replicas (KIP-455).

Owns one controller's moves: what is written (the topic's node and the states in one multi), told to the brokers and
awaited. Does not own the decisions (``cluster.controller.reassignment``). A move survives its controller: it is in
the topic's node until every replica that it removes has deleted its data, or is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.broker.control.controller.controller import Controller
from cluster.broker.control.controller.state_writer import CHUNK
from cluster.broker.control.membership.event_queue import Post, Shift
from cluster.broker.pauses import Pauses
from cluster.broker.portions import chunks
from cluster.controller.context import Partition, TopicPartition
from cluster.controller.outbox import Outbox
from cluster.controller.partitions import Change, change_of
from cluster.controller.reassignment import (
    Placement,
    ReassignmentError,
    Step,
    is_complete,
    plan_request,
    plan_step,
)
from cluster.metadata.limits import check_growth
from cluster.metadata.paths import topic_path
from cluster.metadata.store import NoNodeError, SetData, TooLargeError
from cluster.metadata.znodes import TopicRegistration
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: Topic -> partition -> the replicas that it is to have; None: the move is taken back.
Moves = Mapping[str, Mapping[int, Sequence[int] | None]]
_Wanted = list[tuple[TopicPartition, Sequence[int] | None]]

#: The writes for moves in one event of the queue: nothing else is decided meanwhile.
WRITES_AT_ONCE = 10


@dataclass(slots=True)
class AlterOutcome:
    """What became of the moves of one request. ``left`` are those not yet decided, with what is wanted,
    in pieces, the first last; None before it has begun."""

    results: dict[TopicPartition, ReassignmentError | None] = field(default_factory=dict)
    left: list[_Wanted] | None = None


class Reassignments:
    """For one controller. Its methods are called by the queue of control, one at a time."""

    def __init__(self, controller: Controller, post: Post) -> None:
        self._controller = controller
        self._context = controller.context
        self._post = post
        self._moving: set[TopicPartition] = set()
        #: Whether an event is posted that continues with what is ready.
        self._goes_on = False
        #: What the topics' nodes still say about partitions whose former replicas are being deleted.
        self._ending: dict[TopicPartition, Placement] = {}

    def __repr__(self) -> str:
        return f"Reassignments(moving: {sorted(self._moving)})"

    async def alter(self, moves: Moves, done: AlterOutcome, shift: Shift) -> bool:
        """Continue ``moves``, of which ``done`` are done; True if those are all. Each is begun, changed, cancelled or
        refused by itself."""
        if done.left is None:
            done.left = await _divided(moves, shift.pause)
        while done.left:
            wanted: dict[TopicPartition, Placement] = {}
            for topic_partition, replicas in done.left.pop():
                await shift.pause()
                done.results[topic_partition] = None
                try:
                    wanted[topic_partition] = plan_request(self._context, topic_partition, replicas)
                except ReassignmentError as error:
                    done.results[topic_partition] = error
            done.results |= await self._go(wanted, "reassignment")
            if await shift.is_over():
                break
        return not done.left

    async def list(
        self, asked: Mapping[str, Collection[int]] | None, pause: Pauses
    ) -> list[tuple[TopicPartition, Placement]]:
        """What is moving, of the partitions asked for (None: of all)."""
        found = []
        for topic_partition in sorted(self._moving):
            await pause()
            partition = self._context.partition(topic_partition)
            if partition is None or not partition.is_moving:
                continue
            if asked is None or topic_partition.partition in asked.get(topic_partition.topic, ()):
                found.append((topic_partition, Placement.of(partition)))
        return found

    async def resume(self) -> None:
        """After a failover: continue with every move that the topics' nodes tell about (Kafka's KafkaController)."""
        found = {tp: partition for tp, _, partition in self._context.partitions() if partition.is_moving}
        if found:
            logger.info("resuming the moves of %s", ", ".join(map(str, found)))
            await self._resume(_pieces(found))

    async def _resume(self, pieces: Sequence[Sequence[TopicPartition]]) -> None:
        now, later = pieces[:WRITES_AT_ONCE], pieces[WRITES_AT_ONCE:]
        moving = [(tp, self._context.partition(tp)) for piece in now for tp in piece]
        placements = {tp: Placement.of(found) for tp, found in moving if found is not None and found.is_moving}
        await self._go(placements, "reassignment resumed")
        if later:
            self._post(lambda: self._resume(later))

    async def advance(self) -> None:
        """ISRs have changed: finish every move whose replicas are all in sync now, some at once."""
        ready: dict[TopicPartition, Placement] = {}
        for topic_partition in sorted(self._moving):
            partition = self._context.partition(topic_partition)
            if partition is None or not partition.is_moving:
                self._moving.discard(topic_partition)
            elif is_complete(Placement.of(partition), partition.state):
                ready[topic_partition] = Placement.of(partition)
        pieces = _pieces(ready)
        await self._go({tp: ready[tp] for piece in pieces[:WRITES_AT_ONCE] for tp in piece}, "reassignment completed")
        if len(pieces) > WRITES_AT_ONCE and not self._goes_on:
            self._goes_on = True
            self._post(self._go_on)

    async def _go_on(self) -> None:
        """An event that leaves everything to ``advance``, which follows each."""
        self._goes_on = False

    async def _go(
        self, wanted: Mapping[TopicPartition, Placement], reason: str
    ) -> dict[TopicPartition, ReassignmentError]:
        """One step of each move; those that could not be written are returned, and are as they were."""
        refused: dict[TopicPartition, ReassignmentError] = {}
        for piece in _pieces(wanted):
            topic = piece[0].topic
            try:
                await self._step(topic, {tp: wanted[tp] for tp in piece}, reason)
            except TooLargeError as error:
                logger.error("%s: %d partitions of %s stay where they are: %s", reason, len(piece), topic, error)
                text = f"It does not fit into ZooKeeper: {error}."
                refused |= dict.fromkeys(piece, ReassignmentError(ErrorCode.POLICY_VIOLATION, text))
        return refused

    async def _step(self, topic: str, wanted: Mapping[TopicPartition, Placement], reason: str) -> None:
        """One multi for partitions of one topic, then the news of it."""
        steps: dict[TopicPartition, Step] = {}
        changes: list[Change] = []
        partitions: dict[TopicPartition, Partition] = {}
        for topic_partition, placement in wanted.items():
            partition = self._context.partition(topic_partition)
            if partition is None:
                continue
            may_lead = self._context.online(topic_partition, self._context.eligible())
            step = plan_step(Placement.of(partition), placement, partition.state, may_lead)
            partitions[topic_partition], steps[topic_partition] = partition, step
            if partition.state is not None and step.state is not None:
                changes.append(change_of(self._context, topic_partition, partition.state, step.state, reason))
        # What is to be deleted stays in the node until it is: the next controller must know of it.
        ending = {tp: _ending(step) for tp, step in steps.items() if step.is_done and step.stop}
        noted = {tp: ending.get(tp, step.placement) for tp, step in steps.items()}
        try:
            await self._controller.writer.write_with(changes, await self._topic_node(topic, noted))
        except NoNodeError:
            logger.warning("topic %s vanished while it was reassigned", topic)
            return
        outbox = Outbox(self._context)
        for topic_partition, step in steps.items():
            partition = partitions[topic_partition]
            logger.info("%s: %s (%s)", topic_partition, step.placement, reason)
            partition.replicas = step.placement.replicas
            partition.adding, partition.removing = step.placement.adding, step.placement.removing
            self._ending.pop(topic_partition, None)
            (self._moving.discard if step.is_done else self._moving.add)(topic_partition)
            outbox.add_leader_and_isr(topic_partition, new_replicas=step.placement.adding)
            for replica in step.stop:
                outbox.add_stop_replica(replica, topic_partition, delete=True)
        outbox.add_update_metadata(steps)
        answers = self._controller.send(outbox)
        self._ending.update(ending)
        if ending:
            asyncio.gather(*answers).add_done_callback(
                lambda done: None if done.cancelled() else self._post(lambda: self._finish(topic, ending))
            )

    async def _finish(self, topic: str, ended: Mapping[TopicPartition, Placement]) -> None:
        """The brokers have obeyed, or are gone: the topic's node says no more of what they have deleted."""
        for topic_partition, placement in ended.items():
            if self._ending.get(topic_partition) is placement:
                del self._ending[topic_partition]
        found = self._context.topics.get(topic)
        if found is None or found.deleting:
            return
        try:
            await self._controller.writer.write_with([], await self._topic_node(topic, {}))
        except NoNodeError:
            logger.warning("topic %s vanished while it was reassigned", topic)
        else:
            logger.info("reassigned: %s", ", ".join(map(str, ended)))

    async def _topic_node(self, topic: str, changed: Mapping[TopicPartition, Placement]) -> SetData:
        """The write of a topic's node as the context has it, but for ``changed``. Raises NoNodeError,
        and TooLargeError if it would grow beyond what a node may have."""
        session = self._controller.fence.session
        path = topic_path(topic)
        before, stat = await session.read(lambda: session.store.get(path))
        found = self._context.topics[topic]
        noted = {**self._ending, **changed}
        placements = {
            number: noted.get(TopicPartition(topic, number), Placement.of(partition))
            for number, partition in found.partitions.items()
        }
        registration = TopicRegistration(
            found.topic_id,
            {number: placement.replicas for number, placement in placements.items()},
            {number: placement.adding for number, placement in placements.items() if placement.adding},
            {number: placement.removing for number, placement in placements.items() if placement.removing},
        )
        data = registration.encode()
        check_growth(path, data, len(before))
        return SetData(path, data, stat.version)


async def _divided(moves: Moves, pause: Pauses) -> list[_Wanted]:
    """In pieces as they are written, the first last."""
    found: list[_Wanted] = []
    for name, asked in moves.items():
        for piece in chunks(sorted(asked), CHUNK):
            await pause()
            found.append([(TopicPartition(name, number), asked[number]) for number in piece])
    return found[::-1]


def _pieces(topic_partitions: Iterable[TopicPartition]) -> list[list[TopicPartition]]:
    """In order, divided into what is written at once: at most ``CHUNK`` of one topic."""
    by_topic: dict[str, list[TopicPartition]] = defaultdict(list)
    for topic_partition in sorted(topic_partitions):
        by_topic[topic_partition.topic].append(topic_partition)
    return [piece for each in by_topic.values() for piece in chunks(each, CHUNK)]


def _ending(step: Step) -> Placement:
    """A move that is done, but for the deletion of the data it leaves behind."""
    return Placement((*step.placement.replicas, *step.stop), removing=step.stop)
