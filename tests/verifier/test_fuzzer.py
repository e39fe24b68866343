"""The evidence fuzzer in the gate: 100 seeds, the classic doctored runs, and every equivalent. Judged in one audit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evidence import sources
from tests.evidence.equivalents import SEALED
from tests.evidence.fuzzer import Outcome, classify, draw, outcomes
from tests.evidence.judge import Judgement, judge
from tests.evidence.rows import remove_message
from tests.evidence.tampering import Tampering

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SEEDS = range(100)

#: What is expected, the file that was touched, and how.
Case = tuple[str, str, Callable[[Path], Any]]


def _unlink(path: Path) -> None:
    path.unlink()


def _cut_a_line(path: Path) -> None:
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")


def _cut_at_a_batch(path: Path) -> None:
    from random import Random

    assert remove_message(path, Random(1))


def _with(**fields: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")

    return change


def _broker_failed(path: Path) -> None:
    run = json.loads(path.read_text(encoding="utf-8"))
    next(child for child in run["children"] if child["name"] == "broker-1")["exit_code"] = 1
    path.write_text(json.dumps(run), encoding="utf-8")


#: The runs that a skeptic doctors first. The last ones are the equivalents, one for each entry of the list.
CASES: dict[str, Case] = {
    "a producer's history removed": ("unknown", "history/producer-1.arrow", _unlink),
    "a producer's history cut at a batch": ("unknown", "history/producer-1.arrow", _cut_at_a_batch),
    "a reader's history removed": ("unknown", "history/reader-1.arrow", _unlink),
    "a final reader's history removed": ("unknown", "history/final-1.arrow", _unlink),
    "a broker's exit status changed": ("unknown", "run.json", _broker_failed),
    "the seed changed": ("unknown", "run.json", _with(seed=2)),
    "a line of the faults removed": ("unknown", "faults.jsonl", _cut_a_line),
    "a line of the leaders removed": ("unknown", "leaders.jsonl", _cut_a_line),
    "the seal removed": ("unknown", "seal.json", _unlink),
    "a replica removed": ("noticed", "nodes/2/data/t-0", lambda path: shutil.rmtree(path)),
    "a segment removed": ("noticed", "nodes/1/data/t-0/00000000000000000000.log", _unlink),
    "the end and the exit status changed": ("run.json", "run.json", _with(ended="2030-01-01", exit_status=0)),
    "the seal written otherwise": ("seal.json", "seal.json", _with()),
    "the verdict edited": ("unsealed", "verdict.json", lambda path: path.write_text("{}", encoding="utf-8")),
    "a log of ZooKeeper removed": ("unsealed", "nodes/zookeeper/zookeeper.log", _unlink),
    "a file added at the top": ("beside", "notes.txt", lambda path: path.write_text("mine", encoding="utf-8")),
}


@pytest.fixture(scope="session")
def valid_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All runs that are tampered with."""
    home = tmp_path_factory.mktemp("sources")
    return {name: sources.write(name, home / name).path for name in sources.STORIES}


@pytest.fixture(scope="session")
def judged_copies(
    spark: Any, valid_runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Judgement], Path, list[Outcome]]:
    """Each case, each run as it was left, and what the seeds give: all judged in one audit, which is what costs."""
    home = tmp_path_factory.mktemp("doctored")
    copies = {name: home / name for name in (*CASES, *valid_runs)}
    for name, copy in copies.items():
        shutil.copytree(valid_runs.get(name, valid_runs["plain"]), copy)
        if name in CASES:
            _expected, path, change = CASES[name]
            change(copy / path)
    drawn = draw(valid_runs, SEEDS, home / "drawn")
    judgements = judge(spark, copies | {each.name: each.copy for each in drawn}, home / "staged")
    return judgements, home, list(outcomes(drawn, judgements, valid_runs))


@pytest.fixture(scope="session")
def doctored(judged_copies: tuple[dict[str, Judgement], Path, list[Outcome]]) -> tuple[dict[str, Judgement], Path]:
    """The judgement of each case, and where its copy is."""
    return judged_copies[:2]


@pytest.mark.parametrize("name", sources.STORIES)
def test_what_is_tampered_with_is_valid(doctored: tuple[dict[str, Judgement], Path], name: str) -> None:
    """By the whole verifier, seal and all: else nothing that follows would mean anything."""
    assert doctored[0][name] == Judgement("valid", ())


@pytest.mark.parametrize("name", CASES)
def test_a_doctored_run_is_noticed(
    doctored: tuple[dict[str, Judgement], Path], valid_runs: dict[str, Path], name: str
) -> None:
    """Evidence that was damaged makes unknown, the cluster's data at least that, a listed equivalent neither."""
    judgement, (expected, path, _change) = doctored[0][name], CASES[name]
    if expected in ("unknown", "noticed"):
        wanted = ("unknown",) if expected == "unknown" else ("unknown", "invalid")
        assert judgement.verdict in wanted, judgement.reasons
        return
    assert judgement.verdict == "valid", judgement.reasons
    entry = next(each for each in SEALED if each.name == expected)
    assert entry.holds(valid_runs["plain"], doctored[1] / name), entry.reason
    told = classify(Tampering(path, "changed"), judgement, valid_runs["plain"], doctored[1] / name)
    assert told == "valid_equivalent"


def test_every_equivalent_has_its_case() -> None:
    """No entry stands on the list without a run that shows it."""
    assert {each.name for each in SEALED} == {expected for expected, _path, _change in CASES.values()} - {
        "unknown", "noticed",
    }  # fmt: skip


def test_an_equivalent_excuses_nothing_else(valid_runs: dict[str, Path], tmp_path: Path) -> None:
    """A changed history is none, whatever else is as it was; nor is a file among the histories."""
    for number, (path, change) in enumerate(
        [("history/reader-1.arrow", _unlink), ("history/x.arrow", Path.touch), ("run.json", _with(seed=2))]
    ):
        copy = tmp_path / str(number)
        shutil.copytree(valid_runs["plain"], copy)
        change(copy / path)
        told = classify(Tampering(path, "changed"), Judgement("valid", ()), valid_runs["plain"], copy)
        assert told == "falsely_valid", path


def test_tampered_evidence_is_judged_neither_valid_nor_against_the_cluster(
    judged_copies: tuple[dict[str, Judgement], Path, list[Outcome]],
) -> None:
    """100 seeds, all kinds of files: never valid beyond the equivalents, never invalid for what is no data."""
    found = judged_copies[2]
    assert len(found) == len(SEEDS)
    false = [str(each) for each in found if each.is_false]
    assert not false, "\n".join(false)
    assert {each.what for each in found} >= {"unknown", "invalid"}
