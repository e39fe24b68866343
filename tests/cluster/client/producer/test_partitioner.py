"""The partitioner: Kafka's hash, and where records without keys go."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from cluster.client.producer.murmur2 import murmur2
from cluster.client.producer.partitioner import BuiltInPartitioner, partition_for_key
from cluster.seams.randomness import derive

#: Of Kafka 3.8.0: the text, its hash, and the partition of 6 and of 10.
VECTORS = [
    ("", 275646681, 3, 1),
    ("a", -1563381124, 4, 4),
    ("ab", 316155434, 2, 4),
    ("abc", 479470107, 3, 7),
    ("abcd", -1323649548, 2, 0),
    ("21", -973932308, 0, 0),
    ("foobar", -790332482, 0, 6),
    ("kafka", -798503068, 4, 0),
    ("é", 186971271, 3, 1),
    ("a-little-bit-long-string", -985981536, 2, 2),
    ("a-little-bit-longer-string", -1486304829, 5, 9),
]


class Drawn:
    """Random numbers as they are given."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def getrandbits(self, bits):
        return self.numbers.pop(0)


@pytest.mark.parametrize(("text", "value", "of_six", "of_ten"), VECTORS)
def test_keys_go_where_kafka_sends_them(text, value, of_six, of_ten):
    """The hash is Kafka's, and so is the partition, however often the key was seen before."""
    key = text.encode()
    assert murmur2(key) == value
    for _ in range(2):
        assert (partition_for_key(key, 6), partition_for_key(key, 10)) == (of_six, of_ten)


@given(st.binary(max_size=50) | st.integers(250, 530).map(lambda size: (b"xyz" * size)[:size]))
def test_murmur2_of_anything(data):
    """Of any data the hash is that of an independent implementation."""
    assert murmur2(data) & 0xFFFFFFFF == kafka_python_murmur2(data) & 0xFFFFFFFF


def test_a_partition_is_kept_until_a_batch_is_full():
    """After batch.size bytes, where no half-full batch is left; after twice as many, in any case."""
    partitioner = BuiltInPartitioner(100, Drawn(1, 2, 0))
    assert partitioner.partition == -1
    partitioner.set_partitions([0, 1, 2], 3)
    assert partitioner.partition == 1
    partitioner.appended(99, may_switch=True)
    assert partitioner.partition == 1
    partitioner.appended(100, may_switch=False)
    assert partitioner.partition == 1
    partitioner.appended(1, may_switch=False)
    assert partitioner.partition == 2
    partitioner.appended(100, may_switch=True)
    assert partitioner.partition == 0


def test_partitions_without_a_leader():
    """They are drawn only if there is no other; the present one is kept until it is full, or does not exist."""
    partitioner = BuiltInPartitioner(1, Drawn(1, 7, 8, 3, 0))
    partitioner.set_partitions([1, 4], 6)
    assert partitioner.partition == 4
    partitioner.set_partitions([1, 2], 6)
    assert partitioner.partition == 4
    partitioner.appended(1, may_switch=True)
    assert partitioner.partition == 2
    partitioner.set_partitions([], 6)
    partitioner.appended(1, may_switch=True)
    assert partitioner.partition == 2
    partitioner.set_partitions([], 2)
    assert partitioner.partition == 1
    partitioner.set_partitions([], 0)
    assert partitioner.partition == -1
    partitioner.set_partitions([0], 1)
    assert partitioner.partition == 0


@pytest.mark.parametrize(
    ("queues", "drawn", "expected"),
    [
        # Queues of 0, 3, 1 (KIP-794's load table) give weights 4, 1, 3 and sums 4, 5, 8.
        ({0: 0, 1: 3, 2: 1}, range(9), [0, 0, 0, 0, 1, 2, 2, 2, 0]),
        ({0: 2, 1: 0, 2: 5}, (3, 4, 10), [0, 1, 2]),
        # One is left out, its broker not being available; then even an equal load counts.
        ({0: 1, 2: 1}, range(4), [0, 2, 0, 2]),
        ({2: 9}, (0, 5), [2, 2]),
        # All alike, or nothing known: evenly.
        ({0: 1, 1: 1, 2: 1}, (4, 5), [1, 2]),
        (None, (4, 5), [1, 2]),
        ({}, (4, 5), [1, 2]),
    ],
)
def test_the_load_decides(queues, drawn, expected):
    """Where fewer batches wait a partition is drawn more often, by Kafka's table."""
    partitioner = BuiltInPartitioner(1, Drawn(0, *drawn))
    partitioner.set_partitions([0, 1, 2], 3)
    partitioner.update_load(queues)
    found = []
    for _ in drawn:
        partitioner.appended(1, may_switch=True)
        found.append(partitioner.partition)
    assert found == expected


def test_a_load_of_other_partitions_is_forgotten():
    """When partitions are added, or there is one alone, the table does not hold any more."""
    partitioner = BuiltInPartitioner(1, Drawn(0, 1, 3, 0))
    partitioner.set_partitions([0], 1)
    partitioner.update_load({0: 7})
    partitioner.set_partitions([0, 1], 2)
    partitioner.appended(1, may_switch=True)
    assert partitioner.partition == 1
    partitioner.update_load({0: 0, 1: 5})
    partitioner.set_partitions([0, 1, 2, 3], 4)
    partitioner.appended(1, may_switch=True)
    assert partitioner.partition == 3


@given(st.dictionaries(st.integers(0, 7), st.integers(0, 20), min_size=2), st.integers(0, 100))
def test_nothing_but_what_has_a_load_is_drawn(queues, seed):
    """Only partitions that are available are drawn, each of them sooner or later."""
    partitioner = BuiltInPartitioner(1, derive(seed, "partitioner"))
    partitioner.set_partitions(list(range(9)), 9)
    partitioner.update_load(queues)
    counts = Counter()
    for _ in range(300):
        partitioner.appended(1, may_switch=True)
        counts[partitioner.partition] += 1
    assert set(counts) <= set(queues)
    weights = {partition: max(queues.values()) + 1 - size for partition, size in queues.items()}
    likely = [partition for partition, weight in weights.items() if weight / sum(weights.values()) > 0.1]
    assert set(likely) <= set(counts)
