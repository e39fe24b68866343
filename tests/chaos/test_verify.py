"""``gapless verify`` over several paths and over histories, and ``gapless export``; without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.commands import judge as judging
from chaos.commands.main import run_command
from tests.support.stories import clean
from tests.verifier.operations.histories import Line
from tests.verifier.operations.planted import PAIRS, history
from verifier.evidence.run_directory import RunDirectory, write_json_atomic
from verifier.operations.writing import edn_line, json_line
from verifier.verdict import CheckResult, Verdict


def edn(path: Path, lines: list[Line]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(edn_line(line) + "\n" for line in lines))
    return path


def test_a_history_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The RESULT lines of a run as far as they apply, the reasons, and what could not be seen; exit status 1."""
    path = edn(tmp_path / "history.edn", PAIRS["lost-write"].wrong)
    assert run_command(["verify", str(path)]) == 1
    out, err = capsys.readouterr()
    result, repro = out.splitlines()
    assert result == "RESULT invalid acked=3 read=2 anomalies=lost-write:1,unseen:1 allowed=none"
    assert repro == f"repro: gapless verify {path}"
    assert "lost-write: a value that was written is missing before one that was read (1); it explains unseen (1)" in err
    assert "note: a client-only verdict cannot see what the brokers stored" in err


def test_one_history_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One path prints one object with the form of verdict.json; options are taken over and shown."""
    path = edn(tmp_path / "history.edn", PAIRS["poll-skip"].wrong)
    argv = ["verify", str(path), "--json", "--sub-via", "assign,subscribe", "--ww-deps", "--no-txn"]
    assert run_command(argv) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["verdict"], told["checks"]["poll-skip"]["allowed"], told["path"]) == ("valid", True, str(path))
    assert told["options"] == {"sub_via": ["assign", "subscribe"], "ww_deps": True, "txn": False}
    assert "repro: gapless verify" in err and "--sub-via assign,subscribe --ww-deps --no-txn" in err


def test_several_histories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line with its path, in their order; the exit status is the worst: 1, then 2, then 0."""
    good = edn(tmp_path / "good.edn", history())
    torn = tmp_path / "torn.jsonl"
    torn.write_text(json_line(history()[0]) + '\n{"proc')
    store = edn(tmp_path / "store" / "history.edn", PAIRS["G1a"].wrong).parent
    assert run_command(["verify", str(good), str(torn), "--json"]) == 2
    capsys.readouterr()
    assert run_command(["verify", str(good), str(torn), str(store), "--json"]) == 1
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["path"] for each in told] == [str(good), str(torn), str(store)]
    assert [each["verdict"] for each in told] == ["valid", "unknown", "invalid"]
    assert "torn.jsonl:2" in told[1]["reasons"][0]


def test_reports_of_histories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--out leaves the verdict, a summary, JUnit and every anomalous value; of several histories one directory each."""
    path = edn(tmp_path / "history.edn", PAIRS["duplicate"].wrong)
    out = tmp_path / "out"
    assert run_command(["verify", str(path), "--out", str(out)]) == 1
    assert f"report: {out}/summary.md" in capsys.readouterr().out
    assert sorted(str(each.relative_to(out)) for each in out.rglob("*") if each.is_file()) == [
        "anomalies/duplicate.csv", "anomalies/duplicate.parquet", "junit.xml", "summary.md", "verdict.json",
    ]  # fmt: skip
    assert json.loads((out / "verdict.json").read_text())["verdict"] == "invalid"
    assert '"duplicate","1","7",0' in (out / "anomalies" / "duplicate.csv").read_text()
    assert "cannot see" in (out / "summary.md").read_text()
    assert '<failure message="one value is at two offsets (1)"' in (out / "junit.xml").read_text()
    assert run_command(["verify", str(path), str(path), "--out", str(tmp_path / "both")]) == 1
    assert sorted(each.name for each in (tmp_path / "both").iterdir()) == ["1-history.edn", "2-history.edn"]


def test_options_of_histories_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--ww-deps over run directories alone is a mistake, and is refused before anything is started."""
    run = clean().write(tmp_path / "run")
    assert run_command(["verify", str(run.path), "--ww-deps"]) == 254
    assert "are for histories of operations" in capsys.readouterr().err


def told_verdict(directory: RunDirectory, state: str) -> None:
    verdict = Verdict(state, (), (), {"duplicate": CheckResult("duplicate", state)}, {"acked": 1, "read": 1})  # type: ignore[arg-type]
    write_json_atomic(directory.verdict_json, verdict.to_json())


def test_runs_and_histories_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All run directories go to one verifier; one that has no verdict is told, takes none along, and makes it 255."""
    runs = [clean().write(tmp_path / name) for name in ("one", "two", "three")]
    path = edn(tmp_path / "history.edn", PAIRS["G1a"].wrong)
    asked = []

    def judge_all(directories: list[RunDirectory], spark_master: str) -> dict[RunDirectory, str | None]:
        asked.append((len(directories), spark_master))
        for each in directories[:2]:
            told_verdict(each, "valid")
        return {each: None if each in directories[:2] else "Spark did not start" for each in directories}

    monkeypatch.setattr("chaos.commands.verify.judge_all", judge_all)
    monkeypatch.setattr("chaos.commands.verify.check_java", lambda: None)
    one, two, three = (str(run.path) for run in runs)
    assert run_command(["verify", one, str(path), two, "--json"]) == 1
    assert [json.loads(line)["path"] for line in capsys.readouterr().out.splitlines()] == [one, str(path), two]
    assert run_command(["verify", one, two, three, str(path), "--json"]) == 255
    out, err = capsys.readouterr()
    told = [json.loads(line) for line in out.splitlines()]
    assert [each["verdict"] for each in told] == ["valid", "valid", None, "invalid"]
    assert told[2]["error"] == "Spark did not start"
    assert f"gapless: {three}: no verdict: Spark did not start" in err
    assert asked == [(2, "local[2]"), (3, "local[2]")]


def test_a_verifier_that_dies_over_one_run_is_started_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was judged before stays, the run it died over is unknown, and another process judges the others."""
    runs = [clean().write(tmp_path / name) for name in ("one", "two", "three")]
    started = []

    def run_job(supervisor: object, directories: list[RunDirectory], master: str, options: list[str]) -> judging._Ended:
        started.append([each.path.name for each in directories])
        # the first time it dies over the second run
        line = json.dumps({"run": str(directories[0].path), "error": None, "refused": False})
        Path(options[1]).write_text(line + "\n")
        return judging._Ended(-9 if len(directories) == 3 else 0, 900.0, "", "its log")

    monkeypatch.setattr(judging, "_run_job", run_job)
    told = judging.judge_all(runs, "local[2]")
    assert started == [["one", "two", "three"], ["three"]]
    assert [told[run] for run in runs] == [None, None, None]
    verdict = json.loads(runs[1].verdict_json.read_text())
    assert verdict["verdict"] == "unknown"
    assert verdict["reasons"] == ["the verifier was killed by signal 9 (SIGKILL); see its log"]


def test_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run's histories as EDN on standard output or as JSON in a file; both are judged valid."""
    run = clean().write(tmp_path / "run")
    assert run_command(["export", str(run.path), "--edn"]) == 0
    (tmp_path / "a.edn").write_text(capsys.readouterr().out)
    assert run_command(["export", str(run.path), "--jsonl", "--out", str(tmp_path / "a.jsonl")]) == 0
    assert run_command(["verify", str(tmp_path / "a.edn"), str(tmp_path / "a.jsonl")]) == 0
    assert capsys.readouterr().out.count("RESULT valid acked=25 read=25 anomalies=none") == 2
    assert run_command(["export", str(run.path), "--edn", "--out", str(tmp_path / "no" / "a.edn")]) == 254
    assert "cannot be written" in capsys.readouterr().err
