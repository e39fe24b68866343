"""One thing named very often in one request: it is done once, and nobody else waits for it (H3, H4, H5).

The bounds are for a loaded machine; what the broker needs on a quiet one is far less.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchRequest, build_request, parse_response
from cluster.protocol.messages import request_class
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target
from tests.simulation.client import batch

pytestmark = pytest.mark.integration

#: Another connection waits no longer than this, whatever is asked.
BOUND_S = 2.0


def produce(plain: Plain, topic: str, records: bytes) -> Any:
    request = request_class(ApiKey.PRODUCE)
    data = request.TopicProduceData.PartitionProduceData(index=0, records=records)
    topics = [request.TopicProduceData(name=topic, partition_data=[data])]
    answer = plain.send(ApiKey.PRODUCE, 9, transactional_id=None, acks=-1, timeout_ms=5000, topic_data=topics)
    return answer.responses[0].partition_responses[0]


def test_deleting_the_records_of_one_partition_very_often(broker: Target, plain: Plain) -> None:
    """A request of 500 KB that names one partition 40,000 times: the last offset counts, one answer."""
    plain.create_topic("deleted")
    for number in range(10):
        assert produce(plain, "deleted", batch(b"%d" % number)).error_code == ErrorCode.NONE
    request = request_class(ApiKey.DELETE_RECORDS)
    asked = request.DeleteRecordsTopic.DeleteRecordsPartition
    partitions = [asked(partition_index=0, offset=number % 8) for number in range(40_000)]
    topics = [request.DeleteRecordsTopic(name="deleted", partitions=partitions)] * 2
    with watching(broker.port) as watch:
        answer = plain.send(ApiKey.DELETE_RECORDS, 2, topics=topics, timeout_ms=30_000)
    [topic] = answer.topics
    assert [(p.partition_index, p.error_code, p.low_watermark) for p in topic.partitions] == [(0, 0, 7)]
    assert watch.longest_s < BOUND_S, watch


def test_a_fetch_of_one_partition_very_often(broker: Target, plain: Plain) -> None:
    """Named 100,000 times by a fetch that waits: the last word counts, one answer, and no memory while it waits."""
    plain.create_topic("fetched")
    produce(plain, "fetched", batch(b"a"))
    wanted = [FetchPartition("fetched", 0, -1, 0, -1, -1, 1 << 20)] * 100_000
    last = FetchPartition("fetched", 0, -1, 1, -1, -1, 1 << 20)
    request = FetchRequest(-1, 2**31 - 1, 1, 1 << 20, 0, 0, -1, [*wanted, last])
    before_bytes = broker.memory_bytes()
    with ExitStack() as stack:
        waiting = [stack.enter_context(Plain(broker.port)) for _ in range(5)]
        with watching(broker.port) as watch:
            for number, each in enumerate(waiting):
                each.put(build_request(12, number, "hostile", request))
            for each in waiting:
                each.sock.settimeout(0.5)
                with pytest.raises(TimeoutError):
                    each.take()
                each.sock.settimeout(60)
        kept_bytes = broker.memory_bytes() - before_bytes
        produce(plain, "fetched", batch(b"b"))
        for each in waiting:
            [found] = parse_response(memoryview(bytearray(each.take())), 12).partitions
            assert (found.error_code, found.high_watermark) == (ErrorCode.NONE, 2)
    assert watch.longest_s < BOUND_S, watch
    assert kept_bytes < 60_000_000
