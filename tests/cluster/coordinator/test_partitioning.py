"""Where a key belongs, against values of Kafka 3.8.0's own classes."""

from __future__ import annotations

import pytest

from cluster.coordinator.partitioning import java_hash, partition_for


@pytest.mark.parametrize(
    ("key", "hashed", "partition"),
    [
        ("", 0, 0),
        ("my-txn", -1061187895, 45),
        ("g1", 3242, 42),
        ("test-group", 627841412, 12),
        ("my_transactional_id", -2013750332, 32),
        ("polygenelubricants", -2147483648, 0),
        ("é😀", 1996812, 12),
    ],
)
def test_hash_and_partition(key, hashed, partition):
    """UTF-16 code units, wrapping at 32 bits; the least int counts as zero."""
    assert java_hash(key) == hashed
    assert partition_for(key, 50) == partition


def test_a_lone_surrogate_has_a_hash():
    """Java's strings may hold a lone surrogate: it has Java's hash."""
    assert java_hash("\ud83d") == 0xD83D
