"""A broker's questions to the controller: ISR changes, producer-id blocks, controlled shutdown, forwarded requests.

Owns the requests' fields and the reading of the answers. Whether the controller is this very broker, and how it is
reached, is behind ``ask``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from cluster.broker.control.changes import ControllerUnavailable, IsrChange, IsrResult, NoProducerIds
from cluster.controller.alter_partition import UNKNOWN_BROKER_EPOCH
from cluster.controller.producer_ids import ProducerIdBlock
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class

ALTER_PARTITION_VERSION = 3
ALLOCATE_PRODUCER_IDS_VERSION = 0
CONTROLLED_SHUTDOWN_VERSION = 3

#: (request, version) -> response of the current controller. Raises OSError, ControllerUnavailable among them.
AskController = Callable[[Any, int], Awaitable[Any]]


class ControllerLink:
    """One broker's side. ``broker_epoch`` yields the epoch of the current registration."""

    def __init__(self, broker_id: int, broker_epoch: Callable[[], int], ask: AskController) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._ask = ask

    def __repr__(self) -> str:
        return f"ControllerLink(broker {self._broker_id})"

    async def propose_isr(self, changes: Sequence[IsrChange]) -> list[IsrResult]:
        """AlterPartition with all of ``changes``. Raises OSError if nothing can be said about any of them: try
        again."""
        request = request_class(ApiKey.ALTER_PARTITION)
        names = {(change.topic_id, change.partition): change.topic for change in changes}
        own_epoch = self._broker_epoch()
        topics: dict[UUID, list[Any]] = {}
        for change in changes:
            topics.setdefault(change.topic_id, []).append(self._partition_data(request, change, own_epoch))
        message = request(
            version=ALTER_PARTITION_VERSION,
            broker_id=self._broker_id,
            broker_epoch=own_epoch,
            topics=[request.TopicData(topic_id=topic_id, partitions=data) for topic_id, data in topics.items()],
        )
        response = await self._ask(message, ALTER_PARTITION_VERSION)
        _require(response, "AlterPartition")
        results = []
        for topic in response.topics:
            for data in topic.partitions:
                name = names.get((topic.topic_id, data.partition_index))
                if name is not None:
                    results.append(_isr_result(name, data))
        return results

    def _partition_data(self, request: Any, change: IsrChange, own_epoch: int) -> Any:
        epochs = {**change.broker_epochs, self._broker_id: own_epoch}
        return request.TopicData.PartitionData(
            partition_index=change.partition,
            leader_epoch=change.leader_epoch,
            new_isr_with_epochs=[
                request.TopicData.PartitionData.BrokerState(
                    broker_id=member, broker_epoch=epochs.get(member, UNKNOWN_BROKER_EPOCH)
                )
                for member in change.new_isr
            ],
            partition_epoch=change.partition_epoch,
        )

    async def request_block(self) -> ProducerIdBlock:
        """AllocateProducerIds, once. Raises OSError (try again) or NoProducerIds."""
        message = request_class(ApiKey.ALLOCATE_PRODUCER_IDS)(
            version=ALLOCATE_PRODUCER_IDS_VERSION, broker_id=self._broker_id, broker_epoch=self._broker_epoch()
        )
        response = await self._ask(message, ALLOCATE_PRODUCER_IDS_VERSION)
        if response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            raise NoProducerIds("the controller has no producer ids left")
        _require(response, "AllocateProducerIds")
        return ProducerIdBlock(response.producer_id_start, response.producer_id_len)

    async def controlled_shutdown(self) -> int:
        """ControlledShutdown, once: the number of partitions that this broker still leads. Raises OSError."""
        message = request_class(ApiKey.CONTROLLED_SHUTDOWN)(
            version=CONTROLLED_SHUTDOWN_VERSION, broker_id=self._broker_id, broker_epoch=self._broker_epoch()
        )
        response = await self._ask(message, CONTROLLED_SHUTDOWN_VERSION)
        _require(response, "ControlledShutdown")
        return len(response.remaining_partitions)


def _require(response: Any, what: str) -> None:
    if response.error_code != ErrorCode.NONE:
        raise ControllerUnavailable(f"{what}: error {_error(response.error_code).name}")


def _isr_result(topic: str, data: Any) -> IsrResult:
    return IsrResult(
        topic=topic,
        partition=data.partition_index,
        error_code=_error(data.error_code),
        leader_id=data.leader_id,
        leader_epoch=data.leader_epoch,
        isr=tuple(data.isr),
        partition_epoch=data.partition_epoch,
    )


def _error(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
