"""Computes the rows and the new offsets that ``gapless groups`` shows. Pure. Sends no request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from chaos.exits import BadRequest
from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_descriptions import DescribedGroup, DescribedMember
from cluster.topic_partition import TopicPartition, partition_name

_TARGET = re.compile(r"earliest|latest|[+-]?[0-9]{1,18}")


class GroupOffsetRow(NamedTuple):
    """One partition of a group, or a member without a partition. None for anything unknown."""

    topic: str | None = None
    partition: int | None = None
    committed: int | None = None
    end: int | None = None
    lag: int | None = None
    member: str | None = None
    client: str | None = None
    host: str | None = None


class OffsetTarget(NamedTuple):
    """Where to move a group: ``name`` is ``earliest`` or ``latest``; else ``offset`` is an offset or a distance."""

    name: str
    offset: int
    is_distance: bool


def parse_target(text: str) -> OffsetTarget:
    """The target in a text such as ``earliest``, ``17`` or ``+5``. Raises BadRequest."""
    if not _TARGET.fullmatch(text):
        raise BadRequest(f"--to {text}: give earliest, latest, an offset such as 42, or a distance such as -10")
    if text in ("earliest", "latest"):
        return OffsetTarget(text, 0, False)
    return OffsetTarget("", int(text), text[0] in "+-")


def target_offsets(
    target: OffsetTarget,
    partitions: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    first: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """The new offset of each partition, within its log, as in Kafka's tool. Raises BadRequest if one is unknown."""
    offsets: dict[TopicPartition, int] = {}
    for key in partitions:
        if key not in first or key not in last:
            raise BadRequest(f"{partition_name(key)} does not exist anymore; name the topics to reset with --topic")
        if target.name:
            offsets[key] = first[key] if target.name == "earliest" else last[key]
            continue
        if target.is_distance and key not in committed:
            raise BadRequest(f"--to {target.offset:+}: the group has committed nothing for {partition_name(key)}")
        offsets[key] = min(max(_asked(target, key, committed), first[key]), last[key])
    return offsets


def outside_lines(
    target: OffsetTarget,
    moved: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    first: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, int],
) -> list[str]:
    """A line for each partition that does not get the requested offset, because that is outside of its log."""
    return [
        f"{partition_name(key)}: {asked} is outside of the log ({first[key]} to {last[key]})"
        for key, new in sorted(moved.items())
        if not target.name and (asked := _asked(target, key, committed)) != new
    ]


def _asked(target: OffsetTarget, key: TopicPartition, committed: Mapping[TopicPartition, OffsetAndMetadata]) -> int:
    return committed[key].offset + target.offset if target.is_distance else target.offset


def offset_rows(
    group: DescribedGroup, committed: Mapping[TopicPartition, OffsetAndMetadata], ends: Mapping[TopicPartition, int]
) -> list[GroupOffsetRow]:
    """A row for each partition with an offset or a member, and for each member without a partition."""
    readers = {key: member for member in group.members for key in member.partitions or ()}
    rows = []
    for key in sorted({*committed, *readers}):
        offset, end, reader = committed.get(key), ends.get(key), readers.get(key)
        lag = None if offset is None or end is None else max(0, end - offset.offset)
        row = GroupOffsetRow(*key, None if offset is None else offset.offset, end, lag)
        rows.append(row if reader is None else row._replace(**_names(reader)))
    return rows + [GroupOffsetRow(**_names(member)) for member in group.members if not member.partitions]


def _names(member: DescribedMember) -> dict[str, Any]:
    return {"member": member.member_id, "client": member.client_id, "host": member.client_host}
