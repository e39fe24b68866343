"""``gapless groups``: where offsets are moved to, and what is shown of a group.

What it asks of a cluster is tested with one (``tests/integration/test_native_groups.py``).
"""

from __future__ import annotations

import pytest

from chaos.commands.group_offsets import GroupOffsetRow, offset_rows, parse_target, target_offsets
from chaos.exits import BadRequest
from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_descriptions import DescribedGroup, DescribedMember

KEY = ("t", 0)
COMMITTED = {KEY: OffsetAndMetadata(20)}


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("earliest", 10),
        ("latest", 30),
        ("25", 25),
        ("5", 10),
        ("99", 30),
        ("-3", 17),
        ("+3", 23),
        ("-50", 10),
        ("+50", 30),
    ],
)
def test_an_offset_is_moved_within_its_log(text: str, moved: int) -> None:
    """To an end, to a number, or by a distance; what lies outside is moved to the nearest end."""
    assert target_offsets(parse_target(text), [KEY], COMMITTED, {KEY: 10}, {KEY: 30}) == {KEY: moved}


def test_what_cannot_be_moved_is_refused() -> None:
    """A shift without a committed offset, a deleted partition, and an invalid target."""
    with pytest.raises(BadRequest, match="committed nothing for t-1"):
        target_offsets(parse_target("+1"), [("t", 1)], COMMITTED, {("t", 1): 0}, {("t", 1): 9})
    with pytest.raises(BadRequest, match="t-0 does not exist"):
        target_offsets(parse_target("latest"), [KEY], COMMITTED, {}, {})
    for text in ("", "end", "1.5", "--1", "9" * 30):
        with pytest.raises(BadRequest, match="earliest, latest"):
            parse_target(text)


def test_a_row_for_each_partition_and_each_idle_member() -> None:
    """Partitions with an offset, a reader or both; what is not known is left open."""
    reader = DescribedMember("m1", None, "c1", "/h1", (KEY, ("t", 1)))
    idle = DescribedMember("m2", None, "c2", "/h2", ())
    group = DescribedGroup("g", "Stable", "consumer", "range", 1, (reader, idle))
    gone = {("gone", 0): OffsetAndMetadata(4)}
    assert offset_rows(group, {**COMMITTED, **gone}, {KEY: 25, ("t", 1): 7}) == [
        GroupOffsetRow("gone", 0, 4),
        GroupOffsetRow("t", 0, 20, 25, 5, "m1", "c1", "/h1"),
        GroupOffsetRow("t", 1, None, 7, None, "m1", "c1", "/h1"),
        GroupOffsetRow(member="m2", client="c2", host="/h2"),
    ]
