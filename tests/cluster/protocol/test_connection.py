"""The pure core of a client connection: ids, order, deadlines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol.batch import INT32_MAX
from cluster.protocol.connection import RequestPipeline, UnexpectedResponse


def test_correlation_ids_count_and_wrap():
    """Correlation ids count 0, 1, 2, and after 2147483647 again from 0."""
    pipeline: RequestPipeline[None] = RequestPipeline()
    assert [pipeline.next_correlation_id() for _ in range(3)] == [0, 1, 2]
    pipeline._next_correlation_id = INT32_MAX
    assert [pipeline.next_correlation_id() for _ in range(2)] == [INT32_MAX, 0]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20))
def test_responses_are_matched_in_order(deadlines):
    """Each response takes out the oldest request, with its context."""
    pipeline: RequestPipeline[int] = RequestPipeline()
    ids = []
    for index, deadline_ms in enumerate(deadlines):
        ids.append(pipeline.next_correlation_id())
        pipeline.sent(ids[-1], deadline_ms, index)
    assert len(pipeline) == len(deadlines)
    assert pipeline.next_deadline_ms() == min(deadlines)
    assert [pipeline.received(correlation_id).context for correlation_id in ids] == list(range(len(ids)))
    assert len(pipeline) == 0
    assert pipeline.next_deadline_ms() is None


def test_a_response_out_of_order():
    """Kafka answers in order: anything else means that the stream cannot be trusted."""
    pipeline: RequestPipeline[None] = RequestPipeline()
    with pytest.raises(UnexpectedResponse, match="nothing is in flight"):
        pipeline.received(0)
    pipeline.sent(0, 10, None)
    pipeline.sent(1, 10, None)
    with pytest.raises(UnexpectedResponse, match="0 is awaited"):
        pipeline.received(1)


def test_deadlines():
    """A request expires at its deadline, wherever it stands in the queue."""
    pipeline: RequestPipeline[str] = RequestPipeline()
    assert not pipeline.expired(1_000_000)
    pipeline.sent(0, 500, "slow")
    pipeline.sent(1, 100, "fast")
    assert not pipeline.expired(99)
    assert pipeline.expired(100)
    assert [request.context for request in pipeline.drain()] == ["slow", "fast"]
    assert len(pipeline) == 0
