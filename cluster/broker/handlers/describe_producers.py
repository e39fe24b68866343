"""DescribeProducers (61): what this replica's log knows of every producer (KIP-664). Followers answer too."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import named
from cluster.broker.portions import Steps
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.services import Services
from cluster.log.sequence import ProducerEntry
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class


def handle(services: Services, request: Any, _exchange: Exchange) -> Steps[Any]:
    response = response_class(ApiKey.DESCRIBE_PRODUCERS)
    topics = named((topic.name, ((index, None) for index in topic.partition_indexes)) for topic in request.topics)
    answered = []
    for name, indexes in topics.items():
        partitions = []
        for index in indexes:
            partitions.append((yield from _describe(services, name, index)))
            yield None
        answered.append(response.TopicResponse(name=name, partitions=partitions))
    return response(topics=answered)


def _describe(services: Services, topic: str, index: int) -> Steps[Any]:
    partition_class = response_class(ApiKey.DESCRIBE_PRODUCERS).TopicResponse.PartitionResponse
    try:
        partition = services.replicas.find(topic, index)
    except RequestRefused as error:
        return partition_class(
            partition_index=index, error_code=error.error_code, error_message=error.message, active_producers=[]
        )
    producers = []
    # Others may come and go meanwhile.
    for entry in [*partition.log.producers]:
        producers.append(_producer(partition_class.ProducerState, entry))
        yield None
    return partition_class(
        partition_index=index, error_code=ErrorCode.NONE, error_message=None, active_producers=producers
    )


def _producer(state_class: Any, entry: ProducerEntry) -> Any:
    return state_class(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.txn_first_offset,
    )
