"""Reading back a load by hand: from where it began through a record written after it, or why not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loadgen import read_back
from loadgen.clients.base import PolledRecords, SentResult
from loadgen.settings import LoadSettings, SettingsError
from loadgen.spans import ReadRecord
from loadgen.topics import Log
from tests.loadgen.fakes import FakeReader, FakeSender
from tests.verifier.test_verify_standalone import READ, SENT, START, load
from verifier.evidence.history import read_history
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.standalone import read_read_back


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A load that has ended, in a topic of one partition whose log was at 4 when it began, and is not read back yet."""
    directory = load(tmp_path, SENT, READ, replace(START, ends={0: 4}), None)
    LoadSettings(run_id=7, topic="t", partitions=1, producers_bootstrap="h:1").write(directory.load_settings_json)
    return directory


def prepare(
    monkeypatch: pytest.MonkeyPatch, log: Log | SettingsError, answers: list[dict[int, SentResult]], end: int = 9
) -> FakeReader:
    """A cluster whose topic has this log, and which gives records up to ``end``."""
    polled = [PolledRecords([ReadRecord(0, offset, None) for offset in range(4, end + 1)], [], broken=False)]
    reader = FakeReader(polled)

    def positions(bootstrap: str, topic: str, partitions: int) -> dict[int, Log]:
        if isinstance(log, SettingsError):
            raise log
        return {0: log}

    sender = FakeSender(answers)
    monkeypatch.setattr(read_back, "positions", positions)
    monkeypatch.setattr(read_back, "sender_factory", lambda *given: lambda: sender)
    monkeypatch.setattr(read_back, "reader", lambda *given: reader)
    monkeypatch.setattr(read_back, "SENTINELS_S", 0.05)
    monkeypatch.setattr("loadgen.final_read.STALL_S", 0.05)
    return reader


GOOD = [{0: SentResult.of_offset(9)}]


@pytest.mark.parametrize(("begin", "expected"), [(0, 4), (6, 6)])
def test_it_reads_from_where_the_load_began(
    begin: int, expected: int, run: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or from where the log begins by now, if that is behind; the line at the end says how to judge it."""
    reader = prepare(monkeypatch, Log(begin, 9), list(GOOD))
    assert read_back.main([str(run.path)]) == 0
    assert reader.assignments == [{0: expected}] and reader.closed
    back = read_read_back(run)
    assert back is not None and (back.why, back.after, back.begins) == ("", ("load",), {0: expected})
    assert {row["phase"] for row in read_history(run.history("final")).to_pylist()} == {"final"}
    err = capsys.readouterr().err
    assert "read back 6 records; try: " in err and err.rstrip().endswith(f"gapless verify {run.path}")


@pytest.mark.parametrize(
    ("log", "answers", "end", "why"),
    [
        (SettingsError("nobody answers"), GOOD, 9, "nobody answers"),
        (Log(0, 9), [], 9, "partition 0 accepted no record within 0 s"),
        (Log(0, 9), GOOD, 8, "partition 0 did not return the record that it acknowledged last"),
    ],
    ids=["no cluster", "not written", "not read"],
)
def test_what_was_not_read_back_says_why(
    log: Log | SettingsError, answers: list[dict[int, SentResult]], end: int, why: str, run: RunDirectory,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A read-back that failed says why, and how to repeat it."""
    prepare(monkeypatch, log, list(answers), end)
    assert read_back.main([str(run.path)]) == 1
    back = read_read_back(run)
    assert back is not None and back.why == why
    err = capsys.readouterr().err
    assert f"not read back: {why}; when the cluster can be read: " in err
    assert err.rstrip().endswith(f"gapless load --read-back {run.path}")


def test_an_interrupt_is_no_failure(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and the load says that it was not read back."""
    prepare(monkeypatch, Log(0, 9), list(GOOD))
    monkeypatch.setattr(read_back, "read_back", lambda *given: read_back._interrupt())
    assert read_back.main([str(run.path)]) == 1
    back = read_read_back(run)
    assert back is not None and back.why == "it was interrupted"
    assert "Traceback" not in capsys.readouterr().err


def test_a_load_that_still_runs_is_noted(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is told later was not read."""
    run.history("load").write_bytes(run.history("load").read_bytes()[:-8])
    prepare(monkeypatch, Log(0, 9), list(GOOD))
    assert read_back.main([str(run.path)]) == 0
    back = read_read_back(run)
    assert back is not None and back.after == ()


def test_a_directory_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory that is not a standalone load is refused in one line, with 254."""
    assert read_back.main([str(tmp_path)]) == 254
    assert f"{tmp_path} is not a standalone load" in capsys.readouterr().err
