"""Names longer than a file or a host may have: an error of whoever gave them, not of the harness (L7)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from chaos.commands import preflight
from chaos.commands.main import run_command
from tests.hostile.test_history_bombs import zeros
from verifier.surroundings.clients import listen

LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--out", LONG],
        ["run", "--schedule", LONG],
        ["run", "--workload", LONG],
        ["run", "--name", LONG],
        ["run", "--zookeeper", f"{LONG}:2181"],
        ["run", "--toxiproxy", f"http://{LONG}:8474"],
        ["run", "--topic-config", f"{LONG}=1"],
        ["dump", LONG],
        ["verify", LONG],
        ["status", "--data", LONG],
    ],
)
def test_a_name_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """One line and 254, where it was "the harness itself failed" and 255; no cluster is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight, "check_java", lambda: None)
    status = run_command(words)
    err = capsys.readouterr().err
    assert status in ((254,) if words[0] != "status" else (1, 254)), err
    assert "the harness itself failed" not in err
    assert len(err.splitlines()) <= 2


def test_who_looks_for_anomalies_decompresses_no_bomb(tmp_path: Path) -> None:
    """A history that claims too much is read up to there, and a note says so."""
    bomb = zeros(tmp_path / "bomb.arrow", 2_000_000)
    before_bytes = pa.total_allocated_bytes()
    [note] = listen([bomb]).notes
    assert "claims 2,000,000 rows" in note
    assert pa.total_allocated_bytes() <= before_bytes + 1_000_000
