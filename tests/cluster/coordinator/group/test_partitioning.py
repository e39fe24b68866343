"""Where a group belongs: Java's hash of its id."""

from __future__ import annotations

import pytest

from cluster.coordinator.group.partitioning import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "value", "partition"),
    [
        ("", 0, 0),
        ("my-txn", -1061187895, 45),
        ("g1", 3242, 42),
        ("test-group", 627841412, 12),
        ("polygenelubricants", -2147483648, 0),
        ("é\U0001f600", 1996812, 12),
    ],
)
def test_the_hash_is_javas(text: str, value: int, partition: int) -> None:
    """Over UTF-16 code units, in 32 bits; the least integer, which has no absolute value, is 0."""
    assert java_hash(text) == value
    assert partition_for(text, 50) == partition
