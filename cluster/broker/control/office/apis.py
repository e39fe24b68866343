"""The APIs that only a controller serves: each request to the one who does it, each answer in its layout.

Owns the table and the answer NOT_CONTROLLER. Does not own what is done (the room ``controller``) nor how a
request came here (handlers, or this very broker in process).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from cluster.broker.control.controller import controlled_shutdown, elections, reassignments
from cluster.broker.control.controller.epoch_fence import NotController
from cluster.broker.control.controller.isr_changes import alter_partition
from cluster.broker.control.controller.producer_id_blocks import allocate_producer_ids
from cluster.broker.control.controller.topic_deletion import DoomedTopic
from cluster.broker.control.controller.topic_outcomes import AdminOutcome
from cluster.broker.control.links.alter_partition import refusal_of
from cluster.broker.control.links.channels import all_answered
from cluster.broker.control.office import admin_answers
from cluster.broker.control.office.candidate import Candidate
from cluster.broker.control.office.office import Office
from cluster.broker.dynamic_configs import DynamicConfigs
from cluster.broker.pauses import Pauses, Shares
from cluster.broker.portions import IsGone
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    Message,
    Request,
)
from cluster.seams.clock import Clock

_Answer = TypeVar("_Answer")
_Request = TypeVar("_Request", bound="Message")

#: Tells that nothing of the request is kept.
LetGo = Callable[[], None]
#: Whether all of these came in the time that the client gave.
AnsweredInTime = Callable[[list[asyncio.Future[Any]]], Awaitable[bool]]


class _Caller(NamedTuple):
    """Who asked, in which version."""

    version: int
    is_gone: IsGone
    let_go: LetGo


def _row(
    request: type[_Request], serve: Callable[[_Request, _Caller], Awaitable[Message]]
) -> tuple[int, Callable[[Any, _Caller], Awaitable[Any]]]:
    """Who serves a class of requests: here mypy sees that the two agree, in the table it does not."""
    return request.API_KEY, serve


class ControllerApis:
    """One broker's, whether it is controller now or not."""

    def __init__(self, candidate: Candidate, configs: DynamicConfigs, clock: Clock) -> None:
        self._candidate = candidate
        self._configs = configs
        self._clock = clock
        # Those that wait for brokers, as long as their client says, need more of the caller than its version.
        self._table = dict(
            (
                _row(AlterPartitionRequest, self._alter_partition),
                _row(ControlledShutdownRequest, self._controlled_shutdown),
                _row(AllocateProducerIdsRequest, self._allocate_producer_ids),
                _row(AlterPartitionReassignmentsRequest, self._alter_reassignments),
                _row(ListPartitionReassignmentsRequest, self._list_reassignments),
                _row(CreateTopicsRequest, self._create_topics),
                _row(DeleteTopicsRequest, self._delete_topics),
                _row(CreatePartitionsRequest, self._create_partitions),
                _row(ElectLeadersRequest, self._elect_leaders),
            )
        )

    def __repr__(self) -> str:
        return f"ControllerApis({self._candidate!r})"

    def serve(
        self,
        request: Request[_Answer],
        version: int,
        is_gone: IsGone = lambda: False,
        let_go: LetGo = lambda: None,
    ) -> Awaitable[_Answer]:
        """The response to a decoded request of one of these APIs. Raises QueueClosed (an OSError) at the very end.

        Nothing waits for brokers once ``is_gone``: the client is not there anymore. ``let_go`` is called before that
        wait, when nothing of the request is kept.
        """
        return self._table[request.API_KEY](request, _Caller(version, is_gone, let_go))

    async def _alter_partition(self, request: AlterPartitionRequest, _caller: _Caller) -> AlterPartitionResponse:
        try:
            return await self._candidate.serve(lambda office: alter_partition(office.controller, request))
        except NotController:
            return refusal_of(ErrorCode.NOT_CONTROLLER)

    async def _controlled_shutdown(
        self, request: ControlledShutdownRequest, _caller: _Caller
    ) -> ControlledShutdownResponse:
        try:
            departure = await self._candidate.serve(
                lambda office: controlled_shutdown.decide(office.controller, request)
            )
            await all_answered(departure.told, controlled_shutdown.METADATA_MS)
            told = await self._candidate.serve(
                lambda office: controlled_shutdown.carry_out(office.controller, departure)
            )
        except NotController:
            return controlled_shutdown.refused()
        await all_answered(told, controlled_shutdown.LEADERS_MS)
        return controlled_shutdown.answer(departure)

    async def _allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, caller: _Caller
    ) -> AllocateProducerIdsResponse:
        try:
            return await self._candidate.serve(lambda office: allocate_producer_ids(office.controller, request))
        except NotController:
            return AllocateProducerIdsResponse(version=caller.version, error_code=ErrorCode.NOT_CONTROLLER)

    async def _create_topics(self, request: CreateTopicsRequest, caller: _Caller) -> CreateTopicsResponse:
        answered = self._answered(request.timeout_ms, caller.is_gone)
        outcome = await self._topics_created(request)
        del request
        await _told(outcome, answered, caller.let_go)
        return await admin_answers.create_topics_response(outcome, self._configs, caller.version, self._pauses())

    async def _topics_created(self, request: CreateTopicsRequest) -> AdminOutcome:
        return await self._administer(
            lambda office, done: office.topics.create(request, done, office.shift()),
            [topic.name for topic in request.topics],
        )

    async def _delete_topics(self, request: DeleteTopicsRequest, caller: _Caller) -> DeleteTopicsResponse:
        answered = self._answered(request.timeout_ms, caller.is_gone)
        outcome = await self._topics_deleted(request)
        del request
        await _told(outcome, answered, caller.let_go)
        return await admin_answers.delete_topics_response(outcome, caller.version, self._pauses())

    async def _topics_deleted(self, request: DeleteTopicsRequest) -> AdminOutcome:
        named: list[DoomedTopic] = [(name, None) for name in request.topic_names]
        named += [(topic.name, topic.topic_id) for topic in request.topics]
        wanted = [*dict.fromkeys(named)]
        return await self._administer(
            lambda office, done: office.deletion.delete(wanted, done, office.shift()),
            [name or "" for name, _ in wanted],
        )

    async def _create_partitions(self, request: CreatePartitionsRequest, caller: _Caller) -> CreatePartitionsResponse:
        answered = self._answered(request.timeout_ms, caller.is_gone)
        outcome = await self._partitions_created(request)
        del request
        await _told(outcome, answered, caller.let_go)
        return await admin_answers.create_partitions_response(outcome, caller.version, self._pauses())

    async def _partitions_created(self, request: CreatePartitionsRequest) -> AdminOutcome:
        return await self._administer(
            lambda office, done: office.topics.create_partitions(request, done, office.shift()),
            [topic.name for topic in request.topics],
        )

    async def _administer(
        self, work: Callable[[Office, AdminOutcome], Awaitable[bool]], names: list[str]
    ) -> AdminOutcome:
        """Have ``work`` done, shift by shift; one outcome for each of ``names``."""
        done, certain, is_all = AdminOutcome(), 0, False
        try:
            while not is_all:
                is_all = await self._candidate.serve(lambda office: work(office, done), patient=True)
                certain = len(done.topics)
        except NotController:
            # What was begun in this shift may have been done or not.
            done.topics[certain:] = admin_answers.not_controller(names[certain:])
        return done

    async def _alter_reassignments(
        self, request: AlterPartitionReassignmentsRequest, _caller: _Caller
    ) -> AlterPartitionReassignmentsResponse:
        done = reassignments.AlterOutcome()
        try:
            while not await self._candidate.serve(
                lambda office: office.reassignments.alter(request, done, office.shift()), patient=True
            ):
                pass
        except NotController:
            return admin_answers.alter_reassignments_refused()
        return await admin_answers.alter_reassignments_response(done.results, self._pauses())

    async def _list_reassignments(
        self, request: ListPartitionReassignmentsRequest, _caller: _Caller
    ) -> ListPartitionReassignmentsResponse:
        async def read(office: Office) -> ListPartitionReassignmentsResponse:
            return await office.reassignments.list(request, self._pauses())

        try:
            return await self._candidate.serve(read, patient=True)
        except NotController:
            return admin_answers.list_reassignments_refused()

    async def _elect_leaders(self, request: ElectLeadersRequest, caller: _Caller) -> ElectLeadersResponse:
        answered = self._answered(request.timeout_ms, caller.is_gone)
        done = await self._leaders_elected(request)
        del request
        await _told(done, answered, caller.let_go)
        return await elections.elect_leaders_response(done, caller.version, self._pauses())

    async def _leaders_elected(self, request: ElectLeadersRequest) -> elections.ElectionOutcome:
        done = elections.ElectionOutcome()
        try:
            while not await self._candidate.serve(
                lambda office: office.elections.elect(request, done, office.shift()), patient=True
            ):
                pass
        except NotController:
            return elections.elections_refused(request)
        return done

    def _pauses(self) -> Pauses:
        return Pauses(Shares(self._clock.monotonic_ns))

    def _answered(self, timeout_ms: int, is_gone: IsGone) -> AnsweredInTime:
        """Waits for brokers as long as the client says from now on, but no longer than its connection is kept."""
        idle_ms = self._configs.broker_config["connections.max.idle.ms"]
        until_ms = self._clock.monotonic_ms() + (timeout_ms if idle_ms < 0 else min(timeout_ms, idle_ms))

        async def answered(answers: list[asyncio.Future[Any]]) -> bool:
            return await all_answered(answers, until_ms - self._clock.monotonic_ms(), is_gone)

        return answered


async def _told(done: AdminOutcome | elections.ElectionOutcome, answered: AnsweredInTime, let_go: LetGo) -> None:
    """Nothing of the request is kept: wait until the brokers have taken over what was ``done``."""
    let_go()
    if not await answered(done.answers):
        done.time_out()
