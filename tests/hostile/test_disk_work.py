"""Small requests that mean much work for the disk: others have their turn all the same."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import decode_response, encode_request, request_class
from cluster.protocol.records import NewRecord, build_batch
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target, target
from tests.hostile.test_much_at_once import pipelined, produce_frame

#: No turn of the broker's loop takes more processor time.
BOUND_S = 0.06
SEGMENTS = 3000
PARTITIONS = 500
WEEK_MS = 7 * 86_400_000
#: How long it may take until the files have their last names.
RETIRED_S = 30.0


def until_one_is_left(log_files: Path) -> None:
    deadline = time.monotonic() + RETIRED_S
    while len([*log_files.glob("*.log")]) > 1:
        assert time.monotonic() < deadline, "the files of deleted segments are not retired"
        time.sleep(0.05)


@pytest.mark.integration
def test_records_of_thousands_of_segments_are_deleted(tmp_path: Path) -> None:
    """Records more than ``segment.ms`` apart begin a segment each, where an operator allows it; all but the last are
    deleted with one request."""
    with target(tmp_path, gapless_min_segment_ms="0") as broker, Plain(broker.port) as plain:
        _delete_segments(broker, plain)


def _delete_segments(broker: Target, plain: Plain) -> None:
    plain.create_topic("segments")
    batches = [build_batch([NewRecord(2 * WEEK_MS * number, None, b"v")]) for number in range(SEGMENTS)]
    pipelined(plain, [produce_frame("segments", batch) for batch in batches])
    request = request_class(ApiKey.DELETE_RECORDS)
    asked = request.DeleteRecordsTopic.DeleteRecordsPartition(partition_index=0, offset=SEGMENTS - 1)
    topics = [request.DeleteRecordsTopic(name="segments", partitions=[asked])]
    log_files = broker.directory / "data" / "segments-0"
    assert len([*log_files.glob("*.log")]) == SEGMENTS
    with watching(broker) as watch:
        answer = plain.send(ApiKey.DELETE_RECORDS, 1, topics=topics, timeout_ms=30_000)
        [found] = answer.topics[0].partitions
        assert (found.error_code, found.low_watermark) == (ErrorCode.NONE, SEGMENTS - 1)
        until_one_is_left(log_files)
    assert watch.turn_s < BOUND_S, watch


@pytest.mark.integration
@pytest.mark.parametrize("acks", [1, -1])
def test_every_record_is_flushed_in_hundreds_of_partitions(broker: Target, plain: Plain, acks: int) -> None:
    """``flush.messages=1``: one request makes as many calls of fsync as it has partitions."""
    name = f"flushed{acks}"
    assert plain.create_topic(name, PARTITIONS, flush_messages="1") == ErrorCode.NONE
    request = request_class(ApiKey.PRODUCE)
    part = request.TopicProduceData.PartitionProduceData
    records = build_batch([NewRecord(1, None, b"v")])
    data = request.TopicProduceData(
        name=name, partition_data=[part(index=number, records=records) for number in range(PARTITIONS)]
    )
    frame = encode_request(
        request(transactional_id=None, acks=acks, timeout_ms=30_000, topic_data=[data]), 7, 1, "hostile"
    )
    with watching(broker) as watch:
        # What follows on the connection is answered after it.
        first, second = pipelined(plain, [frame, encode_request(request_class(ApiKey.API_VERSIONS)(), 0, 2, "hostile")])
    _, answer = decode_response(ApiKey.PRODUCE, 7, first)
    found = [(each.index, each.error_code, each.base_offset) for each in answer.responses[0].partition_responses]
    assert found == [(number, ErrorCode.NONE, 0) for number in range(PARTITIONS)]
    assert struct.unpack_from(">i", second) == (2,)
    assert watch.turn_s < BOUND_S, watch
