"""Names in a log directory (Kafka's LocalLog)."""

from __future__ import annotations

import pytest

from cluster.log.data_directory import doomed_directory, is_going_away, parse_replica_directory_name

HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", ("t", 0)),
        ("a-b-12", ("a-b", 12)),
        ("a.b_c-3", ("a.b_c", 3)),
        ("t", None),
        ("t-", None),
        ("meta.properties", None),
        ("recovery-point-offset-checkpoint", None),
        (f"t-0.{HEX}-delete", None),
        (f"t-0.{HEX}-stray", None),
    ],
)
def test_replica_names(name, expected):
    """``<topic>-<partition>``; what is being deleted is none."""
    assert parse_replica_directory_name(name) == expected


def test_doomed_names():
    """The name, 32 hex digits, ``-delete``; cut so that a file system takes it."""
    doomed = doomed_directory("data/t-0", 1)
    assert doomed.startswith("data/t-0.") and doomed.endswith("-delete")
    assert is_going_away(doomed.removeprefix("data/"))
    assert doomed != doomed_directory("data/t-0", 2)
    long = doomed_directory("data/" + "x" * 249 + "-0", 1).removeprefix("data/")
    assert len(long) == 255 and is_going_away(long)
