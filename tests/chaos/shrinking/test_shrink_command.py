"""``gapless shrink`` on a stored run made by hand; its tries are written instead of run."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.commands import shrink as command
from chaos.commands.main import run_command
from chaos.experiment.asked import Asked
from chaos.schedules.model import Injection, from_yaml
from cluster.seams.clock import SystemClock
from tests.chaos.replay.test_stored_run import make_run
from verifier.evidence.run_directory import RunDirectory, write_json_atomic

CUT = Injection(12.0, "cut-link", 2.0, {"partition": 1})
PLANNED = tuple(
    Injection(4.0 + 7 * number, "kill-leader" if number != 3 else "cut-link", 2.0, {"partition": number % 6})
    for number in range(8)
)


def _verdict(**found: int) -> dict[str, Any]:
    names = ("lost-write", "duplicate", "stale")
    checks = {
        name: {"count": found.get(name.replace("-", "_"), 0), "allowed_count": 0, "examples": []} for name in names
    }
    return {"verdict": "invalid" if found else "valid", "checks": checks}


class Tried:
    """Takes the place of runs: writes the verdict of each, by its schedule; ``stop_at`` interrupts that one."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.schedules: list[list[str]] = []
        self.options: list[list[str]] = []
        self.left: list[str] = []
        self.stop_at = stop_at

    def made(self, *_: Any, **__: Any) -> Tried:
        return self

    def conduct(self, _name: str, argv: Sequence[str], _log: Path, left: Callable[[float], str]) -> int:
        self.left.append(left(1.0))
        schedule = from_yaml(Path(argv[argv.index("--schedule") + 1]).read_text())
        self.schedules.append([each.fault for each in schedule.injections])
        self.options.append(list(argv))
        if len(self.schedules) == self.stop_at:
            raise KeyboardInterrupt
        found = {"lost_write": 3} if "cut-link" in self.schedules[-1] and len(self.schedules[-1]) > 1 else {}
        run = RunDirectory.at(argv[argv.index("--out") + 1])
        write_json_atomic(run.verdict_json, _verdict(**found))
        return 1 if found else 0


class VirtualClock(SystemClock):
    """A clock that goes on only when it is put forward."""

    now_ms = 0

    def monotonic_ms(self) -> int:
        return self.now_ms


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(command, "check_outside", lambda _: None)
    monkeypatch.setattr(command, "Supervisor", lambda *_: nullcontext())
    yield
    for handler in logging.getLogger().handlers:
        handler.close()


def _stored(path: Path, **found: int) -> RunDirectory:
    run = make_run(path, Asked(seed=7, rate=400, time_limit_s=70.0), PLANNED, {n: 4.5 + 7 * n for n in range(8)})
    write_json_atomic(run.verdict_json, _verdict(**found))
    return run


def test_a_run_is_shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """To the faults that it needs, and to less time and load; schedule, test and record are there, and one run."""
    run, tried = _stored(tmp_path / "run", lost_write=9), Tried()
    monkeypatch.setattr(command, "ChildRuns", tried.made)
    assert run_command(["shrink", str(run.path), "--out", "small", "-q"]) == 0
    out = capsys.readouterr().out.splitlines()
    count = len(tried.schedules)
    assert out[0] == f"SHRUNK 8 faults to 2 in {count} runs"
    assert tried.left[0].startswith("59 runs left after it")
    assert out[1].startswith("before: failed in 3 of 3 tries: 8 faults (kill-leader at 4.5 s, ")
    assert out[2].startswith("after: failed in 3 of 3 tries: 2 faults (")
    assert tried.schedules[:3] == [[each.fault for each in PLANNED]] * 3
    small = Path("small")
    schedule = from_yaml((small / "schedule.yaml").read_text())
    assert sorted(schedule.kinds()) == ["cut-link", "kill-leader"]
    assert schedule.seed == 7 and all(each.replays in range(8) for each in schedule.injections)
    test = (small / "test_lost_write.py").read_text()
    assert "'--rate', '25'" in test.replace('"', "'")
    whole = json.loads((small / "shrink.json").read_text())
    assert whole["runs"] == count == len(whole["tries"])
    assert whole["best"]["events"] == 2 and whole["events_before"] == 8
    assert whole["before"] == whole["after"] == {"tries": 3, "failed": 3, "without_verdict": 0}
    assert [path.name for path in (small / "tries").iterdir()] == [f"{count:03d}"], (
        "of all runs the newest failure is kept"
    )
    assert all("--seed" in argv and argv[argv.index("--seed") + 1] == "7" for argv in tried.options)


def test_an_interrupt_leaves_the_smallest_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """130, with a schedule of what had failed by then; before anything has failed, with none.

    What was not tried is said so, and the files say it, too; the try that was interrupted is gone.
    """
    run, tried = _stored(tmp_path / "run", lost_write=9), Tried(stop_at=6)
    monkeypatch.setattr(command, "ChildRuns", tried.made)
    assert run_command(["shrink", str(run.path), "--out", "small", "-q"]) == 130
    out = capsys.readouterr().out
    assert "SHRUNK 8 faults to 5 in 5 runs\n" in out
    assert "after: failed when it was found, and was not tried again: 5 faults" in out
    said = "The whole run failed in 3 of 3 tries. This failed when it was found, and was not tried again."
    assert said in Path("small/schedule.yaml").read_text()
    assert len(from_yaml(Path("small/schedule.yaml").read_text()).injections) == 5
    monkeypatch.setattr(command, "ChildRuns", Tried(stop_at=4).made)
    assert run_command(["shrink", str(run.path), "--out", "whole", "-q"]) == 130
    out = capsys.readouterr().out
    assert out.startswith("NOT SHRUNK in 3 runs: nothing smaller was tried\nfailed in 3 of 3 tries: 8 faults")
    assert len(from_yaml(Path("whole/schedule.yaml").read_text()).injections) == 8
    said = f"the whole of {run.path}, not a smaller run ('gapless shrink': nothing smaller was tried)."
    for name in ("schedule.yaml", "test_lost_write.py"):
        text = " ".join(Path("whole", name).read_text().split())
        assert said in text and "failed in 3 of 3 tries." in text and "smallest" not in text
    monkeypatch.setattr(command, "ChildRuns", Tried(stop_at=1).made)
    assert run_command(["shrink", str(run.path), "--out", "nothing", "-q"]) == 130
    assert capsys.readouterr().out == "NOT SHRUNK: ended before the first try did\n"
    assert not Path("nothing/schedule.yaml").exists()
    assert json.loads(Path("nothing/shrink.json").read_text())["best"] is None


def test_an_interrupted_try_is_stopped_without_a_verdict_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No one reads its verdict: nobody waits for one, and the line says what becomes of it."""
    run, made = _stored(tmp_path / "run", lost_write=9), []

    class Child:
        interrupts = 0

        def is_running(self) -> bool:
            return True

        def interrupt(self) -> None:
            self.interrupts += 1

        def wait(self, _timeout_s: float) -> int | None:
            if not self.interrupts:
                raise KeyboardInterrupt
            return 2 if self.interrupts > 1 else None

    class Supervisor:
        def __init__(self) -> None:
            self.children: list[Child] = []

        def start_program(self, _name: str, argv: Sequence[str], *_: object) -> Child:
            made.append(RunDirectory.at(argv[argv.index("--out") + 1]))
            self.children.append(Child())
            return self.children[-1]

    monkeypatch.setattr(command, "Supervisor", lambda *_: nullcontext(Supervisor()))
    assert run_command(["shrink", str(run.path), "--out", "small"]) == 130
    err = capsys.readouterr().err
    assert "interrupted: the current try is stopped and thrown away; the smallest run that failed before it is" in err
    assert "judged" not in err
    (directory,) = made
    assert not directory.path.exists()


def test_a_run_that_does_not_fail_again_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another anomaly is another failure."""
    run = _stored(tmp_path / "run", lost_write=9, duplicate=2)
    monkeypatch.setattr(command, "ChildRuns", Tried().made)
    assert run_command(["shrink", str(run.path), "--out", "small", "-q"]) == 2
    assert capsys.readouterr().out.startswith("NOT SHRUNK: the run failed in 0 of 6 tries")
    monkeypatch.setattr(command, "ChildRuns", Tried().made)
    assert run_command(["shrink", str(run.path), "--out", "one", "-q", "--json", "--anomaly", "lost-write"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]["events"] == 2


def test_minutes_end_the_search_and_not_what_says_how_often_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """When the time is up, the smallest that failed by then is tried again as often as ever, and nothing else is.

    The line says so, and how long that takes; what is left is counted without what is not tried anymore.
    """
    run, tried, clock = _stored(tmp_path / "run", lost_write=9), Tried(), VirtualClock()

    def conduct(*given: Any) -> int:
        clock.now_ms += 60_000
        return tried.conduct(*given)

    monkeypatch.setattr(command, "SystemClock", lambda: clock)
    monkeypatch.setattr(command, "ChildRuns", lambda *_, **__: SimpleNamespace(conduct=conduct))
    assert run_command(["shrink", str(run.path), "--out", "small", "--minutes", "10"]) == 0
    out, err = capsys.readouterr()
    said = "--minutes 10: no time left to look for a smaller run; the search ends. "
    assert f"{said}To see how often the smallest run fails, at most 3 tries of it follow, about 3 min" in err
    assert "try 8/10: " in err and tried.left[7].startswith("2 runs left after it, at most 3 min")
    assert clock.now_ms == 600_000
    assert out.startswith("SHRUNK 8 faults to ") and " in 10 runs\n" in out
    assert "after: failed in 3 of 3 tries" in out
    assert [len(each) for each in tried.schedules[-3:]] == [len(tried.schedules[-1])] * 3
    stages = [each["stage"] for each in json.loads(Path("small/shrink.json").read_text())["tries"]]
    assert (stages.count("before"), stages.count("after")) == (3, 3)


@pytest.mark.parametrize(
    ("options", "runs", "said"),
    [
        (["--tries", "1", "--max-runs", "6"], 1, "no time left to look for a smaller run; the search ends"),
        (["--tries", "3"], 1, "no time left to try the run again; the search ends"),
    ],
)
def test_without_time_for_a_smaller_run_nothing_is_tried(
    options: list[str],
    runs: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing smaller was found, so there is nothing to confirm: the whole run is what is left, and is said to be."""
    run, tried, clock = _stored(tmp_path / "run", lost_write=9), Tried(), VirtualClock()

    def conduct(*given: Any) -> int:
        clock.now_ms += 148_700
        return tried.conduct(*given)

    monkeypatch.setattr(command, "SystemClock", lambda: clock)
    monkeypatch.setattr(command, "ChildRuns", lambda *_, **__: SimpleNamespace(conduct=conduct))
    assert run_command(["shrink", str(run.path), "--out", "small", "--minutes", "3", *options]) == 0
    out, err = capsys.readouterr()
    assert len(tried.schedules) == runs and err.rstrip().endswith(f"--minutes 3: {said}")
    assert out.startswith("NOT SHRUNK in 1 run: nothing smaller was tried\nfailed in 1 of 1 try: 8 faults")
    assert json.loads(Path("small/shrink.json").read_text())["not_smaller"] == "nothing smaller was tried"


def test_what_the_settings_allow_is_shrunk_to_if_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With acks=1, what loses something at all; without a name the line says how."""
    run = _stored(tmp_path / "run", lost_write=9)
    allowed = _verdict(lost_write=9)
    for check in allowed["checks"].values():
        check["allowed_count"] = check["count"]
    write_json_atomic(run.verdict_json, {**allowed, "verdict": "valid"})
    assert run_command(["shrink", str(run.path), "--out", "small", "-q"]) == 254
    assert "to shrink to what they allow, use --anomaly lost-write" in capsys.readouterr().err
    monkeypatch.setattr(command, "ChildRuns", Tried().made)
    assert run_command(["shrink", str(run.path), "--out", "small", "-q", "--anomaly", "lost-write"]) == 0
    assert "SHRUNK 8 faults to 2" in capsys.readouterr().out
    assert "# lost-write (allowed): the smallest" in Path("small/schedule.yaml").read_text()


@pytest.mark.parametrize(
    ("found", "options", "said"),
    [
        ({}, [], "is valid: nothing was found that its settings forbid; name another run"),
        ({"stale": 1}, ["--anomaly", "lost-write"], "--anomaly lost-write was not found in"),
        (
            {"stale": 1},
            ["--max-runs", "6"],
            "--max-runs 6 leaves no run to search with: --tries 3 takes 3 before and 3 after; "
            "use --max-runs 7 or more, or --tries 2 or fewer",
        ),
        (
            {"stale": 1},
            ["--max-runs", "4", "--tries", "2"],
            "use --max-runs 5 or more, or --tries 1\n",
        ),
    ],
)
def test_what_cannot_be_shrunk_is_refused(
    found: dict[str, int], options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and nothing written."""
    run = _stored(tmp_path / "run", **found)
    assert run_command(["shrink", str(run.path), *options]) == 254
    assert said in capsys.readouterr().err
    assert not Path("results").exists()


@pytest.mark.parametrize(("most", "tries"), [(7, 3), (5, 2), (3, 1)])
def test_what_the_refusal_names_is_enough(
    most: int, tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fewest runs leave one to search with."""
    run, tried = _stored(tmp_path / "run", lost_write=9), Tried()
    monkeypatch.setattr(command, "ChildRuns", tried.made)
    arguments = ["shrink", str(run.path), "--out", "small", "-q"]
    assert run_command([*arguments, "--max-runs", str(most), "--tries", str(tries)]) == 0
    assert tries < len(tried.schedules) <= most


def test_a_run_without_a_verdict_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line has the command that judges it."""
    run = _stored(tmp_path / "run")
    run.verdict_json.unlink()
    assert run_command(["shrink", str(run.path)]) == 254
    assert f"verify {run.path}" in capsys.readouterr().err
