"""A partition by its topic and number: the key that every room has for it. Owns that and how messages name one."""

from __future__ import annotations

#: (topic, number). A plain tuple, since one is made for every partition of every request.
TopicPartition = tuple[str, int]


def partition_name(key: TopicPartition) -> str:
    """A partition as messages name it."""
    return f"{key[0]}-{key[1]}"
