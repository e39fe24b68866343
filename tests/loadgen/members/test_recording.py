"""What of a member is recorded: sessions, positions, polls, commits; and where a member stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.seams.clock import ManualClock
from loadgen.clients.base import Watermarks
from loadgen.members.confluent import generation_of
from loadgen.members.events import Assigned, Committed, Delivered, Failed, PositionKnown, Revoked
from loadgen.members.member_offsets import Standing
from loadgen.members.recording import MemberRecording
from loadgen.recorder import Recorder
from loadgen.spans import ReadRecord
from verifier.evidence.history import read_history
from verifier.evidence.sequenced_value import encode


def record(partition: int, offset: int) -> ReadRecord:
    return ReadRecord(partition, offset, encode(77, partition, offset, 1, size_bytes=64))


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder("members-x", tmp_path / "m.arrow", ManualClock())


def rows_of(recorder: Recorder, tmp_path: Path) -> list[dict[str, Any]]:
    recorder.close()
    return read_history(tmp_path / "m.arrow").to_pylist()


def told(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_a_life_is_recorded(recorder: Recorder, tmp_path: Path) -> None:
    """From the assignment to the end; the position is what the client tells, or its first record."""
    member = MemberRecording(recorder, "g", "t", 77)
    seen = {0: Watermarks(20, 19)}
    assert member.record(
        [
            Assigned([0, 1], "id-1", 3, 10),
            PositionKnown(0, 5, 10, 12),
            Delivered([record(0, 5), record(1, 8), record(0, 6)], seen, 13, 14),
            Committed({0: 7, 1: 9}, "ok", None, 3, 15, 16),
            Committed({0: 7}, "info", "REQUEST_TIMED_OUT: no", -1, 17, 18),
            Revoked({0: 7, 1: 9}, False, 19),
        ]
    )
    member.ended("left", 20)
    rows = rows_of(recorder, tmp_path)
    assert told(rows, "f", "type", "partition", "first_offset", "last_offset", "invoke_ns", "complete_ns") == [
        ("member", "ok", -1, -1, -1, 10, 10),
        ("resume", "ok", 0, 5, 5, 10, 12),
        ("poll", "ok", 0, 5, 6, 13, 14),
        ("resume", "ok", 1, 8, 8, 10, 14),
        ("poll", "ok", 1, 8, 8, 13, 14),
        ("offset-commit", "ok", 0, 7, 7, 15, 16),
        ("offset-commit", "ok", 1, 9, 9, 15, 16),
        ("offset-commit", "info", 0, 7, 7, 17, 18),
        ("revoke", "ok", 0, 7, 7, 19, 19),
        ("revoke", "ok", 1, 9, 9, 19, 19),
        ("leave", "ok", -1, -1, -1, 20, 20),
    ]
    assert {row["session"] for row in rows} == {1}
    assert told(rows[:1], "error", "incarnation") == [("g id-1", 3)]
    assert told(rows[5:8], "error", "incarnation") == [(None, 3), (None, 3), ("REQUEST_TIMED_OUT: no", -1)]
    assert told([rows[2], rows[4]], "high_watermark", "last_stable_offset") == [(20, 19), (-1, -1)]
    assert recorder.tally.total("read") == 3


def test_what_a_member_keeps_stays_in_its_session(recorder: Recorder, tmp_path: Path) -> None:
    """A cooperative rebalance adds a session of what came; the newest one says how it ended."""
    member = MemberRecording(recorder, "g", "t", 77)
    member.record([Assigned([0], "id", 1, 1), Delivered([record(0, 0)], {}, 2, 3)])
    member.record([Assigned([1], "id", 2, 4), Delivered([record(0, 1), record(1, 0)], {}, 5, 6)])
    member.ended("crashed", 9)
    rows = rows_of(recorder, tmp_path)
    assert told([row for row in rows if row["f"] == "poll"], "partition", "session") == [(0, 1), (0, 1), (1, 2)]
    assert told([row for row in rows if row["f"] == "resume"], "partition", "session") == [(0, 1), (1, 2)]
    assert told([row for row in rows if row["f"] == "leave"], "session", "error") == [(2, "crashed")]


def test_an_error_is_noted(recorder: Recorder, tmp_path: Path) -> None:
    """A final one says that this consumer is done."""
    member = MemberRecording(recorder, "g", "t", 77)
    assert member.record([Failed("a")])
    assert not member.record([Failed("b", is_final=True)])
    assert told(rows_of(recorder, tmp_path), "f", "error") == [("note", "a"), ("note", "b")]


def test_where_a_member_stands() -> None:
    """Only what was delivered, and is not committed yet, is to be committed; what is given away no longer is."""
    standing = Standing()
    standing.take([0, 1, 2])
    standing.delivered(0, 4)
    standing.delivered(1, 9)
    assert standing.uncommitted() == {0: 5, 1: 10}
    standing.committed({0: 5})
    assert standing.uncommitted() == {1: 10}
    standing.delivered(0, 5)
    assert standing.uncommitted([0]) == {0: 6}
    assert standing.give_away([0, 2, 7]) == {0: 6, 2: -1}
    assert standing.uncommitted() == {1: 10}
    standing.committed({0: 6})
    standing.take([0])
    assert standing.uncommitted() == {1: 10}
    standing.delivered(0, 5)
    assert standing.uncommitted() == {0: 6, 1: 10}


@pytest.mark.parametrize(
    ("metadata", "generation"),
    [
        (b"CGMDv2:\x07\x01\x00\x00g\x00m\x00\x01", 263),
        (b"CGMDv2:\xff\xff\xff\xffg\x00\x00\x01", -1),
        (b"CGMDv3:\x07\x01\x00\x00g\x00m\x00\x01", -1),
        (b"CGMDv2:\x07", -1),
    ],
)
def test_librdkafka_tells_the_generation(metadata: bytes, generation: int) -> None:
    """In its form of a consumer's group metadata; in another form it is not known."""
    assert generation_of(metadata) == generation
