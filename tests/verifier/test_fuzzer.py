"""The evidence fuzzer in the gate: 100 seeds, the classic doctored runs, and every equivalent.

All are judged in the one audit of ``conftest``. If it breaks, ``make fuzz-evidence ARGS="--count 100"`` finds by which.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.evidence import sources
from tests.evidence.doctored import CASES, unlink, with_fields
from tests.evidence.equivalents import SEALED
from tests.evidence.fuzzer import classify, outcomes
from tests.evidence.judge import Judgement, concluded
from tests.evidence.tampering import Tampering
from tests.verifier.conftest import SEEDS, Copies
from verifier.facts import Audit

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def judgements(copies: Copies, audits: dict[str, Audit]) -> dict[str, Judgement]:
    """The judgement of each copy, by its name; reports and all."""
    return concluded(copies.gathered, audits)


@pytest.mark.parametrize("name", sources.STORIES)
def test_what_is_tampered_with_is_valid(judgements: dict[str, Judgement], name: str) -> None:
    """By the whole verifier, seal and all: else nothing that follows would mean anything."""
    assert judgements[name] == Judgement("valid", ())


@pytest.mark.parametrize("name", CASES)
def test_a_doctored_run_is_noticed(judgements: dict[str, Judgement], copies: Copies, name: str) -> None:
    """Evidence that was damaged makes unknown, the cluster's data at least that, a listed equivalent neither."""
    judgement, (expected, path, _change) = judgements[name], CASES[name]
    if expected in ("unknown", "noticed"):
        wanted = ("unknown",) if expected == "unknown" else ("unknown", "invalid")
        assert judgement.verdict in wanted, judgement.reasons
        return
    assert judgement.verdict == "valid", judgement.reasons
    plain = copies.sources["plain"]
    entry = next(each for each in SEALED if each.name == expected)
    assert entry.holds(plain, copies.home / name), entry.reason
    told = classify(Tampering(path, "changed"), judgement, plain, copies.home / name)
    assert told == "valid_equivalent"


def test_every_equivalent_has_its_case() -> None:
    """No entry stands on the list without a run that shows it."""
    assert {each.name for each in SEALED} == {expected for expected, _path, _change in CASES.values()} - {
        "unknown", "noticed",
    }  # fmt: skip


def test_an_equivalent_excuses_nothing_else(copies: Copies, tmp_path: Path) -> None:
    """A changed history is none, whatever else is as it was; nor is a file among the histories."""
    for number, (path, change) in enumerate(
        [("history/reader-1.arrow", unlink), ("history/x.arrow", Path.touch), ("run.json", with_fields(seed=2))]
    ):
        copy = tmp_path / str(number)
        shutil.copytree(copies.sources["plain"], copy)
        change(copy / path)
        told = classify(Tampering(path, "changed"), Judgement("valid", ()), copies.sources["plain"], copy)
        assert told == "falsely_valid", path


def test_tampered_evidence_is_judged_neither_valid_nor_against_the_cluster(
    copies: Copies, judgements: dict[str, Judgement]
) -> None:
    """100 seeds, all kinds of files: never valid beyond the equivalents, never invalid for what is no data."""
    found = list(outcomes(copies.drawn, judgements, copies.sources))
    assert len(found) == len(SEEDS)
    false = [str(each) for each in found if each.is_false]
    assert not false, "\n".join(false)
    assert {each.what for each in found} >= {"unknown", "invalid"}
