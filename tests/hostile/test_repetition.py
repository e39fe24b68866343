"""One thing named very often in one request: it is done once, and nobody else waits for it (H3, H4, H5).

Requests have about a megabyte; what they need on a quiet machine is a fraction of the bound.
"""

from __future__ import annotations

import socket
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

#: What is done in steps, or off the loop, takes a few milliseconds of it each; other turns of a busy machine come on
#: top. If all of it were done on the loop, each of these requests would take more.
STEPS_S = 0.06


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
    with watching(broker) as watch:
        answer = plain.send(ApiKey.DELETE_RECORDS, 2, topics=topics, timeout_ms=30_000)
    [topic] = answer.topics
    assert [(p.partition_index, p.error_code, p.low_watermark) for p in topic.partitions] == [(0, 0, 7)]
    assert watch.turn_s < STEPS_S, watch


def test_a_fetch_of_one_partition_very_often(broker: Target, plain: Plain) -> None:
    """Named 39,000 times by a fetch that waits: the last word counts, one answer, and no memory while it waits."""
    plain.create_topic("fetched")
    produce(plain, "fetched", batch(b"a"))
    wanted = [FetchPartition("fetched", 0, -1, 0, -1, -1, 1 << 20)] * 39_000
    last = FetchPartition("fetched", 0, -1, 1, -1, -1, 1 << 20)
    request = FetchRequest(-1, 2**31 - 1, 1, 1 << 20, 0, 0, -1, [*wanted, last])
    before_bytes = broker.memory_bytes()
    with ExitStack() as stack:
        waiting = [stack.enter_context(Plain(broker.port)) for _ in range(5)]
        with watching(broker) as watch:
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
    assert watch.turn_s < STEPS_S, watch
    assert kept_bytes < 20_000_000


@pytest.mark.parametrize("replica_id", [-1, 2])
def test_a_fetch_of_very_many_unknown_partitions(broker: Target, plain: Plain, replica_id: int) -> None:
    """A megabyte that names 36,000 partitions, of a consumer and of one who passes for a follower: each is refused, in
    steps that others come between."""
    wanted = [FetchPartition("unknown", number, -1, 0, -1, -1, 1 << 20) for number in range(36_000)]
    request = FetchRequest(replica_id, 500, 1, 1 << 20, 1, 0, -1, wanted)
    with watching(broker) as watch:
        plain.put(build_request(12, 7, "hostile", request))
        found = parse_response(memoryview(bytearray(plain.take())), 12).partitions
    assert [each.partition for each in found] == [*range(36_000)]
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if replica_id < 0 else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert {each.error_code for each in found} == {code}
    assert watch.turn_s < STEPS_S, watch


def test_a_large_fetch_that_waits_is_woken(broker: Target, plain: Plain) -> None:
    """It names a thousand partitions and finds nothing: what is produced then, or as it is read, is its answer."""
    plain.create_topic("wide", partitions=1000)
    wanted = [FetchPartition("wide", number, -1, 0, -1, -1, 1 << 20) for number in range(1000)]
    request = FetchRequest(-1, 60_000, 1, 1 << 20, 0, 0, -1, wanted)
    for number in range(3):
        with Plain(broker.port) as waiting:
            waiting.put(build_request(12, 7, "hostile", request))
            produce(plain, "wide", batch(b"a"))
            found = parse_response(memoryview(bytearray(waiting.take())), 12).partitions
        assert len(found) == 1000
        assert found[0].high_watermark == number + 1
        assert found[0].records
        wanted[0] = wanted[0]._replace(fetch_offset=number + 1)


def test_a_large_fetch_whose_client_closed_its_end_does_not_wait(broker: Target, plain: Plain) -> None:
    """It is answered with what was found, and its connection ends, however long it offered to wait."""
    plain.create_topic("half-closed", partitions=1000)
    wanted = [FetchPartition("half-closed", number, -1, 0, -1, -1, 1 << 20) for number in range(1000)]
    with Plain(broker.port) as closing:
        closing.put(build_request(12, 7, "hostile", FetchRequest(-1, 2**31 - 1, 1, 1 << 20, 0, 0, -1, wanted)))
        closing.sock.shutdown(socket.SHUT_WR)
        closing.sock.settimeout(20)
        found = parse_response(memoryview(bytearray(closing.take())), 12).partitions
        assert len(found) == 1000
        assert closing.sock.recv(1) == b""


def _metadata() -> tuple[int, dict[str, Any]]:
    request = request_class(ApiKey.METADATA)
    return 9, {"topics": [request.MetadataRequestTopic(name="named")] * 120_000, "allow_auto_topic_creation": False}


def _list_offsets() -> tuple[int, dict[str, Any]]:
    topic = request_class(ApiKey.LIST_OFFSETS).ListOffsetsTopic
    asked = topic.ListOffsetsPartition(partition_index=0, timestamp=0, current_leader_epoch=-1)
    topics = [topic(name="named", partitions=[asked] * 50_000)] * 2
    return 7, {"replica_id": -1, "isolation_level": 0, "topics": topics}


def _describe_producers() -> tuple[int, dict[str, Any]]:
    topic = request_class(ApiKey.DESCRIBE_PRODUCERS).TopicRequest
    return 0, {"topics": [topic(name="named", partition_indexes=[0] * 150_000)] * 2}


def _epochs() -> tuple[int, dict[str, Any]]:
    topic = request_class(ApiKey.OFFSET_FOR_LEADER_EPOCH).OffsetForLeaderTopic
    asked = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    return 4, {"replica_id": -1, "topics": [topic(topic="named", partitions=[asked] * 35_000)] * 2}


def _describe_configs() -> tuple[int, dict[str, Any]]:
    asked = request_class(ApiKey.DESCRIBE_CONFIGS).DescribeConfigsResource
    keys = ["retention.ms", "segment.bytes"] * 30_000
    resources = [
        asked(resource_type=2, resource_name="named", configuration_keys=None),
        asked(resource_type=2, resource_name="named", configuration_keys=keys),
    ]
    return 4, {"resources": resources * 2, "include_synonyms": True, "include_documentation": True}


def _coordinators() -> tuple[int, dict[str, Any]]:
    return 4, {"key_type": 0, "coordinator_keys": ["group"] * 150_000}


def _producers(answer: Any) -> list[list[int]]:
    return [[len(partition.active_producers) for partition in topic.partitions] for topic in answer.topics]


@pytest.mark.parametrize(
    ("api_key", "asked", "found"),
    [
        (ApiKey.METADATA, _metadata, lambda a: [(t.name, t.error_code, len(t.partitions)) for t in a.topics]),
        (ApiKey.LIST_OFFSETS, _list_offsets, lambda a: [[p.error_code for p in t.partitions] for t in a.topics]),
        (ApiKey.DESCRIBE_PRODUCERS, _describe_producers, _producers),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, _epochs, lambda a: [[p.end_offset for p in t.partitions] for t in a.topics]),
        (ApiKey.DESCRIBE_CONFIGS, _describe_configs, lambda a: [[c.name for c in r.configs] for r in a.results]),
        (ApiKey.FIND_COORDINATOR, _coordinators, lambda a: [c.key for c in a.coordinators]),
    ],
)  # fmt: skip
def test_one_name_very_often(broker: Target, plain: Plain, api_key: ApiKey, asked: Any, found: Any) -> None:
    """Each is answered once, as if it were named once; ListOffsets refuses it (INVALID_REQUEST), as in Kafka."""
    if plain.create_topic("named", 100) == ErrorCode.NONE:
        for producer_id in range(50):
            records = batch(b"a", producer_id=producer_id, base_sequence=0)
            assert produce(plain, "named", records).error_code == ErrorCode.NONE
    expected = {
        ApiKey.METADATA: [("named", 0, 100)],
        ApiKey.LIST_OFFSETS: [[int(ErrorCode.INVALID_REQUEST)]],
        ApiKey.DESCRIBE_PRODUCERS: [[50]],
        ApiKey.OFFSET_FOR_LEADER_EPOCH: [[50]],
        ApiKey.DESCRIBE_CONFIGS: [["retention.ms", "segment.bytes"]],
        ApiKey.FIND_COORDINATOR: ["group"],
    }
    version, fields = asked()
    with watching(broker) as watch:
        answer = plain.send(api_key, version, **fields)
    assert found(answer) == expected[api_key]
    assert watch.turn_s < STEPS_S, watch


def test_one_topic_deleted_very_often(broker: Target, plain: Plain) -> None:
    """It is asked of ZooKeeper once, and answered once."""
    assert plain.create_topic("gone") == ErrorCode.NONE
    answer = plain.send(ApiKey.DELETE_TOPICS, 5, topic_names=["gone", "nowhere"] * 3000, topics=[], timeout_ms=30_000)
    codes = [(result.name, result.error_code) for result in answer.responses]
    assert codes == [("gone", ErrorCode.NONE), ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
