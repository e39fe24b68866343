"""The values of groups in Kafka's bytes, read and written."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.coordinator.group.group_values import GroupValue, MemberValue, group_value, parse_group_value
from cluster.coordinator.group.records import CorruptGroupRecord
from tests.cluster.coordinator.group.test_records import EMPTY_GROUP, INT32, INT64, TEXT

MEMBERS = st.builds(
    MemberValue, TEXT, st.none() | TEXT, TEXT, TEXT, INT32, INT32, st.binary(max_size=30), st.binary(max_size=30)
)
GROUPS = st.builds(
    GroupValue,
    TEXT,
    INT32,
    st.none() | TEXT,
    st.none() | TEXT,
    INT64,
    st.lists(MEMBERS, max_size=4, unique_by=(lambda each: each.member_id, lambda each: each.group_instance_id)).map(
        tuple
    ),
)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_older_groups_are_read(version: int) -> None:
    """Each version adds a field; before version 1 the session timeout is the rebalance timeout too."""
    data = struct.pack(">h", version) + b"\0\1c" + struct.pack(">i", 5) + b"\0\1p" + b"\0\1a"
    data += struct.pack(">q", 9) if version >= 2 else b""
    data += struct.pack(">i", 1) + b"\0\1a" + (b"\0\1i" if version >= 3 else b"") + b"\0\1k" + b"\0\1h"
    data += (struct.pack(">i", 60) if version >= 1 else b"") + struct.pack(">i", 30)
    data += struct.pack(">i", 1) + b"s" + struct.pack(">i", 0)
    member = MemberValue("a", "i" if version >= 3 else None, "k", "h", 60 if version >= 1 else 30, 30, b"s", b"")
    assert parse_group_value(data) == GroupValue("c", 5, "p", "a", 9 if version >= 2 else -1, (member,))


@given(GROUPS)
def test_groups_come_back(group: GroupValue) -> None:
    """A group's metadata is read back as it was written."""
    assert parse_group_value(group_value(group)) == group


def test_a_member_twice_is_refused() -> None:
    """Of two members under one id or one instance, no one could say which is meant."""
    one = MemberValue("a", "i", "", "", 1, 1, b"", b"")
    for other in (replace(one, group_instance_id=None), replace(one, member_id="b")):
        with pytest.raises(CorruptGroupRecord):
            parse_group_value(group_value(GroupValue("consumer", 2, None, None, 0, (one, other))))


def test_a_count_beyond_the_bytes_is_refused() -> None:
    """The number of members is compared with what is left before anything is looped over."""
    with pytest.raises(CorruptGroupRecord):
        parse_group_value(EMPTY_GROUP[:-4] + struct.pack(">i", 1 << 30))
