"""``gapless verify`` over several paths and over histories, and ``gapless export``; without Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.commands import verifier_process as judging
from chaos.commands.main import run_command
from cluster.process.invocation import program
from tests.support.settings import settings
from tests.support.stories import clean
from tests.verifier.operations.histories import Line
from tests.verifier.operations.planted import PAIRS, history
from verifier.evidence import seal
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
    assert repro == f"repro: {program()} verify {path}"
    assert "lost-write: a value that was written is missing before one that was read (1); it explains unseen (1)" in err
    assert "note: a client-only verdict cannot see what the brokers stored" in err
    assert "  for example: key 1: 7, sent by operation 5 (process 0), is at offset 0 and was not read" in err
    assert err.count("for example: ") == 1


def test_a_cycle_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each anomaly with its first example, a cycle step by step; none of what is allowed."""
    path = edn(tmp_path / "history.edn", PAIRS["G1c"].wrong)
    assert run_command(["verify", str(path)]) == 1
    assert "  for example: a cycle of 2 of 2 connected operations: operation " in capsys.readouterr().err
    assert run_command(["verify", str(path), "--ww-deps"]) == 0
    assert "for example" not in capsys.readouterr().err


def test_one_history_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One path prints one object with the form of verdict.json; options are taken over and shown."""
    path = edn(tmp_path / "history.edn", PAIRS["poll-skip"].wrong)
    argv = ["verify", str(path), "--json", "--sub-via", "assign,subscribe", "--ww-deps", "--no-txn"]
    assert run_command(argv) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["verdict"], told["checks"]["poll-skip"]["allowed"], told["path"]) == ("valid", True, str(path))
    assert told["options"] == {"sub_via": ["assign", "subscribe"], "ww_deps": True, "txn": False}
    assert f"repro: {program()} verify" in err and "--sub-via assign,subscribe --ww-deps --no-txn" in err


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


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("empty.jsonl", "", "the history is empty: it has no operation of a client, and there is nothing to judge"),
        ("blank.edn", "\n", "the history is empty: it has no operation of a client, and there is nothing to judge"),
        ("array.json", "[]", "the history is empty: it has no operation of a client, and there is nothing to judge"),
        ("torn.jsonl", '{"process": 0}\n{"proc', "the history cannot be read: "),
    ],
)
def test_nothing_to_judge(
    name: str, text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unknown, for one reason, and no list of what the verdict could not see: nothing was seen, and nothing counted."""
    path, out = tmp_path / name, tmp_path / "out"
    path.write_text(text)
    assert run_command(["verify", str(path), "--out", str(out)]) == 2
    told, err = capsys.readouterr()
    assert told.splitlines()[0] == "RESULT unknown acked=? read=? anomalies=? allowed=?"
    assert err.count("\n") == 1 and err.startswith(f"  {reason}")
    assert "cannot see" not in (out / "summary.md").read_text()
    assert run_command(["verify", str(path), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["notes"] == []


def pruned(path: Path, state: str = "valid") -> RunDirectory:
    """A run that was judged, and whose brokers' data was then removed."""
    run = clean().write(path)
    told_verdict(run, state)
    verdict = json.loads(run.verdict_json.read_text())
    verdict["stats"]["seal"] = seal.read(run).digest
    write_json_atomic(run.verdict_json, verdict)
    write_json_atomic(run.run_json, {**run.read_run(), "ended": "2026-01-01T12:00:00+00:00"})
    for broker in run.broker_ids():
        shutil.rmtree(run.node(broker) / "data")
    return run


def test_a_run_whose_data_was_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It cannot be judged again: unknown, with what its record says; the record stays, what is left fits the seal."""
    run = pruned(tmp_path / "run")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert run_command(["verify", str(run.path)]) == 2
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "RESULT unknown seed=1 acked=? read=? anomalies=? allowed=?"
    assert [line.strip() for line in err.splitlines()] == [
        "not judged again: the replicas' data was removed after the run (--keep all keeps it)",
        "it was valid when it was judged at 2026-01-01T12:00:00+00:00: acked=1 read=1 anomalies=none allowed=none",
        "what is left of the evidence is as it was sealed",
    ]
    assert run_command(["verify", str(run.path), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["recorded"], told["unaltered"]) == ("unknown", "valid", True)
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    good = edn(tmp_path / "history.edn", history())
    assert run_command(["verify", str(run.path), str(good), "--json"]) == 2
    assert [json.loads(line)["path"] for line in capsys.readouterr().out.splitlines()] == [str(run.path), str(good)]


def _history_changed(run: RunDirectory) -> str:
    path = next(run.history_dir.iterdir())
    path.write_bytes(path.read_bytes()[:-1])
    (run.node(1) / "extra.log").touch()
    return f"what is left is not as it was sealed; changed: history/{path.name}; new: nodes/1/extra.log"


def _history_removed(run: RunDirectory) -> str:
    path = next(run.history_dir.iterdir())
    path.unlink()
    return f"what is left is not as it was sealed; removed: history/{path.name}"


def _unreadable_checks(run: RunDirectory) -> str:
    verdict = json.loads(run.verdict_json.read_text())
    write_json_atomic(run.verdict_json, {**verdict, "checks": [1]})
    return "it was valid when it was judged at 2026-01-01T12:00:00+00:00: its verdict.json says nothing else"


def _allowed_anomalies(run: RunDirectory) -> str:
    verdict = json.loads(run.verdict_json.read_text())
    verdict["checks"]["log-reorder"] = {"count": 173, "allowed": True, "allowed_count": 173}
    write_json_atomic(run.verdict_json, verdict)
    return "acked=1 read=1 anomalies=none allowed=log-reorder:173"


def _another_seal(run: RunDirectory) -> str:
    for broker in run.broker_ids():
        (run.node(broker) / "broker.log").write_text("x")
    seal.take(run)
    return "the seal is not the one that the recorded verdict was made with"


def _no_seal(run: RunDirectory) -> str:
    run.seal_json.unlink()
    return "it has no seal.json"


def _no_verdict(run: RunDirectory) -> str:
    run.verdict_json.write_text("{")
    return "no verdict is recorded: verdict.json is absent or cannot be read"


#: What is done to such a run, and whether the evidence that is left is still as it was sealed.
CHANGES = {
    _history_changed: False, _history_removed: False, _another_seal: False, _no_seal: False,
    _no_verdict: True, _unreadable_checks: True, _allowed_anomalies: True,
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_left_of_such_a_run_is_looked_at(
    change: Callable[[RunDirectory], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is not as it was sealed, another seal, no seal, no record: each is said, and it stays unknown."""
    run = pruned(tmp_path / "run")
    said = change(run)
    assert run_command(["verify", str(run.path)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert ("what is left of the evidence is as it was sealed" in err) == CHANGES[change]


def test_a_report_that_cannot_be_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pruned run without its report keeps its verdict: 254, and nothing is judged over it."""
    run = pruned(tmp_path / "run")
    before = run.verdict_json.read_bytes()
    assert run_command(["report", str(run.path)]) == 254
    assert "its brokers' data was removed; repeat the run with --keep all" in capsys.readouterr().err
    assert run.verdict_json.read_bytes() == before
    run.report_html.touch()
    assert run_command(["report", str(run.path)]) == 0
    other = {**json.loads(before), "stats": {"seal": "of other evidence"}}
    run.verdict_json.write_text(json.dumps(other))
    assert run_command(["report", str(run.path)]) == 254, "a verdict on other evidence is none"


def test_options_of_histories_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--ww-deps over run directories alone is a mistake, and is refused before anything is started."""
    run = clean().write(tmp_path / "run")
    assert run_command(["verify", str(run.path), "--ww-deps"]) == 254
    assert "work only with operation histories" in capsys.readouterr().err


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

    def judge_all(directories: list[RunDirectory], spark_master: str, said: judging.Said, *, quiet: bool) -> None:
        asked.append((len(directories), spark_master))
        for each in directories[:2]:
            told_verdict(each, "valid")
            said(each, None)
        for each in directories[2:]:
            said(each, "Spark did not start")

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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was judged before stays, the run it died over is unknown, and another process judges the others."""
    runs = [clean().write(tmp_path / name) for name in ("one", "two", "three")]
    started = []

    def run_job(
        supervisor: object, directories: list[RunDirectory], master: str, options: list[str], look: Callable[[], None]
    ) -> judging._VerifierEnded:
        started.append([each.path.name for each in directories])
        look()
        # the first time it dies over the second run
        line = json.dumps({"run": str(directories[0].path), "error": None, "refused": False})
        directories[0].verdict_json.write_text('{"verdict": "valid"}')
        Path(options[1]).write_text(line + "\n")
        look()
        return judging._VerifierEnded(-9 if len(directories) == 3 else 0, 900.0, "", "its log")

    monkeypatch.setattr(judging, "_run_job", run_job)
    told = judging.judge_all(runs, "local[2]")
    assert started == [["one", "two", "three"], ["three"]]
    assert [told[run] for run in runs] == [None, None, None]
    verdict = json.loads(runs[1].verdict_json.read_text())
    assert verdict["verdict"] == "unknown"
    assert verdict["reasons"] == ["the verifier was killed by signal 9 (SIGKILL); see its log"]
    told_lines = capsys.readouterr().err.splitlines()
    states = ("valid", "unknown", "valid")
    assert told_lines == [f"judged {n} of 3: {run.path}: {states[n - 1]}" for n, run in enumerate(runs, start=1)]
    assert judging.judge_all(runs, "local[2]", quiet=True) == told
    assert capsys.readouterr().err == "", "how far it is is not said to who wants quiet"


def test_what_was_judged_before_an_interrupt_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """RESULT lines come as soon as a run is judged; the run at work keeps its verdict, and the status is 130."""
    runs = [clean().write(tmp_path / name) for name in ("one", "two", "three")]
    path = edn(tmp_path / "history.edn", PAIRS["G1a"].wrong)
    told_verdict(runs[1], "valid")
    before = runs[1].verdict_json.read_bytes()
    said = []

    def run_job(
        supervisor: object, directories: list[RunDirectory], master: str, options: list[str], look: Callable[[], None]
    ) -> judging._VerifierEnded:
        told_verdict(directories[0], "invalid")
        Path(options[1]).write_text(
            json.dumps({"run": str(directories[0].path), "error": None, "refused": False}) + "\n"
        )
        look()
        said.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    monkeypatch.setattr(judging, "_run_job", run_job)
    monkeypatch.setattr("chaos.commands.verify.check_java", lambda: None)
    assert run_command(["verify", str(runs[0].path), str(path), *(str(run.path) for run in runs[1:])]) == 130
    results = [line.split()[:2] for line in said[0].splitlines() if line.startswith("RESULT")]
    assert results == [["RESULT", "invalid"], ["RESULT", "invalid"]], "the history behind the first run, too"
    out, err = capsys.readouterr()
    assert "RESULT" not in out
    assert f"{runs[1].path}: interrupted, and not judged again: what is left is the previous verdict, valid" in err
    assert "interrupted: 1 of 3 runs were judged" in err
    assert runs[1].verdict_json.read_bytes() == before
    assert not runs[2].verdict_json.exists()


DAMAGE = {
    "": "run.json: not valid JSON (line 1, column 1",
    "{": "run.json: not valid JSON (line 1, column 2",
    "[]": "run.json cannot be read: it is not a JSON object in UTF-8; restore the original",
    "{}": "run.json: name is absent; the file is not as the run left it: restore the original",
    None: "run.json was removed; the rest of a run is there: restore the original",
}


@pytest.mark.parametrize("text", DAMAGE)
def test_a_damaged_run_json_is_damaged_evidence(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unknown, as any other damage; what stands beside it in a list is judged, and nothing is written."""
    run, good = clean().write(tmp_path / "run"), edn(tmp_path / "history.edn", history())
    told_verdict(run, "valid")
    run.run_json.unlink()
    if text is not None:
        run.run_json.write_text(text)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert run_command(["verify", str(run.path), str(good)]) == 2
    out, err = capsys.readouterr()
    results = [line for line in out.splitlines() if line.startswith("RESULT")]
    assert results[0] == "RESULT unknown acked=? read=? anomalies=? allowed=?"
    assert results[1].startswith("RESULT valid ")
    assert f"{run.path}/{DAMAGE[text]}" in err
    assert "what is left is the previous verdict, valid" in err
    assert run_command(["verify", str(run.path), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["path"], told["run_dir"]) == ("unknown", str(run.path), str(run.path))
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


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


def _history_removed(run: RunDirectory) -> str:
    run.history("producer-1").unlink()
    return "run.json declares history/producer-1.arrow, but there is no such file"


def _history_cut(run: RunDirectory) -> str:
    path = run.history("producer-1")
    path.write_bytes(path.read_bytes()[:-700])
    return "altered since the run was sealed: history/producer-1.arrow (changed)"


def _history_cut_unsealed(run: RunDirectory) -> str:
    _history_cut(run)
    run.seal_json.unlink()
    return "history/producer-1.arrow has no end, and run.json does not say that producer-1 was killed"


def _history_damaged_unsealed(run: RunDirectory) -> str:
    path = run.history("producer-1")
    data = bytearray(path.read_bytes())
    data[0] ^= 0xFF
    path.write_bytes(data)
    run.seal_json.unlink()
    return "producer-1.arrow"


@pytest.mark.parametrize("change", [_history_removed, _history_cut, _history_cut_unsealed, _history_damaged_unsealed])
def test_histories_that_are_not_whole_are_not_exported(
    change: Callable[[RunDirectory], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without them a correct cluster would look faulty: refused with what is wrong, and no file is left."""
    run = clean().write(tmp_path / "run")
    wrong = change(run)
    assert run_command(["export", str(run.path), "--jsonl", "--out", str(tmp_path / "a.jsonl")]) == 254
    line = capsys.readouterr().err.splitlines()[-1]
    assert wrong in line and "a correct cluster would look faulty" in line
    assert not (tmp_path / "a.jsonl").exists()


def test_the_history_of_a_killed_process_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run ended it without its end; that is told."""
    story = clean()
    story.torn = {"producer-1"}
    run = story.write(tmp_path / "run")
    plain = run.read_run()
    children = [each | {"exit_code": -9 if each["name"] == "producer-1" else 0} for each in plain["children"]]
    write_json_atomic(run.run_json, plain | {"children": children})
    seal.take(run)
    assert run_command(["export", str(run.path), "--jsonl", "--out", str(tmp_path / "a.jsonl")]) == 0
    assert "note: the run killed producer-1" in capsys.readouterr().err


def test_a_run_without_a_seal_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was broken off, or the seal was removed: whole histories are exported, and the doubt is told."""
    run = clean().write(tmp_path / "run")
    run.seal_json.unlink()
    assert run_command(["export", str(run.path), "--jsonl", "--out", str(tmp_path / "a.jsonl")]) == 0
    assert (
        "cannot tell whether the histories are as the run left them: there is no seal.json" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("forms", "said"), [([], "add --edn or --jsonl (see"), (["--edn", "--jsonl"], "--edn or --jsonl, not both (see")]
)
def test_an_export_has_one_form(
    forms: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None and both are different mistakes, and told as such."""
    run = clean().write(tmp_path / "run")
    assert run_command(["export", str(run.path), *forms]) == 254
    out, err = capsys.readouterr()
    assert (out, said in err) == ("", True), err


def test_excuses_do_not_travel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """acks=1 may lose what an election cuts off; the export says that its verdict does not know."""
    story = clean()
    story.settings = settings(acks="1", idempotence=False)
    run = story.write(tmp_path / "run")
    assert run_command(["export", str(run.path), "--edn", "--out", str(tmp_path / "a.edn")]) == 0
    err = capsys.readouterr().err
    assert "may excuse lost-write" in err
    [note] = [line for line in err.splitlines() if "may excuse" in line]
    assert "which an export cannot show: " in note and f"verify {run.path}' judges that" in note
    assert len(note) - len(str(run.path)) < 200
    story.settings = settings(acks="all", client="native")
    run = story.write(tmp_path / "other")
    assert run_command(["export", str(run.path), "--edn", "--out", str(tmp_path / "b.edn")]) == 0
    assert "may excuse" not in capsys.readouterr().err
    story.faults_requested = ["elect-unclean"]
    run = story.write(tmp_path / "ordered")
    assert run_command(["export", str(run.path), "--edn", "--out", str(tmp_path / "c.edn")]) == 0
    assert "the run's settings and faults may excuse lost-write" in capsys.readouterr().err
