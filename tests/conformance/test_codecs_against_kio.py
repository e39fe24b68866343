"""Our codecs against kio, whose classes are generated from Apache's schemas independently of kafka-python's."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid

import pytest

from cluster.protocol import fetch, messages, produce
from cluster.protocol.apis import PRODUCE_MIN_VERSION, SUPPORTED, ApiKey
from cluster.protocol.fetch_request import MAX_VERSION, MIN_VERSION

pytest.importorskip("kio.index", reason="kio, the second oracle for codecs, is not installed")


def through_kio(jobs: list[dict]) -> list[dict]:
    """Each message read and written again by kio, in a child process."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.conformance.kio_child"],
        input="".join(json.dumps(job) + "\n" for job in jobs),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def job(api_key: ApiKey, version: int, side: str, body: bytes) -> dict:
    return {"api": int(api_key), "version": version, "side": side, "hex": bytes(body).hex()}


def assert_same(jobs: list[dict]) -> None:
    """kio reads each message to its end and writes the very same bytes."""
    assert through_kio(jobs) == [{"hex": item["hex"], "rest": 0} for item in jobs]


RESULTS = [
    produce.ProduceResult("orders", 0, 0, 17, -1, 3),
    produce.ProduceResult("orders", 1, 6),
    produce.ProduceResult("other", 0, 87, -1, -1, 0, "not good"),
]

FETCHED = [
    fetch.FetchResult("orders", 0, 0, 20, 18, 3, b"records" * 40, None, None, None, -1),
    fetch.FetchResult("orders", 1, 6, -1, -1, -1, None, None, (2, 7), None, -1),
    fetch.FetchResult("other", 0, 0, 9, 9, 0, b"", (4, 11), (1, 5), [(7, 8), (9, 10)], 2),
]

WANTED = fetch.FetchRequest(
    -1,
    500,
    1,
    57_671_680,
    1,
    3,
    4,
    [fetch.FetchPartition("orders", 0, 5, 17, 4, 0, 1_048_576), fetch.FetchPartition("other", 3, -1, 0, -1, -1, 1)],
    [("gone", 1), ("gone", 2)],
    "rack-1",
)


def test_produce_responses():
    """In every version that is served."""
    jobs = []
    for version in range(PRODUCE_MIN_VERSION, produce.MAX_VERSION + 1):
        frame = produce.build_response(version, 1, RESULTS, 5)
        jobs.append(job(ApiKey.PRODUCE, version, "response", frame[5 if version >= 9 else 4 :]))
    assert_same(jobs)


def test_fetch_requests_and_responses():
    """In every version that is served, tagged fields included."""
    jobs = []
    for version in range(MIN_VERSION, MAX_VERSION + 1):
        request = fetch.build_request(version, 1, "me", WANTED)
        body_at = messages.parse_request_header(request).body_offset
        jobs.append(job(ApiKey.FETCH, version, "request", request[body_at:]))
        response = b"".join(fetch.build_response(version, 1, 0, 3, FETCHED, 5))
        jobs.append(job(ApiKey.FETCH, version, "response", response[5 if version >= 12 else 4 :]))
    assert_same(jobs)


def test_inter_broker_messages_that_kio_knows():
    """Our own schemas of AlterPartition and AllocateProducerIds are Apache's."""
    alter = messages.request_class(ApiKey.ALTER_PARTITION)
    partition = alter.TopicData.PartitionData
    change = partition(
        partition_index=1,
        leader_epoch=2,
        new_isr_with_epochs=[partition.BrokerState(broker_id=3, broker_epoch=5)],
        leader_recovery_state=0,
        partition_epoch=4,
    )
    request = alter(broker_id=3, broker_epoch=9, topics=[alter.TopicData(topic_id=uuid.uuid4(), partitions=[change])])
    altered = messages.response_class(ApiKey.ALTER_PARTITION)
    result = altered.TopicData.PartitionData(
        partition_index=1,
        error_code=0,
        leader_id=3,
        leader_epoch=2,
        isr=[3, 1],
        leader_recovery_state=0,
        partition_epoch=5,
    )
    response = altered(
        throttle_time_ms=0, error_code=0, topics=[altered.TopicData(topic_id=uuid.uuid4(), partitions=[result])]
    )
    allocate = messages.request_class(ApiKey.ALLOCATE_PRODUCER_IDS)(broker_id=1, broker_epoch=2)
    block = messages.response_class(ApiKey.ALLOCATE_PRODUCER_IDS)(
        throttle_time_ms=0, error_code=0, producer_id_start=1000, producer_id_len=1000
    )
    assert_same(
        [
            job(ApiKey.ALTER_PARTITION, 3, "request", request.encode(version=3)),
            job(ApiKey.ALTER_PARTITION, 3, "response", response.encode(version=3)),
            job(ApiKey.ALLOCATE_PRODUCER_IDS, 0, "request", allocate.encode(version=0)),
            job(ApiKey.ALLOCATE_PRODUCER_IDS, 0, "response", block.encode(version=0)),
        ]
    )


def test_what_a_broker_answers_first():
    """ApiVersions and Metadata responses, in every version that both know."""
    versions_class = messages.response_class(ApiKey.API_VERSIONS)
    entries = [
        versions_class.ApiVersion(api_key=key, min_version=least, max_version=greatest)
        for key, (least, greatest) in SUPPORTED.items()
    ]
    versions = versions_class(error_code=0, api_keys=entries, throttle_time_ms=0)
    metadata_class = messages.response_class(ApiKey.METADATA)
    topic = metadata_class.MetadataResponseTopic
    partition = topic.MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=1, leader_epoch=3, replica_nodes=[1, 2], isr_nodes=[1],
        offline_replicas=[2],
    )  # fmt: skip
    metadata = metadata_class(
        throttle_time_ms=0,
        brokers=[metadata_class.MetadataResponseBroker(node_id=1, host="h", port=9092, rack=None)],
        cluster_id="c",
        controller_id=1,
        topics=[topic(error_code=0, name="t", topic_id=uuid.uuid4(), is_internal=False, partitions=[partition])],
    )
    assert_same(
        [job(ApiKey.API_VERSIONS, version, "response", versions.encode(version=version)) for version in range(4)]
        + [job(ApiKey.METADATA, version, "response", metadata.encode(version=version)) for version in range(13)]
    )
