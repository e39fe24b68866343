"""What a request names, once each: to name something again is cheap for a client, and must be for a broker.

Owns the merging of repeated topics and partitions. Kafka has maps where these requests have lists, so that of what is
named twice the last word counts; ListOffsets alone refuses it. Does not own what is answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from cluster.broker.portions import Steps, all_of

_Entry = TypeVar("_Entry")


_Part = TypeVar("_Part", bound=tuple[Any, ...])


def each_once(parts: list[_Part]) -> list[_Part]:
    """``parts`` that begin with topic and partition, each partition once: its last, in the place of its first."""
    distinct = {(part[0], part[1]): part for part in parts}
    return parts if len(distinct) == len(parts) else [*distinct.values()]


def naming(pairs: Iterable[tuple[str, Iterable[tuple[int, _Entry]]]]) -> Steps[dict[str, dict[int, _Entry]]]:
    """``named`` in steps: a topic without partitions takes time too."""
    topics: dict[str, dict[int, _Entry]] = {}
    for topic, entries in pairs:
        of_topic = topics.setdefault(topic, {})
        for number, entry in entries:
            of_topic[number] = entry
            yield None
        yield None
    return topics


def named(pairs: Iterable[tuple[str, Iterable[tuple[int, _Entry]]]]) -> dict[str, dict[int, _Entry]]:
    """Topic -> partition -> what was asked of it last, from pairs of a topic and its (partition, entry)."""
    return all_of(naming(pairs))


def repeated(pairs: Iterable[tuple[str, Iterable[int]]]) -> Steps[set[tuple[str, int]]]:
    """The partitions that are named more than once."""
    seen: set[tuple[str, int]] = set()
    again: set[tuple[str, int]] = set()
    for topic, partitions in pairs:
        for partition in partitions:
            key = (topic, partition)
            (again if key in seen else seen).add(key)
            yield None
        yield None
    return again
