"""Partitions under their topics, as most messages have them. Pure. Owns no message."""

from __future__ import annotations

from collections.abc import Iterable


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The numbers of each topic, both in the order in which they come."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped
