"""Transactions in a cluster that others started: judged by clients and the logs of the run, not by what coordinators
decided (docs/target.md "What is judged")."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.support.settings import settings
from tests.support.stories import TOPIC, clean
from tests.support.transaction_bytes import ABORT, marker
from tests.verifier.transactions.mutations import LEGAL, WRONG, add_data
from tests.verifier.transactions.test_worlds import PHASES
from tests.verifier.transactions.worlds import World, made
from verifier.completeness.coordinators import doubts
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.narrowed import narrowing
from verifier.transactions.evidence import aborted_ranges, has_transactions, transaction_evidence
from verifier.transactions.transaction_checks import transactional

CASES = 40
UNASKED = {"torn-transaction", "marker-audit", "hanging-transaction", "undecided-commit"}


def of_others(kind: str = "transactions") -> RunModel:
    run = replace(clean().model(), phases=PHASES)
    experiment = {**run.experiment, "resolved": {**run.experiment["resolved"], "workload": {"kind": kind}}}
    return replace(run, settings=replace(run.settings, target="kafka://h:1"), experiment=experiment)


def served(world: World, path: Path) -> RunDirectory:
    """What a run keeps: the logs of its topic, one copy of each, and none of a coordinators' topic."""
    directory = world.write(path)
    for home in path.glob("nodes/*/data/__transaction_state-*"):
        shutil.rmtree(home)
    shutil.rmtree(directory.node(2))
    return directory


def found(world: World, path: Path) -> Counter[str]:
    told = Counter({each.check: each.count for each in transactional(served(world, path), of_others())})
    shutil.rmtree(path)
    return told


def test_what_no_coordinator_told_accuses_no_one(tmp_path: Path) -> None:
    """A correct cluster is valid without its ``__transaction_state``; so is one whose markers no one can check."""
    for seed in range(CASES):
        random = Random(seed)
        world = made(random, random.randint(1, 60))
        for mutation in LEGAL:
            if random.random() < 0.3:
                mutation(world, random)
        assert found(world, tmp_path / "run") == Counter(), seed


def test_what_the_logs_show_is_found(tmp_path: Path) -> None:
    """Of all that can go wrong with transactions, what needs no decision: a write under an epoch that was over, and a
    marker of a former coordinator; it counts, though the rest of its check is not asked."""
    seen: Counter[str] = Counter()
    for seed in range(CASES):
        random = Random(seed)
        world = made(random, 40)
        random.choice(WRONG)(world, random)
        add_data(world, random)
        seen += found(world, tmp_path / "run")
    assert seen.keys() == {"zombie-write", "marker-audit"}


def test_aborted_records_are_known_by_their_markers(tmp_path: Path) -> None:
    """Readers of committed records are not handed them: without this they would seem to be lost."""
    world = World({(TOPIC, 0): []}, [[]])
    add_data(world, Random(1))
    (batch,) = world.logs[TOPIC, 0]
    world.logs[TOPIC, 0].append(replace(marker(0, ABORT, batch.producer_id), base_offset=batch.next_offset))
    directory = served(world, tmp_path)
    assert has_transactions(directory, of_others()) and not has_transactions(directory, of_others("plain"))
    (aborted,) = aborted_ranges(directory, of_others())
    assert (aborted.producer_id, aborted.first_offset) == (batch.producer_id, 0)
    evidence = transaction_evidence(directory, of_others())
    assert evidence is not None and not evidence.state.knows_all_of(batch.producer_id)


@pytest.mark.parametrize(("kind", "unasked"), [("transactions", UNASKED), ("bank", UNASKED), ("plain", set())])
def test_the_verdict_says_what_it_does_not_tell(kind: str, unasked: set[str]) -> None:
    """The checks of decisions are not asked of a load with transactions; and no log of a coordinator is missed."""
    told = narrowing(of_others(kind))
    assert {name for name in told.unasked if name in UNASKED} == unasked
    assert any("what coordinators decided is not read" in line for line in told.lines) is bool(unasked)
    assert not list(doubts(of_others(kind), clean_closing()))
    own = replace(of_others(kind), settings=settings())
    assert bool(list(doubts(own, clean_closing()))) is bool(unasked)


def clean_closing():  # type: ignore[no-untyped-def]
    from tests.verifier.test_verdict import closing

    return closing()
