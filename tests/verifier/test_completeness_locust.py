"""What Locust left beside the histories: it agrees with them, is absent, or is told to make no sense."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.stories import clean
from tests.verifier.test_completeness import FACTS, RUN, beside, incomplete
from tests.verifier.test_verdict import closing
from verifier.closing.closing import gather
from verifier.evidence.run_model import RunModel


@pytest.mark.parametrize("left", [{}, {"wall_s": (1_700_000_000, 1_700_000_030)}, {"counted": 24}, {"counted": 20}])
def test_what_locust_left_agrees_or_is_absent(left: dict[str, Any]) -> None:
    """It leaves out what was acknowledged as it started; and it may not have come to write its figures."""
    assert incomplete(RUN, FACTS, beside(**left)) == []


def test_a_reader_s_records_were_not_acknowledged_to_it() -> None:
    """Locust counts what it was handed under the same name."""
    left = closing().beside
    read = {**left, "reader-1": replace(left["reader-1"], counted=25)}
    assert incomplete(RUN, FACTS, closing(beside=read)) == []


def test_locust_s_files_are_read(tmp_path: Path) -> None:
    """The records of all names, without failures; the first and the last second of its history."""
    directory = clean().write(tmp_path / "run")
    home, head = directory.loadgen_dir, "Type,Name,Request Count,Failure Count"
    rows = [head, "KAFKA,send,9,0", "RECORD,a,20,1", "RECORD,b,7,0", ",Aggregated,9,0", ""]
    (home / "producer-1_stats.csv").write_text("\n".join(rows), encoding="utf-8")
    (home / "producer-1_stats_history.csv").write_text("Timestamp,Type\n17,a\n19,b\n18,a\n", encoding="utf-8")
    run = RunModel.from_json(directory.read_run())
    left = gather(directory, run).beside["producer-1"]
    assert (left.counted, left.wall_s) == (26, (17, 19))
    directory.status_json("producer-1").write_text("[]", encoding="utf-8")
    (told,) = gather(directory, run).unreadable
    assert told.path.startswith("loadgen/producer-1")


@pytest.mark.parametrize(
    "text", ["Type\nRECORD\n", "Count\n7\n", "Type,Request Count\nRECORD,x\n", "T\n" + "x" * 200_000]
)
def test_figures_of_locust_that_make_no_sense_are_told(tmp_path: Path, text: str) -> None:
    """Whatever was done to the file, it raises nothing."""
    directory = clean().write(tmp_path / "run")
    (directory.loadgen_dir / "producer-1_stats.csv").write_text(text, encoding="utf-8")
    (told,) = gather(directory, RunModel.from_json(directory.read_run())).unreadable
    assert told.path.startswith("loadgen/producer-1")
