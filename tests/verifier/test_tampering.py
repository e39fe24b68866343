"""What the evidence fuzzer can draw: every kind of file, and every way that makes sense for it. Judges no run."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from tests.evidence import sources
from tests.evidence.coverage import table
from tests.evidence.fuzzer import Outcome
from tests.evidence.judge import Judgement
from tests.evidence.kinds import KINDS, OPERATIONS, SWAP_FILES, UNITS, Kind, kind_of
from tests.evidence.tampering import Tampering, tamper, tamper_with

#: Files of a real run that no made-up one has.
REAL = (
    "verdict.json", "report.html", "summary.md", "junit.xml", "verifier.log", "live.json", "anomalies/lost-write.csv",
    "history/producers.arrow", "history/readers-native.arrow", "history/final-kafka-python.arrow",
    "loadgen/producers.json", "loadgen/readers-native_stats_history.csv", "loadgen/final-read-confluent.log",
    "loadgen/sentinel.log", "loadgen/readers-native.status.json", "nodes/zookeeper/zoo.cfg",
)  # fmt: skip
#: Tries until a way must have found something.
TRIES = 40


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    home = tmp_path_factory.mktemp("untouched")
    return [sources.write(name, home / name).path for name in sources.STORIES]


def _contents(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_every_file_of_a_run_is_of_a_kind(runs: list[Path]) -> None:
    """Whatever a run leaves may be tampered with; and no kind hides another one."""
    found = {path for run in runs for path in _contents(run)}
    strange = sorted(path for path in {*found, *REAL} if kind_of(path) is None)
    assert not strange
    several = sorted(path for path in {*found, *REAL} if sum(kind.holds(path) for kind in KINDS) > 1)
    assert not several


def test_a_kind_finds_the_files_that_it_holds(runs: list[Path]) -> None:
    """What is drawn from and what a path is told to be are the same files."""
    for run in runs:
        for kind in KINDS:
            if not kind.directories:
                told = {str(path.relative_to(run)) for path in kind.paths(run)}
                assert told == {path for path in _contents(run) if kind.holds(path)}, kind.name


def test_every_operation_is_there_at_every_unit_where_it_makes_sense() -> None:
    """What is left out is left out on purpose: a table of fixed columns loses no field of one row."""
    for kind in KINDS:
        for unit in UNITS:
            missing = {operation for operation in OPERATIONS if (unit, operation) not in kind.ways}
            if missing == set(OPERATIONS) or kind.directories or kind.name == "locks":
                continue
            packed = unit == "field" and ("row", "alter") in kind.ways and not kind.name.startswith("histor")
            assert missing == ({"remove"} if packed else set()), (kind.name, unit)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_way_can_be_drawn_and_changes_something(kind: Kind, runs: list[Path], tmp_path: Path) -> None:
    """Of one made-up run at least; and it touches nothing else than it says, but for a swapped peer."""
    copies = [Path(shutil.copytree(run, tmp_path / run.name)) for run in runs]
    whole = [_contents(run) for run in runs]
    for cell in sorted(kind.ways):
        for seed in range(TRIES):
            copy, before = copies[seed % len(runs)], whole[seed % len(runs)]
            done = tamper_with(copy, kind, cell, Random(seed))
            if done is not None:
                break
        assert done is not None, f"{kind.name}: nothing to {cell}"
        assert (done.kind, done.cell) == (kind.name, cell)
        after = _contents(copy)
        changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
        assert changed, f"{kind.name}: {cell}: {done.how}"
        if cell != SWAP_FILES:
            assert {Path(path).parts[:-1] for path in changed} == {Path(done.path).parts[:-1]} or kind.directories
        _restore(copy, before, changed)


def _restore(run: Path, before: dict[str, bytes], changed: set[str]) -> None:
    """As it was: copying all of it for each way would take most of the time."""
    for path in changed:
        (run / path).unlink(missing_ok=True)
        if path in before:
            (run / path).parent.mkdir(parents=True, exist_ok=True)
            (run / path).write_bytes(before[path])
    for folder in sorted((each for each in run.rglob("*") if each.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def test_a_seed_draws_the_same_thing_again(runs: list[Path], tmp_path: Path) -> None:
    """A false verdict can be looked at again by its seed alone."""
    for seed in range(12):
        drawn, left = [], []
        for number in range(2):
            copy = tmp_path / f"{seed}-{number}"
            shutil.copytree(runs[seed % len(runs)], copy)
            drawn.append(tamper(copy, seed))
            left.append(_contents(copy))
        assert drawn[0] == drawn[1]
        assert left[0] == left[1]


def test_the_table_counts_what_was_drawn_and_names_what_was_not() -> None:
    """By kind, unit and operation; what makes no sense is no gap."""
    tampering = Tampering("faults.jsonl", "line 1 removed", "faults", ("line", "remove"))
    every = [
        Outcome(0, "plain", Tampering("x", "y", kind.name, cell), "unknown", Judgement("unknown", ()))
        for kind in KINDS
        for cell in kind.ways
        if (kind.name, cell) != ("locks", ("byte", "alter"))
    ]
    lines = list(table([*every, Outcome(1, "plain", tampering, "falsely_valid", Judgement("valid", ()))]))
    faults = next(line for line in lines if line.startswith("faults") and " line " in line)
    assert faults.split("|")[0].split()[2:] == ["2", "1", "1", "1"]
    assert faults.split("|")[1].split() == ["4", "0", "0", "1", "0", "0"]
    assert next(line for line in lines if line.startswith("locks") and " byte " in line).split()[2:6] == list("--0-")
    assert lines[-1].endswith("never: locks: byte alter")
