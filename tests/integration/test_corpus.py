"""The corpus of runs that failed once: its form, how it is collected, and each of its runs, which has to be valid."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.experiment.asked import Asked
from chaos.schedules.model import Injection, Schedule, to_yaml
from tests.chaos.replay.test_stored_run import make_run
from tests.integration.corpus import FILE, HEADER, Entry, form, kept, main, parse
from tests.support.leftovers import Place
from tests.support.require import require
from verifier.evidence.run_directory import RunDirectory, write_json_atomic

RUN_S = 900.0
KILL = Injection(4.0, "kill-leader", 2.0, {"partition": 1})
ENTRY = Entry("night-1", ("lost-write",), ("--seed", "7", "--rate", "93"), Schedule(7, (replace(KILL, replays=3),)))


@pytest.mark.full
@pytest.mark.integration
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("entry", kept(), ids=lambda entry: entry.origin)
def test_what_failed_once_is_valid(entry: Entry, tmp_path: Path) -> None:
    """Its bug is mended, and did not come back."""
    require("java")
    with Place(tmp_path) as place:
        status = place.run(*entry.arguments(tmp_path), timeout_s=RUN_S)
        assert status == 0, place.out + place.err


def test_the_file_can_be_read_and_is_as_it_is_written() -> None:
    """The committed one too: what is collected next changes nothing else in it."""
    assert FILE.read_text(encoding="utf-8") == form(kept())
    entries = [ENTRY, Entry("night-2", ("stale-read", "log-gap"), ("--seed", "8", "--faults", "none"), None)]
    assert parse(form(entries)) == entries
    assert form([]) == f"{HEADER}entries: []\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "a corpus is a mapping"),
        ("entries: [{from: a}]", "entry 1 must have"),
        ("entries: [{from: a, found: [b], options: [c], seed: 7}]", "entry 1 must have"),
        ("entries: [{from: a, found: [b], options: [7]}]", "lists of texts"),
        ("entries: [{from: a, found: [], options: [c]}]", "lists of texts"),
        ("entries: [{from: a, found: [b], options: [--defect, c]}]", "--defect is not for a corpus"),
        ("entries: [{from: a, found: [b], options: [c], schedule: {seed: 7}}]", "entry 1: a schedule"),
        (
            "entries: [{from: a, found: [b], options: [c]}, {from: a, found: [b], options: [d]}]",
            "a is there twice",
        ),
    ],
)
def test_what_is_no_corpus_is_refused(text: str, said: str) -> None:
    """A test that silently plays nothing holds nothing."""
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_an_entry_is_played_as_a_run(tmp_path: Path) -> None:
    """Its options, with its schedule as a file."""
    *options, path = ENTRY.arguments(tmp_path)
    assert options == ["run", "--seed", "7", "--rate", "93", "--schedule"]
    assert ENTRY.schedule is not None and Path(path).read_text() == to_yaml(ENTRY.schedule)


def _red(path: Path, asked: Asked, verdict: str = "invalid", **given: Any) -> RunDirectory:
    run = make_run(path, asked, **given)
    count = 3 if verdict == "invalid" else 0
    checks = {
        "lost-write": {"count": count, "allowed_count": 0},
        "log-gap": {"count": count, "allowed_count": 0, "explained_by": "lost-write"},
    }
    write_json_atomic(run.verdict_json, {"verdict": verdict, "checks": checks})
    return run


def _shrunk(path: Path, play: list[str] | None) -> None:
    path.mkdir(parents=True)
    best = None if play is None else {"events": 1, "play": play}
    write_json_atomic(path / "shrink.json", {"anomalies": ["lost-write"], "best": best})
    (path / "schedule.yaml").write_text("# A story.\n" + to_yaml(Schedule(7, (KILL,))))


def test_a_red_night_is_collected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of each invalid run the smallest that failed, or all of it; once; nothing that was planted or is valid."""
    night, asked = tmp_path / "night", Asked(seed=7, rate=400, time_limit_s=20.0)
    for name in ("shrunk", "whole", "calm", "not-again", "planted", "valid", "torn"):
        defects = ("lose-acked:0.5",) if name == "planted" else ()
        verdict = "valid" if name == "valid" else "invalid"
        mine = replace(asked, seed=len(name), defects=defects)
        _red(night / "cells" / name, mine, verdict, **({"struck_s": {}} if name == "calm" else {}))
    (night / "cells" / "torn" / "schedule.yaml").write_text("injections: [")
    _shrunk(night / "shrunk" / "shrunk", ["run", "--seed", "6", "--schedule", "gone/schedule.yaml", "--rate", "93"])
    _shrunk(night / "shrunk" / "not-again", None)
    file = tmp_path / "corpus.yaml"
    assert main([str(night), "--file", str(file)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert sorted(line for line in said if line.startswith("taken")) == [
        f"taken: {name}: lost-write" for name in ("calm", "not-again", "shrunk", "whole")
    ]
    assert sum("planted on purpose" in line for line in said) == 1
    assert sum("torn cannot be played again" in line for line in said) == 1
    assert len(said) == 6
    entries = {entry.origin: entry for entry in parse(file.read_text())}
    assert entries["shrunk"].options == ("--seed", "6", "--rate", "93")
    assert entries["shrunk"].schedule == Schedule(7, (KILL,))
    assert entries["whole"].options[:2] == ("--seed", "5") and "--rate" in entries["whole"].options
    assert [each.at_s for each in entries["whole"].schedule.injections] == [4.25]  # type: ignore[union-attr]
    assert entries["calm"].schedule is None and "none" in entries["calm"].options
    text = file.read_text()
    assert main([str(night), "--file", str(file)]) == 0
    assert file.read_text() == text and "taken" not in capsys.readouterr().out.replace("not taken", "")


def test_a_single_run_is_collected_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also what shrinking it left; anything else is said, and the file stays as it is."""
    run = _red(tmp_path / "red", Asked(seed=7, time_limit_s=20.0))
    file = tmp_path / "corpus.yaml"
    assert main([str(run.path), "--file", str(file)]) == 0
    _shrunk(tmp_path / "small", ["run", "--seed", "7", "--schedule", "x.yaml"])
    assert main([str(tmp_path / "small"), "--file", str(file)]) == 0
    assert [entry.origin for entry in parse(file.read_text())] == ["red", "small"]
    text = file.read_text()
    _shrunk(tmp_path / "nothing", None)
    fine = _red(tmp_path / "fine", Asked(seed=7), "valid")
    capsys.readouterr()
    for path, why in ((tmp_path / "nothing", "did not fail again"), (fine.path, "is valid"), (tmp_path, "cannot be")):
        assert main([str(path), "--file", str(file)]) == 1
        assert why in capsys.readouterr().err
    assert file.read_text() == text
    assert json.loads((fine.path / "verdict.json").read_text())["verdict"] == "valid"
