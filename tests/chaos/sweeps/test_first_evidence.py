"""When there was the first evidence of an anomaly, from the histories of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from chaos.sweeps.first_evidence import FirstEvidence, evidence_in, first_evidence
from cluster.seams.clock import ManualClock
from verifier.evidence.history import HistoryOutcome, HistoryRow, HistoryWriter, Phase, read_history
from verifier.evidence.run_directory import RunDirectory, write_json_atomic

SECOND = 1_000_000_000


def send(first: int, second: float, outcome: HistoryOutcome = "ok", partition: int = 0) -> HistoryRow:
    """Ten values of stream 3 from ``first`` on, at offsets 100 higher, whose outcome is known at that second."""
    places = first, first + 9, first + 100, first + 109
    end_ns = int(second * SECOND)
    return HistoryRow("send", outcome, "t", partition, 3, *places, invoke_ns=SECOND, complete_ns=end_ns)


def poll(offset: int, second: float, phase: Phase = "load") -> HistoryRow:
    """A record at an offset that a reader was handed at that second; its value is of another stream."""
    end_ns = int(second * SECOND)
    return HistoryRow("poll", "ok", "t", 0, 9, 0, 0, offset, offset, SECOND * 2, end_ns, phase=phase)


ROWS = (
    [send(0, 2), send(10, 5), send(20, 3, "info"), send(0, 1.5, partition=1)],
    [poll(115, 4), poll(500, 6), poll(105, 1.2, "final")],
)


def histories(directory: Path) -> list[pa.Table]:
    """The rows as two processes leave them."""
    tables = []
    for number, rows in enumerate(ROWS):
        path = directory / f"process-{number}.arrow"
        writer = HistoryWriter(path, path.stem, ManualClock())
        for row in rows:
            writer.append(row)
        writer.close()
        tables.append(read_history(path))
    return tables


@pytest.mark.parametrize(
    ("example", "found"),
    [
        ({"partition": 0, "stream": 3, "sequence": 4}, FirstEvidence(20, 1.0)),
        ({"partition": 0, "stream": 3, "sequence": 12}, FirstEvidence(30, 4.0)),
        ({"partition": 0, "stream": None, "sequence": None, "offset": 115}, FirstEvidence(20, 3.0)),
        ({"partition": 0, "stream": 3, "sequence": 77, "offset": 500}, FirstEvidence(30, 5.0)),
        ({"partition": 0, "stream": 3, "sequence": 25}, None),
        ({"partition": 2, "offset": 115}, None),
        ({"partition": 0, "offset": None}, None),
    ],
    ids=[
        "its send",
        "a later one",
        "a poll of its offset",
        "only its offset",
        "unknown outcome",
        "elsewhere",
        "nowhere",
    ],
)
def test_the_operation_that_shows_it(
    tmp_path: Path, example: Mapping[str, object], found: FirstEvidence | None
) -> None:
    """The first send or poll of the load that ended well and has the value, else the offset; what had been acknowledged
    by then counts, in all partitions."""
    assert evidence_in(histories(tmp_path), [example]) == found


def test_the_first_of_several_counts(tmp_path: Path) -> None:
    """An example that no operation shows takes nothing away."""
    examples = [{"partition": 0, "stream": 3, "sequence": each} for each in (12, 4, 25)]
    assert evidence_in(histories(tmp_path), examples) == FirstEvidence(20, 1.0)
    assert evidence_in([], examples) is None


def test_only_the_checks_that_name_it(tmp_path: Path) -> None:
    """Examples of other checks are of something else, and so are those that the settings allow."""
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.prepare()
    histories(run.history_dir)
    examples = {
        "lost-write": [
            {"partition": 0, "stream": 3, "sequence": 12, "allowed": None},
            {"partition": 0, "stream": 3, "sequence": 4, "allowed": "acks=1 permits it"},
        ],
        "phantom": [],
        "log-gap": [{"offset": 1}],
    }
    checks = {name: {"examples": each} for name, each in examples.items()}
    write_json_atomic(run.verdict_json, {"checks": checks})
    assert first_evidence(run, ("lost-write", "log-gap")) == FirstEvidence(30, 4.0)
    assert first_evidence(run, ("phantom", "unseen")) is None
