"""A broker's questions to the controller: ISR changes, producer-id blocks, controlled shutdown, topics to be made.

Owns which broker is asked (this very one by a call, with the same values; another by a connection of its own), the
requests' fields and the reading of the answers. Does not own when a question is asked, nor asking it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from cluster.broker.control.links import alter_partition
from cluster.broker.control.links.alter_partition import error_of
from cluster.broker.control.links.peers import Peer
from cluster.broker.control.links.producer_ids import NoProducerIds
from cluster.controller.context import TopicPartition
from cluster.controller.producer_ids import ProducerIdBlock
from cluster.controller.topics import TopicError, TopicRequest
from cluster.isr import IsrAnswer, IsrProposal, PartitionId
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    AllocateProducerIdsRequest,
    ControlledShutdownRequest,
    CreateTopicsRequest,
)

ALLOCATE_PRODUCER_IDS_VERSION = 0
CONTROLLED_SHUTDOWN_VERSION = 3
CREATE_TOPICS_VERSION = 7

_Value = TypeVar("_Value")


class ControllerHere(Protocol):
    """This broker as controller (``office.apis``). An ErrorCode in the place of an answer refuses the question."""

    def alter_partition(
        self, broker_id: int, broker_epoch: int, proposals: Iterable[tuple[PartitionId, IsrProposal]]
    ) -> Awaitable[list[tuple[PartitionId, IsrAnswer]] | ErrorCode]: ...

    def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> Awaitable[ProducerIdBlock | ErrorCode]: ...

    def controlled_shutdown(
        self, broker_id: int, broker_epoch: int
    ) -> Awaitable[tuple[TopicPartition, ...] | ErrorCode]: ...

    def create_topic(self, topic: TopicRequest, timeout_ms: int) -> Awaitable[TopicError | None]: ...


class ControllerUnavailable(ConnectionError):
    """There is no controller, it does not answer, or the one we asked has resigned. Try again."""


class Incumbency(Protocol):
    """Who is controller, as far as this broker knows."""

    controller_id: int | None

    @property
    def is_active(self) -> bool:
        """Whether it is this broker."""
        ...


class ControllerClient:
    """One broker's. ``broker_epoch`` yields the epoch of the current registration; ``here`` is for when this broker is
    controller, ``link_to`` makes the connection to another one.

    Each question raises OSError, ControllerUnavailable among them, if no controller can be reached.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        incumbency: Incumbency,
        here: ControllerHere,
        link_to: Callable[[int], Peer],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._incumbency = incumbency
        self._here = here
        self._link_to = link_to
        self._peer: tuple[int, Peer] | None = None

    def __repr__(self) -> str:
        return f"ControllerClient(broker {self._broker_id}, controller {self._incumbency.controller_id})"

    def close(self) -> None:
        if self._peer is not None:
            self._peer[1].close()

    def _controller(self) -> Peer:
        """Another broker."""
        controller_id = self._incumbency.controller_id
        if controller_id is None or controller_id == self._broker_id:
            raise ControllerUnavailable("there is no controller")
        if self._peer is None or self._peer[0] != controller_id:
            self.close()
            self._peer = (controller_id, self._link_to(controller_id))
        return self._peer[1]

    async def alter_partition(self, proposals: Mapping[PartitionId, IsrProposal]) -> dict[PartitionId, IsrAnswer]:
        """Ask for all of these ISR changes. Raises OSError if the outcome of all of them is unknown: try again."""
        sender = self._broker_id, self._broker_epoch()
        changes = [(partition_id, _led_by(*sender, proposal)) for partition_id, proposal in proposals.items()]
        if self._incumbency.is_active:
            answers = await self._here.alter_partition(*sender, changes)
        else:
            message = alter_partition.request_of(*sender, changes)
            answers = alter_partition.answers_in(await self._controller().ask(message, alter_partition.VERSION))
        return dict(_unless_refused(answers, "AlterPartition"))

    async def request_block(self) -> ProducerIdBlock:
        """AllocateProducerIds, once. Raises OSError (try again) or NoProducerIds."""
        sender = self._broker_id, self._broker_epoch()
        if self._incumbency.is_active:
            block = await self._here.allocate_producer_ids(*sender)
        else:
            message = AllocateProducerIdsRequest(
                version=ALLOCATE_PRODUCER_IDS_VERSION, broker_id=sender[0], broker_epoch=sender[1]
            )
            response = await self._controller().ask(message, ALLOCATE_PRODUCER_IDS_VERSION)
            code = error_of(response.error_code)
            is_given = code is ErrorCode.NONE
            block = ProducerIdBlock(response.producer_id_start, response.producer_id_len) if is_given else code
        if block is ErrorCode.UNKNOWN_SERVER_ERROR:
            raise NoProducerIds("the controller has no producer ids left")
        return _unless_refused(block, "AllocateProducerIds")

    async def controlled_shutdown(self) -> int:
        """ControlledShutdown, once: the number of partitions that this broker still leads. Raises OSError."""
        sender = self._broker_id, self._broker_epoch()
        if self._incumbency.is_active:
            remaining = await self._here.controlled_shutdown(*sender)
        else:
            message = ControlledShutdownRequest(
                version=CONTROLLED_SHUTDOWN_VERSION, broker_id=sender[0], broker_epoch=sender[1]
            )
            response = await self._controller().ask(message, CONTROLLED_SHUTDOWN_VERSION)
            code = error_of(response.error_code)
            left = (TopicPartition(each.topic_name, each.partition_index) for each in response.remaining_partitions)
            remaining = tuple(left) if code is ErrorCode.NONE else code
        return len(_unless_refused(remaining, "ControlledShutdown"))

    async def create_topic(self, topic: TopicRequest, timeout_ms: int) -> TopicError | None:
        """CreateTopics for one topic that the broker places; why it was not made. Raises OSError."""
        if self._incumbency.is_active:
            return await self._here.create_topic(topic, timeout_ms)
        response = await self._controller().ask(_creation(topic, timeout_ms), CREATE_TOPICS_VERSION)
        (made,) = response.topics
        code = error_of(made.error_code)
        return None if code is ErrorCode.NONE else TopicError(code, made.error_message or "")


def _led_by(broker_id: int, broker_epoch: int, proposal: IsrProposal) -> IsrProposal:
    """With the leader's own epoch of now in its ISR."""
    isr = ((member, broker_epoch if member == broker_id else seen_epoch) for member, seen_epoch in proposal.isr)
    return replace(proposal, isr=tuple(isr))


def _creation(topic: TopicRequest, timeout_ms: int) -> CreateTopicsRequest:
    topic_class = CreateTopicsRequest.CreatableTopic
    wanted = topic_class(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[],
        configs=[topic_class.CreatableTopicConfig(name=key, value=value) for key, value in topic.config],
    )
    return CreateTopicsRequest(topics=[wanted], timeout_ms=timeout_ms, validate_only=False)


def _unless_refused(answer: _Value | ErrorCode, what: str) -> _Value:
    if isinstance(answer, ErrorCode):
        raise ControllerUnavailable(f"{what}: error {answer.name}")
    return answer
