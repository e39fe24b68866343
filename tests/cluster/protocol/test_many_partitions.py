"""What one Produce or Fetch request may name: it is parsed on the event loop."""

from __future__ import annotations

import pytest

from cluster.protocol import fetch, produce
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.fetch import FetchPartition, FetchRequest
from cluster.protocol.messages import request_class
from cluster.protocol.primitives import MAX_PARTITIONS


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("topics", [1, 2])
def test_partitions_of_a_produce_request_are_bounded(version: int, topics: int) -> None:
    """Topics and partitions together, over the whole request."""
    topic = request_class(ApiKey.PRODUCE).TopicProduceData

    def body(count: int) -> memoryview:
        parts = [topic.PartitionProduceData(index=0, records=None)] * (count // topics)
        data = [topic(name="t", partition_data=parts)] * topics
        message = request_class(ApiKey.PRODUCE)(transactional_id=None, acks=1, timeout_ms=1, topic_data=data)
        return memoryview(bytearray(message.encode(version=version)))

    most = MAX_PARTITIONS - topics
    assert len(produce.parse_request(body(most), version).partitions) == most
    with pytest.raises(MalformedRequest):
        produce.parse_request(body(most + topics), version)


@pytest.mark.parametrize("version", [4, 7, 12])
def test_partitions_of_a_fetch_request_are_bounded(version: int) -> None:
    """The same; what is forgotten too."""
    wanted = FetchPartition("t", 0, -1, 0, -1, -1, 1)
    few = FetchRequest(-1, 1, 1, 1, 0, 0, -1, [wanted] * (MAX_PARTITIONS - 1))
    body = fetch.build_request_body(version, few)
    assert len(fetch.parse_request(memoryview(body), version).partitions) == MAX_PARTITIONS - 1
    many = [few._replace(partitions=[wanted] * MAX_PARTITIONS)]
    if version >= 7:
        many.append(few._replace(partitions=[], forgotten=[("t", 0)] * MAX_PARTITIONS))
    for request in many:
        with pytest.raises(MalformedRequest):
            fetch.parse_request(memoryview(fetch.build_request_body(version, request)), version)
