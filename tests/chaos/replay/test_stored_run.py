"""``gapless replay`` on stored runs made by hand: what it would conduct, and what it refuses, each in one line."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.commands import replay as command
from chaos.commands.main import run_command
from chaos.experiment.asked import Asked
from chaos.experiment.command_line import words
from chaos.experiment.experiment import Experiment
from chaos.experiment.forms import ScheduleFile
from chaos.experiment.recorded import differences, recorded
from chaos.experiment.resolve import plan, resolve
from chaos.replay.stored_run import read_stored
from chaos.schedules.model import Injection, Schedule, to_yaml
from tests.support.settings import run_model
from verifier.evidence.run_directory import RunDirectory, append_json_line, write_json_atomic
from verifier.evidence.run_model import PhaseSpan

SECOND = 1_000_000_000
KILL = Injection(4.0, "kill-leader", 3.0, {"partition": 2})


def make_run(
    path: Path,
    asked: Asked,
    planned: Sequence[Injection] = (KILL,),
    struck_s: Mapping[int, float] | None = None,
    **model: Any,
) -> RunDirectory:
    """A run directory with what a replay reads: injections by number, and when they struck."""
    run = RunDirectory.at(path)
    record = json.loads(json.dumps(resolve(asked)[0].to_json()))
    phases = [PhaseSpan("start", 0, SECOND), PhaseSpan("chaos", SECOND, 60 * SECOND)]
    made = run_model(**{"seed": asked.seed, "experiment": record, "phases": phases, **model})
    write_json_atomic(run.run_json, made.to_json())
    run.schedule_yaml.write_text(to_yaml(Schedule(asked.seed, tuple(planned))))
    for number, at_s in ({0: 4.25} if struck_s is None else struck_s).items():
        start_ns = SECOND + int(at_s * SECOND)
        entry = {"number": number, "fault": planned[number].fault, "phase": "inject", "start_ns": start_ns}
        with run.faults_jsonl.open("a") as file:
            file.write(json.dumps({**entry, "end_ns": start_ns, "probe": {}, "waited": False}) + "\n")
    return run


ASKED = Asked(
    seed=7, acks="1", rate=321, time_limit_s=20.0, producer_config=("linger.ms=3",), readers=("native",),
    defects=("lose-acked:0.5",), broker_config=("replica.lag.time.max.ms=5000",),
)  # fmt: skip


@pytest.mark.parametrize(
    "asked",
    [
        Asked(seed=3),
        ASKED,
        Asked(seed=3, workload="bank", faults="none"),
        Asked(
            seed=3, schedule=ScheduleFile(Path("gone.yaml"), Schedule(None, (replace(KILL, overlap=True, replays=4),)))
        ),
    ],
)
def test_what_a_run_was_asked_is_read_back(asked: Asked) -> None:
    """Every option, a schedule with all of its injections too: its file may be gone."""
    assert recorded(json.loads(json.dumps(resolve(asked)[0].to_json()))) == asked


def test_what_a_profile_drew_is_asked_for_by_name() -> None:
    """A smaller schedule draws no other settings."""
    plain = json.loads(json.dumps(resolve(ASKED)[0].to_json()))
    plain["asked"]["profile"] = "historic"
    producers = {"acks": "all", "batch.size": "2000"}
    plain["resolved"]["drawn"] = {"faults": {}, "producers": producers, "topic": {"segment.bytes": "131072"}}
    asked = recorded(plain)
    assert (asked.profile, asked.acks) == ("chaos", "all")
    assert asked.producer_config == ("linger.ms=3", "batch.size=2000") and asked.topic_config == (
        "segment.bytes=131072",
    )
    assert "drawn" not in " ".join(differences(plain, resolve(asked)[0]))


def test_a_replay_asks_for_the_same_but_its_faults(tmp_path: Path) -> None:
    """Same seed, settings and load; the schedule is what happened, and the load lasts until that is over."""
    run = make_run(tmp_path / "run", ASKED, [KILL, replace(KILL, at_s=18.0)], {0: 4.25, 1: 23.0})
    of = read_stored(run)
    assert of.asked.schedule is not None
    assert [(each.at_s, each.replays) for each in of.schedule.injections] == [(4.25, 0), (23.0, 1)]
    assert of.asked == replace(ASKED, schedule=of.asked.schedule, time_limit_s=26.0)
    experiment, _ = resolve(of.asked)
    assert plan(experiment) == of.schedule
    assert differences(of.model.experiment, experiment) == []


def test_what_was_judged_later_is_judged_when_it_is_repeated(tmp_path: Path) -> None:
    """Such as a cell of a sweep: a replay or a try that is not judged would say nothing, however it went."""
    of = read_stored(make_run(tmp_path / "run", replace(ASKED, unjudged=True)))
    assert of.asked == replace(ASKED, schedule=of.asked.schedule)
    assert "--no-verify" not in words(of.asked, everything=True)


def test_what_the_same_options_come_to_now_is_compared(tmp_path: Path) -> None:
    """Another default, or a workload's file that has changed: said, with the values."""
    of = read_stored(make_run(tmp_path / "run", ASKED))
    experiment = resolve(replace(of.asked, rate=99, min_insync_replicas=1))[0]
    (line,) = differences(of.model.experiment, experiment)
    assert "workload" in line and "321" in line and "min.insync.replicas was 2 and is 1" in line


def _refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_command(["replay", *arguments]) == 254
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return err


def test_what_is_no_run_with_faults_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line: what it is, and what to do instead."""
    none = make_run(tmp_path / "none", replace(ASKED, faults="none"), (), {}, repro="gapless run --seed 7")
    calm = make_run(tmp_path / "calm", ASKED, struck_s={})
    early = make_run(tmp_path / "early", ASKED, struck_s={}, phases=[PhaseSpan("start", 0)])
    other = make_run(tmp_path / "other", ASKED, schema=99)
    torn = make_run(tmp_path / "torn", ASKED)
    torn.schedule_yaml.write_text("injections: [")
    newer = make_run(tmp_path / "newer", ASKED)
    plain = newer.read_run()
    plain["experiment"]["asked"]["gravity"] = 1
    write_json_atomic(newer.run_json, plain)
    (tmp_path / "mine.yaml").write_text(to_yaml(Schedule(7, (KILL,))))
    load = tmp_path / "load" / "loadgen"
    load.mkdir(parents=True)
    (load / "producers.load.json").write_text("{}")
    assert "was asked for no faults" in (line := _refusal(capsys, str(none.path))) and "gapless run --seed 7" in line
    assert "broke nothing, so there is nothing to replay" in _refusal(capsys, str(calm.path))
    assert "ended before its load flowed" in _refusal(capsys, str(early.path))
    assert "schema is 99" in _refusal(capsys, str(other.path))
    assert "schedule.yaml: " in (line := _refusal(capsys, str(torn.path))) and "restore the original" in line
    assert "does not know 'gravity'" in _refusal(capsys, str(newer.path))
    assert "is a schedule, not a run; play it with: " in _refusal(capsys, str(tmp_path / "mine.yaml"))
    assert "is a standalone load" in _refusal(capsys, str(tmp_path / "load"))
    assert "no such file or directory" in _refusal(capsys, str(tmp_path / "absent"))


def test_the_command_conducts_what_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a directory of its own, with a line on how punctual it was, and the command that does it again."""
    run = make_run(tmp_path / "run", ASKED)
    seen: list[tuple[Experiment, Schedule, str]] = []

    def conduct(experiment: Experiment, schedule: Schedule, warnings: list[str], repro: str, **more: Any) -> str:
        seen.append((experiment, schedule, repro))
        played = make_run(tmp_path / "played", experiment.asked, schedule.injections, {0: 4.262})
        over = {"number": 0, "fault": "kill-leader", "phase": "heal", "start_ns": SECOND + int(7.255 * SECOND)}
        append_json_line(played.faults_jsonl, over)
        assert more["more"](played) == {
            "replay": {"of": str(run.path), "events": 2, "largest_deviation_ms": 12.0, "waited": [], "missing": []}
        }
        return "invalid"

    monkeypatch.setattr(command, "conduct", conduct)
    assert run_command(["replay", str(run.path), "--out", "there", "--keep", "all"]) == 1
    assert capsys.readouterr().out == "replay: 2 events, largest deviation 12 ms\n"
    ((experiment, schedule, repro),) = seen
    assert [each.at_s for each in schedule.injections] == [4.25]
    assert (experiment.asked.name, experiment.asked.out, experiment.asked.keep) == ("replay", "there", "all")
    assert repro.endswith(f"replay {run.path}")
    logging.getLogger().handlers.clear()
