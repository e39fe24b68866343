"""The longest time that a last stable offset stood still, of the conductor's record."""

from __future__ import annotations

from pathlib import Path

from verifier.evidence.run_directory import RunDirectory, append_json_line
from verifier.figures.standstills import standstill_text, standstills

S = 1_000_000_000


def test_the_longest_is_told_and_how_often_was_looked(tmp_path: Path) -> None:
    """Without a look there is no figure, not even zero; a damaged record is none."""
    directory = RunDirectory(tmp_path)
    assert standstills(directory) is None
    place = {"topic": "t", "partition": 1}
    append_json_line(directory.stable_offsets_jsonl, {**place, "offset": 70, "since_ns": S, "until_ns": 3 * S})
    assert standstills(directory) is None
    append_json_line(directory.stable_offsets_jsonl, {**place, "offset": 1234, "since_ns": 5 * S, "until_ns": 21 * S})
    append_json_line(directory.stable_offsets_jsonl, {"looks": 60})
    found = standstills(directory)
    assert found == {"looks": 60, "standstills": 2, "longest_s": 16.0, "topic": "t", "partition": 1, "offset": 1234}
    assert standstill_text(found) == "16.0 s, of t-1 at offset 1,234"
    append_json_line(directory.stable_offsets_jsonl, {"offset": 3})
    assert standstills(directory) is None


def test_none_of_a_second_is_told_as_that(tmp_path: Path) -> None:
    """What a transaction takes is no standstill."""
    directory = RunDirectory(tmp_path)
    append_json_line(directory.stable_offsets_jsonl, {"looks": 60})
    found = standstills(directory)
    assert found == {"looks": 60, "standstills": 0, "longest_s": 0.0}
    assert standstill_text(found) == "less than a second (60 looks)"
