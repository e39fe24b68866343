"""What only a controller does, on request of other brokers, of administrators or of this broker: values in, values out.

Owns the way of each question to the one who does it, one event of the queue or many, and the answer NOT_CONTROLLER.
Does not own what is done (the room ``controller``), nor any message (``handlers``, and ``links`` for this broker's own
questions).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from cluster.broker.control.controller import controlled_shutdown, isr_changes, producer_id_blocks
from cluster.broker.control.controller.elections import ElectionOutcome, elections_refused
from cluster.broker.control.controller.epoch_fence import NotController
from cluster.broker.control.controller.reassignments import AlterOutcome, Moves
from cluster.broker.control.controller.topic_deletion import DoomedTopic
from cluster.broker.control.controller.topic_outcomes import AdminOutcome, not_controller
from cluster.broker.control.links.channels import all_answered
from cluster.broker.control.office.candidate import Candidate
from cluster.broker.control.office.office import Office
from cluster.broker.dynamic_configs import DynamicConfigs
from cluster.broker.pauses import Pauses, Shares
from cluster.broker.portions import IsGone
from cluster.controller.context import TopicPartition
from cluster.controller.producer_ids import ProducerIdBlock
from cluster.controller.reassignment import Placement, ReassignmentError
from cluster.controller.topics import GrowthRequest, TopicError, TopicRequest
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock

_Result = TypeVar("_Result")


class AwaitsBrokers(Protocol):
    """Something done, of which brokers are still to learn."""

    answers: list[asyncio.Future[Any]]

    def time_out(self) -> None:
        """They have not all learned of it in time."""
        ...


class ControllerApis:
    """One broker's, whether it is controller now or not. Raises QueueClosed (an OSError) at the very end.

    An ``ErrorCode`` in the place of an answer refuses the whole question.
    """

    def __init__(self, candidate: Candidate, configs: DynamicConfigs, clock: Clock) -> None:
        self._candidate = candidate
        self._configs = configs
        self._clock = clock

    def __repr__(self) -> str:
        return f"ControllerApis({self._candidate!r})"

    # What brokers ask.

    async def alter_partition(
        self, broker_id: int, broker_epoch: int, proposals: isr_changes.Proposals
    ) -> isr_changes.IsrAnswers | ErrorCode:
        """ISR changes that the leader ``broker_id`` proposes."""
        return await self._once(
            lambda office: isr_changes.alter_partition(office.controller, broker_id, broker_epoch, proposals)
        )

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> tuple[TopicPartition, ...] | ErrorCode:
        """Others lead what the broker led, and have begun; the partitions that only it can lead."""
        departure = await self._once(
            lambda office: controlled_shutdown.decide(office.controller, broker_id, broker_epoch)
        )
        if isinstance(departure, ErrorCode):
            return departure
        await all_answered(departure.told, controlled_shutdown.METADATA_MS)
        told = await self._once(lambda office: controlled_shutdown.carry_out(office.controller, departure))
        if isinstance(told, ErrorCode):
            return told
        await all_answered(told, controlled_shutdown.LEADERS_MS)
        return departure.plan.remaining

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> ProducerIdBlock | ErrorCode:
        """A block of producer ids that no one was given before."""
        return await self._once(
            lambda office: producer_id_blocks.allocate_producer_ids(office.controller, broker_id, broker_epoch)
        )

    async def create_topic(self, topic: TopicRequest, timeout_ms: int) -> TopicError | None:
        """One topic, until the brokers know it; why not."""
        until_ms = self.until_ms(timeout_ms)
        done = await self.create_topics([topic], validate_only=False)
        await self.told(done, until_ms, lambda: False)
        (made,) = done.topics
        return None if made.error_code is ErrorCode.NONE else TopicError(made.error_code, made.message or "")

    # What administrators ask: patient, shift by shift.

    async def create_topics(self, wanted: Sequence[TopicRequest], *, validate_only: bool) -> AdminOutcome:
        return await self._administer(
            lambda office, done: office.topics.create(wanted, done, office.shift(), validate_only=validate_only),
            [topic.name for topic in wanted],
        )

    async def delete_topics(self, wanted: Sequence[DoomedTopic]) -> AdminOutcome:
        """Topics by name or id, each once."""
        return await self._administer(
            lambda office, done: office.deletion.delete(wanted, done, office.shift()),
            [name or "" for name, _ in wanted],
        )

    async def create_partitions(self, wanted: Sequence[GrowthRequest], *, validate_only: bool) -> AdminOutcome:
        return await self._administer(
            lambda office, done: office.topics.create_partitions(
                wanted, done, office.shift(), validate_only=validate_only
            ),
            [topic.name for topic in wanted],
        )

    async def elect_leaders(self, election_type: int, wanted: Sequence[TopicPartition] | None) -> ElectionOutcome:
        """Elections in these partitions, each named once (None: in all)."""
        done = ElectionOutcome()
        is_all: bool | ErrorCode = False
        while is_all is False:
            is_all = await self._once(
                lambda office: office.elections.elect(election_type, wanted, done, office.shift()), patient=True
            )
        return elections_refused(wanted or ()) if isinstance(is_all, ErrorCode) else done

    async def alter_reassignments(self, moves: Moves) -> Mapping[TopicPartition, ReassignmentError | None] | ErrorCode:
        """Partitions are sent on their way to other replicas; of each, why not."""
        done = AlterOutcome()
        is_all: bool | ErrorCode = False
        while is_all is False:
            is_all = await self._once(
                lambda office: office.reassignments.alter(moves, done, office.shift()), patient=True
            )
        return is_all if isinstance(is_all, ErrorCode) else done.results

    async def list_reassignments(
        self, asked: Mapping[str, Collection[int]] | None
    ) -> list[tuple[TopicPartition, Placement]] | ErrorCode:
        """What is moving, of the partitions asked for (None: of all)."""
        pause = Pauses(Shares(self._clock.monotonic_ns))
        return await self._once(lambda office: office.reassignments.list(asked, pause), patient=True)

    # How long the answer waits for brokers.

    def until_ms(self, timeout_ms: int) -> int:
        """When a client that gives this long from now waits no more: no later than its connection is kept."""
        idle_ms = self._configs.broker_config["connections.max.idle.ms"]
        return self._clock.monotonic_ms() + (timeout_ms if idle_ms < 0 else min(timeout_ms, idle_ms))

    async def told(self, done: AwaitsBrokers, until_ms: int, is_gone: IsGone) -> None:
        """Wait until the brokers have learned of what was ``done``; no longer than the client does."""
        if not await all_answered(done.answers, until_ms - self._clock.monotonic_ms(), is_gone):
            done.time_out()

    async def _once(
        self, work: Callable[[Office], Awaitable[_Result]], *, patient: bool = False
    ) -> _Result | ErrorCode:
        """One event of the queue."""
        try:
            return await self._candidate.serve(work, patient=patient)
        except NotController:
            return ErrorCode.NOT_CONTROLLER

    async def _administer(
        self, work: Callable[[Office, AdminOutcome], Awaitable[bool]], names: list[str]
    ) -> AdminOutcome:
        """Have ``work`` done, shift by shift; one outcome for each of ``names``."""
        done, certain = AdminOutcome(), 0
        is_all: bool | ErrorCode = False
        while is_all is False:
            is_all = await self._once(lambda office: work(office, done), patient=True)
            if not isinstance(is_all, ErrorCode):
                certain = len(done.topics)
        if isinstance(is_all, ErrorCode):
            # What was begun in this shift may have been done or not.
            done.topics[certain:] = not_controller(names[certain:])
        return done
