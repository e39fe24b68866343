"""The keys of ``__consumer_offsets`` and committed offsets in Kafka's bytes, and what must hold of all its records."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.coordinator.group.group_values import GroupValue, group_value, parse_group_value
from cluster.coordinator.group.records import (
    CommittedOffset,
    CorruptGroupRecord,
    GroupKey,
    OffsetKey,
    UnknownKey,
    group_key,
    offset_key,
    offset_value,
    parse_key,
    parse_offset_value,
)

#: As Kafka 3.8 wrote them.
OFFSET_KEY = bytes.fromhex("0001 0009 676a2d326566383331 0008 6a2d326566383331 00000001")
OFFSET_VALUE = bytes.fromhex("0003 0000000000000018 ffffffff 0000 000001a1fd9eba12")
GROUP_KEY = bytes.fromhex("0002 0009 676a2d326566383331")
EMPTY_GROUP = bytes.fromhex("0003 0008 636f6e73756d6572 00000002 ffff ffff 000001a1fd9ebeb1 00000000")

TEXT = st.text(max_size=20)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


def test_keys_are_kafkas() -> None:
    """Both keys have the bytes that Kafka writes."""
    assert offset_key("gj-2ef831", "j-2ef831", 1) == OFFSET_KEY
    assert parse_key(OFFSET_KEY) == OffsetKey("gj-2ef831", "j-2ef831", 1)
    assert parse_key(b"\0\0" + OFFSET_KEY[2:]) == OffsetKey("gj-2ef831", "j-2ef831", 1)
    assert group_key("gj-2ef831") == GROUP_KEY
    assert parse_key(GROUP_KEY) == GroupKey("gj-2ef831")


def test_values_are_kafkas() -> None:
    """A committed offset and an Empty group have the bytes that Kafka writes."""
    committed = CommittedOffset(24, "", 0x1A1FD9EBA12)
    assert offset_value(committed) == OFFSET_VALUE
    assert parse_offset_value(OFFSET_VALUE) == committed
    empty = GroupValue("consumer", 2, None, None, 0x1A1FD9EBEB1, ())
    assert group_value(empty) == EMPTY_GROUP
    assert parse_group_value(EMPTY_GROUP) == empty


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_older_offsets_are_read(version: int) -> None:
    """Versions 0 and 2 have no leader epoch, version 1 has an expiry, version 3 the leader epoch."""
    data = struct.pack(">hq", version, 7) + (struct.pack(">i", 4) if version == 3 else b"") + b"\0\1m"
    data += struct.pack(">q", 100) + (struct.pack(">q", 200) if version == 1 else b"")
    committed = parse_offset_value(data)
    assert committed == CommittedOffset(7, "m", 100, 4 if version == 3 else -1, 200 if version == 1 else -1)


@given(TEXT, TEXT, INT32)
def test_keys_come_back(group_id: str, topic: str, partition: int) -> None:
    """Keys of offsets and groups are read back as they were written."""
    assert parse_key(offset_key(group_id, topic, partition)) == OffsetKey(group_id, topic, partition)
    assert parse_key(group_key(group_id)) == GroupKey(group_id)


@given(INT64, TEXT, INT64, INT32, INT64)
def test_offsets_come_back(offset: int, metadata: str, committed_ms: int, leader_epoch: int, expire_ms: int) -> None:
    """What is written is read; one with an expiry is written in version 1, which has no leader epoch."""
    kept = leader_epoch if expire_ms == -1 else -1
    committed = CommittedOffset(offset, metadata, committed_ms, kept, expire_ms)
    assert parse_offset_value(offset_value(committed)) == committed


PARSERS: list[tuple[Callable[[bytes], object], bytes]] = [
    (parse_key, OFFSET_KEY),
    (parse_key, GROUP_KEY),
    (parse_offset_value, OFFSET_VALUE),
    (parse_group_value, EMPTY_GROUP),
]


@pytest.mark.parametrize(("parse", "data"), PARSERS)
def test_damaged_bytes_are_refused(parse: Callable[[bytes], object], data: bytes) -> None:
    """Every cut, a byte too many, and a version that is not known."""
    parse(data)
    for length in range(len(data)):
        with pytest.raises(CorruptGroupRecord):
            parse(data[:length])
    for damaged in (data + b"\0", b"\xff\xff" + data[2:]):
        with pytest.raises(CorruptGroupRecord):
            parse(damaged)


@given(st.binary(max_size=60), st.sampled_from([parse_key, parse_offset_value, parse_group_value]))
def test_any_bytes_are_read_or_refused(data: bytes, parse: Callable[[bytes], object]) -> None:
    """No bytes raise anything but ``CorruptGroupRecord``."""
    with suppress(CorruptGroupRecord):
        parse(data)


def test_newer_keys_are_passed_over_and_newer_values_are_not() -> None:
    """What follows a newer key is not known; a newer value under a known key would be lost silently."""
    assert parse_key(struct.pack(">h", 3) + b"anything") == UnknownKey(3)
    with pytest.raises(CorruptGroupRecord):
        parse_offset_value(struct.pack(">h", 4) + OFFSET_VALUE[2:])
    with pytest.raises(CorruptGroupRecord):
        parse_group_value(struct.pack(">h", 4) + EMPTY_GROUP[2:])
