"""Commits that clients were told of, beside the decisions: exact cases, random worlds beside the oracle, readings."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.settings import settings
from tests.support.stories import TOPIC, clean
from tests.support.transaction_bytes import (
    COMMIT,
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_COMMIT,
    marker,
    state_value,
)
from tests.verifier.oracle import clients, transaction_logs
from tests.verifier.oracle import transactions as oracle
from tests.verifier.transactions.mutations import LEGAL, WRONG, damage
from tests.verifier.transactions.test_alignment import TOLD, Told, decided, ended
from tests.verifier.transactions.worlds import TWO, Place, World, data, made, world_of
from verifier import explain
from verifier.checks.undecided_commit import undecided_commit
from verifier.evidence.history import HistoryRow
from verifier.evidence.run_model import RunModel
from verifier.transactions.client_rows import client_evidence
from verifier.transactions.evidence import transaction_evidence
from verifier.transactions.readings import possible_decisions
from verifier.transactions.transaction_checks import audit, summed_up

CASES = 3_000 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 60

P0, P1 = TWO


@pytest.fixture(scope="module")
def run() -> RunModel:
    return clean().model()


def told_in(world: World, run: RunModel, path: Path) -> tuple[Counter[Any], Counter[Any]]:
    """What the check of commits that were told finds, and what the oracle does."""
    directory = world.write(path)
    evidence = transaction_evidence(directory, run)
    assert evidence is not None
    found = Counter((each.partition, each.offset) for each in undecided_commit(client_evidence(world.rows), evidence))
    logs, state = transaction_logs.read_run(directory)
    kept = {place: log for place, log in logs.items() if not transaction_logs.may_lose(run, place)}
    wanted = Counter(
        (each.partition, each.offset) for each in oracle.told_and_undecided(state, kept, clients.read(world.rows)[0])
    )
    shutil.rmtree(path)
    return found, wanted


def test_a_commit_that_was_decided_accuses_no_one(tmp_path: Path, run: RunModel) -> None:
    """Whatever answers were lost, and whatever was sent again; deletion and compaction take away what would tell."""
    for seed in range(CASES):
        random = Random(seed)
        world = made(random, random.randint(1, 60), whims=seed)
        for mutation in LEGAL:
            if random.random() < 0.2:
                mutation(world, random)
        unclean = replace(run, settings=settings(unclean_leader_election=seed % 4 == 0))
        assert told_in(world, unclean, tmp_path / "run") == (Counter(), Counter()), seed


def test_commits_are_laid_beside_decisions_as_by_the_oracle(tmp_path: Path, run: RunModel) -> None:
    """Commits that no one decided, that lack a partition, or of which the coordinator or a log has lost something."""
    count = 0
    for seed in range(CASES):
        random = Random(seed)
        world = made(random, random.randint(10, 60), whims=seed, wrong=0.6 * (seed % 3 > 0))
        names = [random.choice([*WRONG, *LEGAL, damage]) for _ in range(random.randint(0, 1))]
        for mutation in names:
            mutation(world, random)
        unclean = replace(run, settings=settings(unclean_leader_election=seed % 4 == 0))
        told, wanted = told_in(world, unclean, tmp_path / "run")
        assert told == wanted, (seed, [mutation.__name__ for mutation in names])
        count += told.total()
    assert count > CASES // 6


def committed(*places: Place) -> list[bytes]:
    """The coordinator's records of a transaction of 7, from beginning to end."""
    return [state_value(state, 7, 0, places) for state in (ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)]


def client(number: int, end: str, *stored: tuple[Place, int]) -> list[dict[str, Any]]:
    """A transaction of 7 with one acknowledged record at each of these offsets; ``end`` is the answer to its commit."""
    rows = [HistoryRow("begin", "ok", op=number, producer_id=7, invoke_ns=10 * number)]
    for (topic, partition), offset in stored:
        sent = HistoryRow("send", "ok", topic, partition, stream=partition, first_sequence=offset, last_sequence=offset)
        rows.append(sent._replace(first_offset=offset, last_offset=offset, op=number, invoke_ns=10 * number))
    asked = HistoryRow("commit", "ok", op=number, producer_id=7, invoke_ns=10 * number + 1)
    rows.append(asked._replace(type="ok" if end == "ok" else "info", complete_ns=10 * number + 2))
    return [row._asdict() | {"process": "p"} for row in rows]


def accused(world: World, rows: list[dict[str, Any]], run: RunModel, path: Path) -> list[tuple[int, int]]:
    """Where; by the bytes alone nothing is wrong."""
    world.rows = rows
    told, wanted = told_in(world, run, path)
    assert told == wanted
    evidence = transaction_evidence(world.write(path), run)
    shutil.rmtree(path)
    assert evidence is not None
    assert audit(evidence) == []
    return sorted(told.elements())


END = marker(0, COMMIT, 7)


def test_a_decision_names_every_partition_that_its_transaction_wrote_to(tmp_path: Path, run: RunModel) -> None:
    """The marker of a later transaction ends what the decision forgot, so that the logs agree with all decisions."""
    both = client(0, "ok", (P0, 0), (P1, 0))
    later = client(1, "ok", (P0, 1))
    forgotten = world_of([data(), data(), END], [data(), END], [*committed(P1), *committed(P0)])
    assert accused(forgotten, both + later, run, tmp_path / "run") == [(0, 0)]
    evidence = transaction_evidence(forgotten.write(tmp_path / "written"), run)
    assert evidence is not None
    (told,) = summed_up(undecided_commit(client_evidence(both + later), evidence))
    assert explain.sentence(told) == (
        f"{TOPIC}-0: p was told that its transaction 0 (producer 7) is committed; what it wrote at offset 0 is in no "
        "decision of its own that has all its partitions (of the producer's commits, 2 were told and 2 decided)"
    )
    # nothing of the later one was acknowledged there, or there is no answer to its commit
    elsewhere = world_of([data(), END], [data(), END, data(), END], [*committed(P1), *committed(P0, P1)])
    assert accused(elsewhere, both + client(1, "ok", (P1, 2)), run, tmp_path / "run") == [(0, 0)]
    assert accused(forgotten, both + client(1, "info", (P0, 1)), run, tmp_path / "run") == [(0, 0)]
    legal = world_of([data(), END, data(), END], [data(), END], [*committed(P0, P1), *committed(P0)])
    assert accused(legal, both + client(1, "ok", (P0, 2)), run, tmp_path / "run") == []


def test_names_are_enough_where_markers_may_be_cut_off(tmp_path: Path, run: RunModel) -> None:
    """Under unclean.leader.election.enable no marker proves anything, but the records of the decisions do."""
    unclean = replace(run, settings=settings(unclean_leader_election=True))
    both = client(0, "ok", (P0, 0), (P1, 0))
    assert accused(world_of([data()], [data()], committed(P1)), both, unclean, tmp_path / "run") == [(0, 0)]
    assert accused(world_of([data()], [data()], committed(P0, P1)), both, unclean, tmp_path / "run") == []


def test_a_commit_without_an_answer_does_not_stand_in_for_one_that_was_told(tmp_path: Path, run: RunModel) -> None:
    """The log shows that it was decided, and that what was told before is ended with it: as many, but not the same."""
    merged = world_of([data(), data(), END], [], committed(P0))
    rows = client(0, "ok", (P0, 0)) + client(1, "info", (P0, 1))
    assert accused(merged, rows, run, tmp_path / "run") == [(0, 0)]
    # what comes first has no answer, so that no one knows whether it was decided
    assert accused(merged, client(0, "info", (P0, 0)) + client(1, "ok", (P0, 1)), run, tmp_path / "run") == []
    # the one without an answer was not decided, or was decided as well
    ongoing = [*committed(P0), state_value(ONGOING, 7, 0, [P0])]
    second = client(0, "ok", (P0, 0)) + client(1, "info", (P0, 2))
    assert accused(world_of([data(), END, data()], [], ongoing), second, run, tmp_path / "run") == []
    apart = world_of([data(), END, data(), END], [], committed(P0) * 2)
    assert accused(apart, second, run, tmp_path / "run") == []


def test_a_decision_without_all_its_markers_is_one(tmp_path: Path, run: RunModel) -> None:
    """The run ended before the last marker was written: the client had its answer."""
    world = world_of([data(), END], [data()], committed(P0, P1)[:2])
    assert accused(world, client(0, "ok", (P0, 0), (P1, 0)), run, tmp_path / "run") == []


def test_markers_that_end_nothing_make_no_marker_another_ones(tmp_path: Path, run: RunModel) -> None:
    """The first one is sent again, and the third decision ends nothing here: the second marker may be of either."""
    here = [END, END, data(), END, END]
    world = world_of(here, [data(), END, data(), END, data(), END], committed(P0, P1) * 3)
    rows = client(0, "ok", (P1, 0)) + client(1, "ok", (P0, 2), (P1, 2)) + client(2, "ok", (P1, 4))
    assert accused(world, rows, run, tmp_path / "run") == []


def readings(markers: list[Told], decisions: list[Told]) -> dict[int, set[int]]:
    """By trying everything: of each marker that ends something, the decisions, in ways without a contradiction."""

    @cache
    def ways(at: int, number: int) -> frozenset[tuple[tuple[int, int], ...]]:
        found: set[tuple[tuple[int, int], ...]] = set()
        if (at, number) == (len(markers), len(decisions)):
            return frozenset([()])
        if at < len(markers):
            if number < len(decisions) and markers[at][:2] == decisions[number][:2]:
                found |= {((at, number), *rest) for rest in ways(at + 1, number + 1)}
            if not markers[at][2] and markers[at][:2] in [each[:2] for each in decisions[:number]]:
                found |= ways(at + 1, number)
        if number < len(decisions) and not decisions[number][2]:
            found |= ways(at, number + 1)
        return frozenset(found)

    told: dict[int, set[int]] = {}
    for way in ways(0, 0):
        for at, number in way:
            if markers[at][2]:
                told.setdefault(at, set()).add(number)
    return told


@given(TOLD, TOLD)
def test_every_reading_without_a_contradiction_counts(markers: list[Told], decisions: list[Told]) -> None:
    """Also of lists that were made to fit, since others hardly ever do."""
    for given_markers in (markers, [(kind, epoch, True) for kind, epoch, _ in decisions], [*decisions, *decisions[:1]]):
        found = possible_decisions(ended(given_markers), decided(decisions))
        assert found == readings(given_markers, decisions)


@given(TOLD, st.randoms(use_true_random=False))
def test_readings_of_markers_that_were_sent_again(decisions: list[Told], random: Random) -> None:
    """Each decision has its marker, which may end nothing, and comes again."""
    markers: list[Told] = []
    for number, (kind, epoch, _) in enumerate(decisions):
        markers.append((kind, epoch, random.random() < 0.5))
        for other in decisions[: number + 1]:
            markers += [(*other[:2], False)] * (random.random() < 0.2)
    markers = markers[:9]
    assert possible_decisions(ended(markers), decided(decisions)) == readings(markers, decisions)
