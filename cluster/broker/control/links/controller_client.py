"""A broker's questions to the controller: ISR changes, producer-id blocks, controlled shutdown, forwarded requests.

Owns which broker is asked (this very one in process, another by a connection of its own), the requests' fields and the
reading of the answers. Does not own when a question is asked, nor asking it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

from cluster.broker.control.links import alter_partition
from cluster.broker.control.links.alter_partition import PartitionId
from cluster.broker.control.links.peers import Peer
from cluster.broker.control.links.producer_ids import NoProducerIds
from cluster.controller.producer_ids import ProducerIdBlock
from cluster.isr import IsrAnswer, IsrProposal
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    Request,
)

ALLOCATE_PRODUCER_IDS_VERSION = 0
CONTROLLED_SHUTDOWN_VERSION = 3

_Answer = TypeVar("_Answer")


class Serve(Protocol):
    """(decoded request, version) -> response."""

    def __call__(self, request: Request[_Answer], version: int, /) -> Awaitable[_Answer]: ...


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
    """One broker's. ``broker_epoch`` yields the epoch of the current registration; ``serve`` is for when this broker is
    controller, ``link_to`` makes the connection to another one.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        incumbency: Incumbency,
        serve: Serve,
        link_to: Callable[[int], Peer],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._incumbency = incumbency
        self._serve = serve
        self._link_to = link_to
        self._peer: tuple[int, Peer] | None = None

    def __repr__(self) -> str:
        return f"ControllerClient(broker {self._broker_id}, controller {self._incumbency.controller_id})"

    def close(self) -> None:
        if self._peer is not None:
            self._peer[1].close()

    async def ask(self, message: Request[_Answer], version: int) -> _Answer:
        """Send a request to the controller, wherever it is, and return its response.

        Raises OSError, ControllerUnavailable among them, if no controller can be reached.
        """
        controller_id = self._incumbency.controller_id
        if self._incumbency.is_active:
            return await self._serve(message, version)
        if controller_id is None or controller_id == self._broker_id:
            raise ControllerUnavailable("there is no controller")
        if self._peer is None or self._peer[0] != controller_id:
            self.close()
            self._peer = (controller_id, self._link_to(controller_id))
        return await self._peer[1].ask(message, version)

    async def alter_partition(self, proposals: Mapping[PartitionId, IsrProposal]) -> dict[PartitionId, IsrAnswer]:
        """Ask for all of these ISR changes. Raises OSError if the outcome of all of them is unknown: try again."""
        message = alter_partition.request_of(self._broker_id, self._broker_epoch(), proposals)
        response = await self.ask(message, alter_partition.VERSION)
        _require(response, "AlterPartition")
        return alter_partition.answers_in(response)

    async def request_block(self) -> ProducerIdBlock:
        """AllocateProducerIds, once. Raises OSError (try again) or NoProducerIds."""
        message = AllocateProducerIdsRequest(
            version=ALLOCATE_PRODUCER_IDS_VERSION, broker_id=self._broker_id, broker_epoch=self._broker_epoch()
        )
        response = await self.ask(message, ALLOCATE_PRODUCER_IDS_VERSION)
        if response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            raise NoProducerIds("the controller has no producer ids left")
        _require(response, "AllocateProducerIds")
        return ProducerIdBlock(response.producer_id_start, response.producer_id_len)

    async def controlled_shutdown(self) -> int:
        """ControlledShutdown, once: the number of partitions that this broker still leads. Raises OSError."""
        message = ControlledShutdownRequest(
            version=CONTROLLED_SHUTDOWN_VERSION, broker_id=self._broker_id, broker_epoch=self._broker_epoch()
        )
        response = await self.ask(message, CONTROLLED_SHUTDOWN_VERSION)
        _require(response, "ControlledShutdown")
        return len(response.remaining_partitions)


def _require(
    response: AlterPartitionResponse | AllocateProducerIdsResponse | ControlledShutdownResponse, what: str
) -> None:
    if response.error_code != ErrorCode.NONE:
        raise ControllerUnavailable(f"{what}: error {alter_partition.error_of(response.error_code).name}")
