"""Replica placement: Kafka's own example, its formula, and what must hold of every placement."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.controller.assignment import (
    AssignmentError,
    assign_added_partitions,
    assign_new_topic,
    assign_replicas,
)


def test_the_example_in_kafka_s_adminutils():
    """5 brokers, 10 partitions, factor 3, start and shift 0: the table in AdminUtils' own comment."""
    placed = assign_replicas(range(5), 10, 3, start_index=0, shift=0)
    assert [placed[p] for p in range(10)] == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


@given(st.integers(1, 8), st.integers(1, 40), st.data())
def test_every_placement_is_distinct_and_even(count, partitions, data):
    """No broker twice in a partition; preferred leaders differ by at most one between brokers."""
    brokers = [10 * n for n in range(count)]
    factor = data.draw(st.integers(1, count))
    placed = assign_new_topic(brokers, partitions, factor, Random(data.draw(st.integers(0, 99))))
    assert sorted(placed) == list(range(partitions))
    for replicas in placed.values():
        assert len(replicas) == factor == len(set(replicas))
        assert set(replicas) <= set(brokers)
    leaders = Counter(replicas[0] for replicas in placed.values())
    counts = [leaders.get(broker, 0) for broker in brokers]
    assert max(counts) - min(counts) <= 1


@given(st.integers(1, 6), st.integers(1, 20), st.integers(1, 20), st.data())
def test_added_partitions_have_the_factor_of_the_first_and_the_next_numbers(count, before, added, data):
    """CreatePartitions continues; what is there stays."""
    factor = data.draw(st.integers(1, count))
    existing = assign_new_topic(range(count), before, factor, Random(1))
    placed = assign_added_partitions(range(count), existing, added)
    assert sorted(placed) == list(range(before, before + added))
    assert all(len(set(replicas)) == factor for replicas in placed.values())


def test_too_few_brokers_is_said_in_kafka_s_words():
    """INVALID_REPLICATION_FACTOR needs a text that names both numbers."""
    with pytest.raises(AssignmentError, match="Replication factor: 3 larger than available brokers: 2"):
        assign_replicas([1, 2], 1, 3, start_index=0, shift=0)
    with pytest.raises(AssignmentError, match="available brokers: 0"):
        assign_new_topic([], 1, 1, Random(0))
    with pytest.raises(AssignmentError, match="larger than 0"):
        assign_replicas([1], 1, 0, start_index=0, shift=0)
