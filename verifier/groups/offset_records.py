"""Decodes the records of ``__consumer_offsets`` into plain values: group, partition, and committed offset.

Owns the layouts of OffsetCommitKey 0 and 1, OffsetCommitValue 0 to 3, and GroupMetadataKey 2
(docs/reference/kafka.md "Groups"). Judges nothing.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from verifier.transactions.state_records import TopicPartition, UnknownRecord, text_at

_KEY_VERSIONS_OF_OFFSETS, _KEY_VERSION_OF_GROUPS = (0, 1), 2
_VALUE_VERSIONS = (0, 1, 2, 3)
_VERSION, _PARTITION, _OFFSET = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


class OffsetRecord(NamedTuple):
    """One record. ``place`` is None if the record is about a whole group; ``offset`` is None if it is a tombstone."""

    group: str
    place: TopicPartition | None
    offset: int | None


def offset_record(key: bytes | None, value: bytes | None) -> OffsetRecord:
    """Decodes one record. Raises ``UnknownRecord``."""
    try:
        group, place = _decode_key(key or b"")
        return OffsetRecord(group, place, None if place is None or value is None else _decode_value(value))
    except (struct.error, UnicodeDecodeError) as error:
        raise UnknownRecord(f"{error}") from None


def _decode_key(key: bytes) -> tuple[str, TopicPartition | None]:
    (version,) = _VERSION.unpack_from(key)
    group, at = text_at(key, _VERSION.size)
    place = None
    if version in _KEY_VERSIONS_OF_OFFSETS:
        topic, at = text_at(key, at)
        place = topic, _PARTITION.unpack_from(key, at)[0]
        at += _PARTITION.size
    elif version != _KEY_VERSION_OF_GROUPS:
        raise UnknownRecord(f"a key of version {version}, only 0 to 2 are known")
    if at != len(key):
        raise UnknownRecord(f"{len(key) - at} bytes follow the key")
    return group, place


def _decode_value(value: bytes) -> int:
    (version,) = _VERSION.unpack_from(value)
    if version not in _VALUE_VERSIONS:
        raise UnknownRecord(f"a value of version {version}, only 0 to 3 are known")
    return int(_OFFSET.unpack_from(value, _VERSION.size)[0])
