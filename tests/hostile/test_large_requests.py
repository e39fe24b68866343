"""Requests of a megabyte, or about what is large: others are served meanwhile (bar 2 of the hostile suite)."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import CODEC_ZSTD
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target
from tests.hostile.test_decompression import bomb, send

pytestmark = pytest.mark.integration

#: No turn of the broker's loop takes more processor time.
BOUND_S = 0.25


def list_offsets(plain: Plain, topic: str, partitions: int, timestamp: int) -> list[tuple[int, int, int]]:
    """(error code, timestamp, offset) of each partition."""
    topic_class = request_class(ApiKey.LIST_OFFSETS).ListOffsetsTopic
    asked: list[Any] = [
        topic_class.ListOffsetsPartition(partition_index=number, timestamp=timestamp, current_leader_epoch=-1)
        for number in range(partitions)
    ]
    topics = [topic_class(name=topic, partitions=asked)]
    answer = plain.send(ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics)
    return [(found.error_code, found.timestamp, found.offset) for found in answer.topics[0].partitions]


def test_a_timestamp_in_large_batches(broker: Target, plain: Plain) -> None:
    """ListOffsets looks through a batch with much in it beside the loop, and finds what it found before."""
    plain.create_topic("timed", 4)
    answers = send(plain, [bomb(100_000, CODEC_ZSTD)] * 4, "timed")
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 4
    with watching(broker) as watch:
        assert list_offsets(plain, "timed", 4, 0) == [(ErrorCode.NONE, 0, 0)] * 4
        assert list_offsets(plain, "timed", 4, 1) == [(ErrorCode.NONE, -1, -1)] * 4
    assert watch.turn_s < BOUND_S, watch
