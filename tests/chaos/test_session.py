"""What ``gapless run`` says on the screen once its verdict stands, and where results/latest points; nothing is

started.
"""

from __future__ import annotations

import json
import logging
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.commands import long_wait, session
from chaos.commands.main import run_command
from chaos.commands.session import _conclude, first_record, settle
from chaos.commands.verifier_process import write_unjudged
from chaos.conductor.progress import Progress
from chaos.conductor.record import RunRecord
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import plan, resolve
from chaos.reached import Reached
from chaos.sweeps.outcome import is_judged, is_unjudged
from cluster.process.invocation import command
from cluster.seams.clock import SystemClock
from verifier.evidence.run_directory import RunDirectory, append_json_line, update_latest
from verifier.evidence.run_model import RunModel
from verifier.facts import Found
from verifier.report import write_reports
from verifier.report.dumps import program as called_as
from verifier.report.words import headline
from verifier.verdict import CheckResult, Example, Verdict, undecidable

FOUND = Found("lost-write", None, "t", 0, 3, 1, None, None, None, None, {}, excuse="election")
LOST = Example(FOUND, "acks=1: a batch is acknowledged when the leader alone has it, and is lost if that leader fails")
CLEAN = Verdict("valid", (), (), {"lost-write": CheckResult("lost-write", "valid")})
ALLOWED = Verdict("valid", (), (), {"lost-write": CheckResult("lost-write", "valid", 3, 3, (LOST,))})
INVALID = Verdict(
    "invalid", (), (), {"lost-write": CheckResult("lost-write", "invalid", 3, 0, (Example(FOUND, None),))}
)


def concluded(
    directory: Path,
    verdict: Verdict,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_terminal: bool,
    notes: Sequence[str] = (),
    is_judged: bool = True,
    **asked: Any,
) -> str:
    """The verdict that a run with these files ends with. ``notes`` are those of its brokers, one each."""
    experiment, _ = resolve(Asked(seed=3, faults="none", out=str(directory), **asked))
    model = first_record(experiment, plan(experiment), "gapless run", now_ns=5)
    run = RunDirectory.at(directory)
    record = RunRecord(run, model, SystemClock())
    write_reports(run, model, [], verdict)
    for number, note in enumerate(notes, 1):
        run.node(number).mkdir()
        (run.node(number) / "defects.jsonl").write_text(note + "\n")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    return _conclude(experiment, run, record, is_judged=is_judged, as_json=False)


@pytest.mark.parametrize("verdict", [CLEAN, ALLOWED])
def test_a_terminal_is_told_what_the_report_says(
    verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Screen and report have one sentence: allowed losses are never called none."""
    assert concluded(tmp_path / "run", verdict, monkeypatch, is_terminal=True) == "valid"
    err = capsys.readouterr().err
    assert f"{headline(verdict)} See a run that is invalid: make demo-red\n" in err
    assert headline(verdict) in (tmp_path / "run" / "report.html").read_text()
    assert ("3 acknowledged records lost, which acks=1 allows" in err) == (verdict is ALLOWED)
    assert ("Nothing acknowledged was lost" in err) == (verdict is CLEAN)


@pytest.mark.parametrize(("verdict", "status", "is_kept"), [(CLEAN, 0, False), (INVALID, 1, True)])
def test_a_run_that_is_judged_later_is_left_as_any_other(
    verdict: Verdict, status: int, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it keeps its data and has no exit status, whatever the files say."""
    run = RunDirectory(tmp_path / "run")
    later = undecidable("not judged yet")
    assert concluded(run.path, later, monkeypatch, is_terminal=False, is_judged=False, keep="none") == "unknown"
    (run.node(1) / "data").mkdir(parents=True)
    assert is_unjudged(run) is False and run.read_run()["exit_status"] is None
    run.seal_json.touch()
    assert is_unjudged(run)
    write_reports(run, RunModel.from_json(run.read_run()), [], verdict)
    settle(run, "failed")
    assert run.read_run()["exit_status"] == status and is_judged(run) and not is_unjudged(run)
    assert (run.node(1) / "data").exists() == is_kept


@pytest.mark.parametrize(
    ("verdict", "is_terminal", "asked"),
    [(CLEAN, False, {}), (INVALID, True, {}), (CLEAN, True, {"defects": ("lose-acked:0.25",)})],
)
def test_the_hint_is_for_people_whose_run_was_green(
    verdict: Verdict,
    is_terminal: bool,
    asked: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No file or pipe gets it, and no run that is invalid or has a planted defect."""
    assert concluded(tmp_path / "run", verdict, monkeypatch, is_terminal=is_terminal, **asked) == verdict.verdict
    assert "demo-red" not in capsys.readouterr().err


def test_an_invalid_run_shows_an_example_and_what_was_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The screen convinces by itself: what was found at which offset, and what the broken brokers noted they did."""
    lost = replace(FOUND, stream=3, sequence=7, offset=9)
    gap = replace(lost, check="log-gap", cause="offsets", detail={"hole_start": 9, "hole_end": 10})
    led = CheckResult("log-gap", "invalid", 1, 0, (Example(gap, None),), "lost-write")
    found = CheckResult("lost-write", "invalid", 3, 0, (Example(lost, None),))
    verdict = Verdict("invalid", ("lost-write: 3",), (), {"lost-write": found, "log-gap": led})

    notes = ['{"defect": "lose-acked", "count": 2}', '{"defect": "lose-acked", "count": 1}']
    assert concluded(tmp_path / "run", verdict, monkeypatch, is_terminal=False, notes=notes) == "invalid"
    assert [line.strip() for line in capsys.readouterr().err.splitlines()] == [
        "lost-write: 3",
        f"for example: {Example(lost, None).text}",
        "planted: lose-acked took effect 2 times, on 3 records, as the brokers noted (nodes/*/defects.jsonl)",
    ]
    doubted = verdict.doubted("harness overloaded")
    assert concluded(tmp_path / "doubted", doubted, monkeypatch, is_terminal=False) == "invalid"
    told = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert (told[0], told[-1]) == ("lost-write: 3", "in doubt: harness overloaded"), "it is no anomaly"
    assert concluded(tmp_path / "torn", CLEAN, monkeypatch, is_terminal=False, notes=["?"]) == "valid"
    assert capsys.readouterr().err == "  planted: nodes/1/defects.jsonl cannot be read\n"


@pytest.mark.parametrize(
    ("option", "shown"), [(["-q"], []), (["-v"], ["INFO gapless: run ", "expects to write"]), ([], ["expects to"])]
)
def test_quiet_and_verbose(
    option: list[str],
    shown: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """-q shows nothing but how it ends, -v the log, with progress among it; run.log has all of it either way."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])

    async def fails(*_: object) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(session, "check_outside", lambda _: None)
    monkeypatch.setattr(session, "_conduct", fails)
    assert run_command(["run", "--faults", "none", "--out", str(tmp_path / "run"), *option]) == 255
    err = capsys.readouterr().err
    assert [part for part in shown if part not in err] == []
    if option == ["-q"]:
        (line,) = err.splitlines()
        assert line.startswith("gapless: the harness itself failed: RuntimeError: no more; see ")
    assert ("INFO" in err) == (option == ["-v"])
    assert "expects to write" in (tmp_path / "run" / "run.log").read_text()
    for handler in logging.getLogger().handlers:
        handler.close()


def test_latest_is_the_newest_run_however_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that the harness failed over (255) is the newest: nobody reads the verdict of the one before for it.

    Its line on the screen names its log, and one with --out leaves the link alone.
    """
    monkeypatch.chdir(tmp_path)
    before = tmp_path / "results" / "run" / "before"
    before.mkdir(parents=True)
    update_latest(RunDirectory(before), "results")

    # the run logs into files of its own; the handlers that are there now come back with the end of this test
    monkeypatch.setattr(logging.getLogger(), "handlers", [])

    async def fails(*_: object) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(session, "check_outside", lambda _: None)
    monkeypatch.setattr(session, "_conduct", fails)
    latest = tmp_path / "results" / "latest"
    assert run_command(["run", "--faults", "none", "--out", "apart"]) == 255
    assert latest.resolve() == before
    assert f"RuntimeError: no more; see {tmp_path}/apart/run.log\n" in capsys.readouterr().err
    assert run_command(["run", "--faults", "none"]) == 255
    assert latest.resolve() != before
    assert (latest / "run.json").is_file()
    assert f"see {latest.resolve()}/run.log" in capsys.readouterr().err
    for handler in logging.getLogger().handlers:
        handler.close()


def test_the_command_that_is_printed_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gapless where this environment's is on PATH; else, also if another one's is, the path of ours, wherever pip put

    it; from the directory of the sources it is .venv/bin/gapless.
    """
    for name in ("own one", "other", "sources/.venv/bin"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "gapless").write_text("")
        (tmp_path / name / "gapless").chmod(0o755)
    monkeypatch.chdir(tmp_path / "sources")
    own = f"'{tmp_path}/own one/gapless'"
    for executable, path, word in (
        ("own one", "own one", "gapless"),
        ("own one", "other", own),
        ("own one", "absent", own),
        ("sources/.venv/bin", "absent", ".venv/bin/gapless"),
        ("absent", "other", ".venv/bin/gapless"),
    ):
        monkeypatch.setattr(sys, "executable", str(tmp_path / executable / "python"))
        monkeypatch.setenv("PATH", str(tmp_path / path))
        printed = command(["verify", "a b"])
        assert printed == f"{word} verify 'a b'"
        assert called_as(printed) == word, "and so do the report's own commands"


@pytest.mark.parametrize(
    ("arguments", "hint", "as_module"),
    [
        (["run", "-t", "30"], "run --help", True),
        (["verify", "--no-such-option"], "verify --help", False),
        (["frobnicate"], "--help", True),
        (["--seed", "7"], "--help", False),
    ],
)
def test_a_refusal_names_the_program_that_was_called(
    arguments: list[str], hint: str, as_module: bool, tmp_path: Path
) -> None:
    """Its hint can be pasted: ``python -m`` where we were called that way, the path of ours where PATH lacks it."""
    module = [sys.executable, "-m", "chaos.commands.main"]
    script = [sys.executable, "-c", "from chaos.commands.main import main; main()"]
    own = Path(sys.executable).with_name("gapless")
    argv, program = module, module
    if not as_module:
        argv, program = script, [str(own) if own.is_file() else ".venv/bin/gapless"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([*argv, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 254
    assert done.stderr.endswith(f"(see '{shlex.join(program)} {hint}')\n"), done.stderr


@pytest.mark.parametrize("name", ["my exp", "größe", "it's 50% [x]", "数据"])
def test_a_name_is_a_directory_as_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With spaces and letters of any kind, in a directory that has them too; nothing else is made beside it."""
    (tmp_path / "a dir, größe").mkdir()
    monkeypatch.chdir(tmp_path / "a dir, größe")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])

    async def fails(*_: object) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(session, "check_outside", lambda _: None)
    monkeypatch.setattr(session, "_conduct", fails)
    assert run_command(["run", "--faults", "none", "--seed", "3", "--name", name]) == 255
    assert {path.name for path in Path("results").iterdir()} == {"latest", name}
    assert (Path("results/latest").resolve()).parent == Path("results", name).resolve()
    assert [path.name for path in tmp_path.iterdir()] == ["a dir, größe"]
    repro = shlex.split(RunDirectory(Path("results/latest").resolve()).read_run()["repro"])
    assert repro[1:2] == ["run"] and repro[repro.index("--name") + 1] == name
    assert "no more" in capsys.readouterr().err
    for handler in logging.getLogger().handlers:
        handler.close()


def test_a_run_writes_down_what_it_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For programs, the same in words for people, and a line on the screen."""
    run = RunDirectory.at(tmp_path / "run")
    run.node(1).mkdir()
    append_json_line(run.control_jsonl(1), {"event": "producer-ids", "monotonic_ns": 1})
    session._tell_reached(run, Progress(SystemClock()))
    written = json.loads((run.path / "reached.json").read_text())
    assert Reached.from_json(written) == Reached(producer_id_blocks=1)
    assert written["figures"] == {"producer-id blocks": "1"}
    assert "reached: producer-id blocks: 1" in capsys.readouterr().err


def test_a_run_that_is_judged_says_that_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As 'gapless verify' does, while the verifier is silent: since when, and where its log is."""

    async def nothing(*_: object) -> None: ...

    def judged(_supervisor: object, directory: RunDirectory, _master: str, look: Callable[[], None] = int) -> None:
        look()
        write_unjudged(directory, "nothing ran")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(long_wait, "SILENT_MS", 0)
    for name, stand_in in (("check_outside", lambda _: None), ("_conduct", nothing), ("run_verifier", judged)):
        monkeypatch.setattr(session, name, stand_in)
    assert run_command(["run", "--seed", "3", "--out", "here"]) == 2
    lines = capsys.readouterr().err.splitlines()
    (at,) = (number for number, line in enumerate(lines) if "  verify: Spark on " in line)
    where = tmp_path / "here"
    assert lines[at + 1].endswith(f"s  judging {where}: 0 s so far; the log is {where}/verifier.log")
    for handler in logging.getLogger().handlers:
        handler.close()
