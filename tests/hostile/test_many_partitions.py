"""One short request that concerns very many partitions: no turn of the loop is long, no file is written for each."""

from __future__ import annotations

import struct
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cluster.process.processes import until
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import encode_request, request_class
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target, target
from tests.simulation.client import batch

pytestmark = pytest.mark.integration

MANY = 2000
#: Of the loop's processor time. Before, each partition had all checkpoints written: 1.5 s and more for each of these.
BOUND_S = 0.25
#: As many as one turn serves, and what it takes then. Before, each had half a millisecond of it at least: 240 ms.
CONNECTIONS = 200
TOGETHER_BOUND_S = 0.1


def produce(plain: Plain, topic: str) -> set[int]:
    """One batch for each partition; what is answered."""
    request = request_class(ApiKey.PRODUCE)
    data = request.TopicProduceData
    parts = [data.PartitionProduceData(index=number, records=bytes(batch(b"v"))) for number in range(MANY)]
    fields: dict[str, Any] = {"transactional_id": None, "acks": 1, "timeout_ms": 30_000}
    answer = plain.send(ApiKey.PRODUCE, 7, **fields, topic_data=[data(name=topic, partition_data=parts)])
    return {each.error_code for each in answer.responses[0].partition_responses}


def sizes_frame(topic: str) -> bytes:
    """DescribeLogDirs of as many partitions as fit into a request that is decoded at any time."""
    request = request_class(ApiKey.DESCRIBE_LOG_DIRS)
    asked = [request.DescribableLogDirTopic(topic=topic, partitions=list(range(450)))]
    return encode_request(request(topics=asked), 2, 1, "h")


def asked_together(broker: Target, frame: bytes) -> int:
    """The same of two hundred connections, all but the last bytes having come before; how many were answered."""
    data = struct.pack(">i", len(frame)) + frame
    with ExitStack() as stack:
        clients = [stack.enter_context(Plain(broker.port)) for _ in range(CONNECTIONS)]
        for client in clients:
            client.sock.sendall(data[:-1])
        for client in clients:
            client.sock.sendall(data[-1:])
        return sum(len(client.take()) > 450 for client in clients)


def test_a_topic_of_very_many_partitions(broker: Target, plain: Plain) -> None:
    """It is written to, described to many at once, compacted from now on, and deleted."""
    assert plain.create_topic("many", MANY) == ErrorCode.NONE
    assert produce(plain, "many") == {ErrorCode.NONE}
    with watching(broker) as watch:
        assert asked_together(broker, sizes_frame("many")) == CONNECTIONS
    assert watch.turn_s < TOGETHER_BOUND_S, watch
    checkpoint = broker.directory / "data" / "replication-offset-checkpoint"
    assert until(lambda: "many" in checkpoint.read_text() if checkpoint.exists() else False, 30)
    resource = request_class(ApiKey.INCREMENTAL_ALTER_CONFIGS).AlterConfigsResource
    compacted = resource.AlterableConfig(name="cleanup.policy", config_operation=0, value="compact")
    asked = [resource(resource_type=2, resource_name="many", configs=[compacted])]
    cleaned = broker.directory / "data" / "cleaner-offset-checkpoint"
    with watching(broker) as watch:
        plain.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=asked, validate_only=False)
        assert until(lambda: cleaned.exists() and cleaned.read_text().count("many ") == MANY, 30)
    assert watch.turn_s < BOUND_S, watch
    with watching(broker) as watch:
        answer = plain.send(ApiKey.DELETE_TOPICS, 5, topic_names=["many"], timeout_ms=60_000, topics=[])
        assert answer.responses[0].error_code == ErrorCode.NONE
        assert until(lambda: "many" not in checkpoint.read_text() + cleaned.read_text(), 30)
    assert watch.turn_s < BOUND_S, watch
    assert plain.create_topic("many", 1) == ErrorCode.NONE


def test_more_partitions_than_files_may_be_open(tmp_path: Path) -> None:
    """Too many open files are no failure of the disk: the broker continues, and serves what it could open."""
    with target(tmp_path, descriptors=400) as few, Plain(few.port) as plain:
        assert plain.create_topic("before") == ErrorCode.NONE
        plain.create_topic("x", 500)
        assert until(lambda: "too many files are open" in few.log(), 30)
        assert plain.send(ApiKey.METADATA, 8, topics=None, allow_auto_topic_creation=False).brokers
        answer = plain.send(ApiKey.DELETE_TOPICS, 5, topic_names=["x"], timeout_ms=60_000, topics=[])
        assert answer.responses[0].error_code == ErrorCode.NONE
        assert few.child.is_running()
