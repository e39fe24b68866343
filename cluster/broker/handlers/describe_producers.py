"""DescribeProducers (61): what this replica's log knows of every producer (KIP-664). Followers answer too."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import naming
from cluster.broker.portions import Steps
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.services import Services
from cluster.log.sequence import ProducerEntry
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import DescribeProducersRequest, DescribeProducersResponse

_Partition = DescribeProducersResponse.TopicResponse.PartitionResponse


def handle(
    services: Services, request: DescribeProducersRequest, _exchange: Exchange
) -> Steps[DescribeProducersResponse]:
    topics = yield from naming(
        (topic.name, ((index, None) for index in topic.partition_indexes)) for topic in request.topics
    )
    answered = []
    for name, indexes in topics.items():
        partitions = []
        for index in indexes:
            partitions.append((yield from _describe(services, name, index)))
            yield None
        answered.append(DescribeProducersResponse.TopicResponse(name=name, partitions=partitions))
        yield None
    return DescribeProducersResponse(topics=answered)


def _describe(services: Services, topic: str, index: int) -> Steps[_Partition]:
    try:
        partition = services.replicas.find(topic, index)
    except RequestRefused as error:
        return _Partition(
            partition_index=index, error_code=error.error_code, error_message=error.message, active_producers=[]
        )
    producers = []
    # Others may come and go meanwhile.
    for entry in [*partition.log.producers]:
        producers.append(_producer(entry))
        yield None
    return _Partition(partition_index=index, error_code=ErrorCode.NONE, error_message=None, active_producers=producers)


def _producer(entry: ProducerEntry) -> _Partition.ProducerState:
    return _Partition.ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.txn_first_offset,
    )
