"""OffsetAndMetadata: an offset as a group commits it. Owns this shape alone (Kafka's class of the same name)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cluster.client.argument_checks import checked_integer, checked_key, checked_long, checked_mapping, checked_text
from cluster.topic_partition import TopicPartition


class OffsetAndMetadata(NamedTuple):
    """The next offset that the group reads; ``leader_epoch`` of the record before it, -1 if not known."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit; a plain integer is one without metadata. Raises ``TypeError`` and ``ValueError``."""
    pairs: Mapping[object, object] = checked_mapping(offsets, "offsets of partitions")
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for key, given in pairs.items():
        place = given if isinstance(given, tuple) else (given,)
        if not 1 <= len(place) <= 3:
            raise TypeError(f"an offset is an integer or an OffsetAndMetadata, not {given!r}")
        offset, epoch, metadata = OffsetAndMetadata(*place)
        if checked_long(offset, "an offset") < 0:
            raise ValueError(f"Invalid negative offset: {offset}")
        checked[checked_key(key)] = OffsetAndMetadata(
            offset, checked_integer(epoch, "a leader epoch", 32), checked_text(metadata, "the metadata of an offset")
        )
    return checked
