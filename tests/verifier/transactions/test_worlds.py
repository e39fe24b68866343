"""The checks of transactions in small worlds: silent where nothing is wrong, else in agreement with the oracle."""

from __future__ import annotations

import os
import shutil
import struct
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.settings import settings
from tests.support.stories import SECOND, STARTED_MS, TOPIC, Batch, clean
from tests.support.transaction_bytes import (
    ABORT,
    COMMIT,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    marker,
    state_key,
    state_value,
)
from tests.verifier.oracle import transactions as oracle
from tests.verifier.transactions.mutations import LEGAL, WRONG, damage
from tests.verifier.transactions.worlds import TWO, World, data, made, renumber, world_of
from verifier import explain
from verifier.closing.wall_clock import ClockShift
from verifier.evidence.run_model import PhaseSpan, RunModel
from verifier.files.replica import ReplicaDirectory, check
from verifier.transactions.evidence import working
from verifier.transactions.transaction_checks import transactional

CASES = 3_000 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 60

#: The run was healed 5 s after its start, 15 s before the coordinators' records were made, and stopped 60 s later.
PHASES = [PhaseSpan("heal", 4 * SECOND, 5 * SECOND), PhaseSpan("stop", 80 * SECOND, 81 * SECOND)]


@pytest.fixture(scope="module")
def run() -> RunModel:
    return replace(clean().model(), phases=PHASES)


def found_in(world: World, run: RunModel, path: Path) -> tuple[Counter[Any], Counter[Any]]:
    """What the verifier finds, and what the oracle does."""
    directory = world.write(path)
    found = transactional(directory, run)
    for each in found:
        assert explain.sentence(each).startswith(f"{each.topic}-{each.partition}: ")
    told = Counter({(each.check, each.cause, each.partition): each.count for each in found})
    wanted = Counter((each.check, each.cause, each.partition) for each in oracle.find_all(directory, run))
    shutil.rmtree(path)
    return told, wanted


def test_a_correct_cluster_is_never_accused(tmp_path: Path, run: RunModel) -> None:
    """Commits, aborts, timeouts, repeated markers, what is undone at the end, deletion and compaction: all legal."""
    for seed in range(CASES):
        random = Random(seed)
        world = made(random, random.randint(1, 60))
        for mutation in LEGAL:
            if random.random() < 0.3:
                mutation(world, random)
        assert found_in(world, run, tmp_path / "run") == (Counter(), Counter()), seed


def test_the_checks_and_the_oracle_agree(tmp_path: Path, run: RunModel) -> None:
    """In mutated worlds both find as many of each check and cause in each partition; all of them occur."""
    seen: set[Any] = set()
    for seed in range(CASES):
        random = Random(seed)
        world = made(random, random.randint(10, 60))
        names = [random.choice([*WRONG, *LEGAL, damage]) for _ in range(random.randint(1, 2))]
        for mutation in names:
            mutation(world, random)
        told, wanted = found_in(world, run, tmp_path / "run")
        assert told == wanted, (seed, [mutation.__name__ for mutation in names])
        seen |= {key[:2] for key in told}
    assert seen == {
        ("torn-transaction", None), ("marker-audit", "missing"), ("marker-audit", "stray"),
        ("marker-audit", "opposite"), ("marker-audit", "decisions"), ("hanging-transaction", None),
        ("marker-audit", "former-coordinator"), ("marker-audit", "former-epoch"), ("zombie-write", None),
    }  # fmt: skip


def names(world: World, run: RunModel, path: Path) -> set[tuple[str, str | None]]:
    told, wanted = found_in(world, run, path)
    assert told == wanted
    return {key[:2] for key in told}


def left_open(started_ms: int, timeout_ms: int = 60_000) -> World:
    value = state_value(ONGOING, 7, 0, TWO[:1], timeout_ms, started_ms, started_ms)
    return world_of([data()], [], [value])


#: The brokers were stopped at this time.
STOPPED_MS = STARTED_MS + 80_000
#: Of a transaction that began this long before that, with a timeout of 60 s, the bound is just passed.
OVERDUE_MS = 60_000 + 15_000 + 1


def test_a_transaction_hangs_when_its_time_and_the_bound_are_over(tmp_path: Path, run: RunModel) -> None:
    """Not a millisecond before; counted from the heal if that was later; never without the phases."""
    hanging = {("hanging-transaction", None)}
    assert names(left_open(STOPPED_MS - OVERDUE_MS), run, tmp_path / "run") == hanging
    assert names(left_open(STOPPED_MS - OVERDUE_MS + 1), run, tmp_path / "run") == set()
    # healed at 5 s, 75 s before the stop
    assert names(left_open(0, 1_000), run, tmp_path / "run") == hanging
    late = replace(run, phases=[PhaseSpan("heal", 0, 65 * SECOND), PHASES[1]])
    assert names(left_open(0, 1_000), late, tmp_path / "run") == set()
    assert names(left_open(0), replace(run, phases=PHASES[1:]), tmp_path / "run") == set()


def test_a_clock_that_was_set_ages_no_transaction(tmp_path: Path, run: RunModel) -> None:
    """How far the wall clock moved is taken off."""
    assert working(run, ClockShift()) == (STARTED_MS + 5_000, STOPPED_MS)
    assert working(run, ClockShift(2_000, 3_000)) == (STARTED_MS + 5_000, STOPPED_MS - 5_000)


def test_what_the_coordinator_does_not_know_hangs(tmp_path: Path, run: RunModel) -> None:
    """A producer without a record, one whose transaction is over, and one that has it in another partition."""
    hanging = {("hanging-transaction", None)}
    for records in (
        [],
        [state_value(EMPTY, 7)],
        [state_value(ONGOING, 7, 0, TWO[1:])],
    ):
        assert names(world_of([data()], [], records), run, tmp_path / "run") == hanging
    assert names(world_of([data()], [], [state_value(ONGOING, 7, 0, TWO)]), run, tmp_path / "run") == set()


@pytest.mark.parametrize(
    ("epoch", "markers", "wanted"),
    [
        (1, [(ABORT, 1)], set()),
        (1, [(COMMIT, 0), (ABORT, 1)], {("marker-audit", "stray")}),
        (1, [(COMMIT, 0)], {("marker-audit", "missing"), ("marker-audit", "stray")}),
        (0, [(ABORT, 0)], {("marker-audit", "decisions"), ("marker-audit", "stray")}),
    ],
)
def test_a_fence_may_replace_a_commit_of_which_no_one_was_told(
    tmp_path: Path, run: RunModel, epoch: int, markers: list[tuple[int, int]], wanted: set[tuple[str, str | None]]
) -> None:
    """Its record was not acknowledged in time, so the transaction was open still; but no marker of it is there."""
    steps = [(ONGOING, 0), (PREPARE_COMMIT, 0), (PREPARE_ABORT, epoch), (COMPLETE_ABORT, epoch)]
    records = [state_value(state, 7, at, TWO[:1]) for state, at in steps]
    log = [data(), *(marker(0, kind, 7, at) for kind, at in markers)]
    assert names(world_of(log, [], records), run, tmp_path / "run") == wanted


@pytest.mark.parametrize(
    ("epochs", "wanted"),
    [
        ([4, 5], set()),
        # sent again by the same coordinator, and by the next
        ([4, 4, 5], set()),
        ([5, 4], {("marker-audit", "former-coordinator")}),
        ([4, 5, 4], {("marker-audit", "former-coordinator")}),
    ],
)
def test_a_coordinator_that_was_replaced_writes_no_more_markers(
    tmp_path: Path, run: RunModel, epochs: list[int], wanted: set[tuple[str, str | None]]
) -> None:
    """Behind the marker of a later one; before it, a marker of the former one is legal, and so are repeated ones."""
    records = [state_value(state, 7, 0, TWO[:1]) for state in (ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)]
    log = [data(), *(marker(0, COMMIT, 7, 0, epoch) for epoch in epochs)]
    assert names(world_of(log, [], records), run, tmp_path / "run") == wanted


@pytest.mark.parametrize(("epoch", "wanted"), [(3, {("marker-audit", "former-coordinator")}), (4, set()), (5, set())])
def test_a_coordinator_ends_nothing_before_it_decided_it(
    tmp_path: Path, run: RunModel, epoch: int, wanted: set[tuple[str, str | None]]
) -> None:
    """The record was stored in epoch 4; a former coordinator's marker may only repeat what was decided before."""
    records = [state_value(state, 7, 0, TWO[:1]) for state in (ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)]
    world = world_of([data(), marker(0, COMMIT, 7, 0, epoch)], [], records)
    world.state[1] = [replace(batch, leader_epoch=4) for batch in world.state[1]]
    assert names(world, run, tmp_path / "run") == wanted
    # of two decisions, the marker that is there again and the last one end nothing
    again = [marker(0, COMMIT, 7, 0, 3), marker(0, COMMIT, 7, 0, 3), data(), marker(0, COMMIT, 7, 0, epoch)]
    world = world_of([*again, marker(0, COMMIT, 7, 0, 5)], [], records * 3)
    world.state[1] = [replace(batch, leader_epoch=3 + (at > 2)) for at, batch in enumerate(world.state[1])]
    assert names(world, run, tmp_path / "run") == wanted


def test_the_markers_of_one_producer_fence_those_of_no_other(tmp_path: Path, run: RunModel) -> None:
    """A former coordinator's marker for 8 may arrive after the next one's for 7, and before its own for 8."""
    eight = replace(data(), producer_id=8)
    log = [data(), eight, marker(0, COMMIT, 7, 0, 5), marker(0, COMMIT, 8, 0, 4), marker(0, COMMIT, 8, 0, 5)]
    steps = (ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)
    world = world_of(log, [], [state_value(state, 7, 0, TWO[:1]) for state in steps])
    world.state[0] = [
        Batch(0, (), keys=(state_key("y"),), raw_values=(state_value(state, 8, 0, TWO[:1]),)) for state in steps
    ]
    renumber(world.state[0])
    assert names(world, run, tmp_path / "run") == set()


def test_without_all_records_no_one_is_accused_of_what_is_missing(tmp_path: Path, run: RunModel) -> None:
    """A partition of the coordinator's topic that is gone, begins later, or has a record that cannot be read."""
    marked = [data(), marker(0, COMMIT, 7)]
    assert names(world_of(list(marked), [], []), run, tmp_path / "run") == {("marker-audit", "stray")}
    gone, later, damaged = (world_of(list(marked), [], [state_value(EMPTY, 9)] * 2) for _ in range(3))
    del later.state[1][0]
    damaged.state[1][0] = replace(damaged.state[1][0], raw_values=(b"\0\1",))
    assert names(later, run, tmp_path / "run") == set()
    assert names(damaged, run, tmp_path / "run") == set()
    directory = gone.write(tmp_path / "gone")
    for home in directory.nodes_dir.glob("*/data/__transaction_state-0"):
        shutil.rmtree(home)
    assert transactional(directory, run) == ()
    assert oracle.find_all(directory, run) == []


def test_elections_that_may_lose_records_accuse_no_one_of_a_lost_marker(tmp_path: Path, run: RunModel) -> None:
    """Under unclean.leader.election.enable; a write of an epoch that is over remains one."""
    records = [state_value(state, 7, 0, TWO) for state in (ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)]
    zombie = [data(1), data(0), marker(0, COMMIT, 7, 1)]
    torn = world_of(zombie, [data()], records)
    unclean = replace(run, settings=settings(unclean_leader_election=True))
    assert names(torn, unclean, tmp_path / "run") == {("zombie-write", None)}
    assert ("torn-transaction", None) not in names(torn, run, tmp_path / "run")
    assert ("marker-audit", "missing") in names(torn, run, tmp_path / "run")


def test_the_markers_of_offsets_are_judged_beside_a_topic_that_may_lose_its_own(tmp_path: Path, run: RunModel) -> None:
    """They cannot be cut off unless the brokers' own default allows such elections in ``__consumer_offsets``."""
    both = [(TOPIC, 0), ("__consumer_offsets", 0)]
    records = [state_value(state, 7, 0, both) for state in (ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)]
    world = world_of([data()], [], records)
    world.logs["__consumer_offsets", 0] = [data()]
    unclean = replace(run, settings=settings(unclean_leader_election=True))
    found = transactional(world.write(tmp_path / "found"), unclean)
    wanted = {("marker-audit", "missing"), ("hanging-transaction", None)}
    assert {(each.check, each.cause) for each in found} == wanted
    assert {each.topic for each in found} == {"__consumer_offsets"}
    assert names(world, unclean, tmp_path / "run") == wanted
    resolved = unclean.experiment["resolved"]
    broker = resolved["broker"] | {"unclean.leader.election.enable": True}
    everywhere = replace(unclean, experiment={**unclean.experiment, "resolved": resolved | {"broker": broker}})
    assert names(world, everywhere, tmp_path / "run") == set()
    world.logs["__consumer_offsets", 0].append(marker(1, COMMIT, 7))
    assert names(world, unclean, tmp_path / "run") == set()


def test_the_most_advanced_copy_is_judged(tmp_path: Path, run: RunModel) -> None:
    """A replica that lacks the last marker, or has an older epoch's instead, says nothing."""
    records = [state_value(state, 7, 0, TWO[:1]) for state in (ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)]
    world = world_of([data(), marker(0, COMMIT, 7)], [], records)
    world.behind = 1
    assert names(world, run, tmp_path / "run") == set()
    directory = world.write(tmp_path / "kept")
    (log,) = (directory.node(2) / "data" / f"{TOPIC}-0").glob("*.log")
    other = [data(), replace(marker(1, ABORT, 7), leader_epoch=0), replace(marker(2, ABORT, 7), leader_epoch=0)]
    log.write_bytes(b"".join(replace(batch, leader_epoch=0).encode() for batch in other))
    assert transactional(directory, run) == ()


def test_a_run_without_the_coordinators_topic_is_not_asked(tmp_path: Path, run: RunModel) -> None:
    """There is nothing to compare with; what a stray transactional batch is, another check says."""
    directory = World({(TOPIC, 0): [data()]}, []).write(tmp_path / "run")
    assert transactional(directory, run) == ()


def audited(path: Path, *, broker: int = 1) -> list[str]:
    """The problems of the index of aborted transactions in one replica's directory."""
    replica = ReplicaDirectory("r", broker, TOPIC, 0, str(path), ended_in_order=True)
    return [found.problem for found in check(replica) if found.check == "aborted-index-audit"]


def entry(producer_id: int, first: int, last: int, stable: int, version: int = 0) -> bytes:
    return struct.pack(">hqqqq", version, producer_id, first, last, stable)


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (entry(7, 0, 2, 1), None),
        (None, "it lacks that of producer 7 from 0 to 2, last stable offset 1"),
        (entry(7, 0, 2, 1)[:-1], "33 bytes are no whole number of entries"),
        (entry(7, 0, 2, 1, version=1), "an entry of version 1, only 0 is known"),
        (entry(7, 1, 2, 1), "from 1 to 2, last stable offset 1, where the log has that of producer 7 from 0 to 2"),
        (entry(7, 0, 2, 3), "last stable offset 3, where the log has that of producer 7 from 0 to 2, last stable"),
        (entry(8, 0, 2, 1), "where the segment has no ABORT of that producer"),
        (entry(7, 0, 2, 1) + entry(8, 1, 3, 4), "where the segment has no ABORT of that producer"),
        (entry(7, 0, 2, 1) * 2, "does not come after the one before it, at 2"),
        (entry(7, 0, 2, 1) + entry(8, -1, 4, 5), "an ABORT of producer 8 at 4 that ends nothing"),
    ],
)
def test_an_index_of_aborted_transactions_is_compared(tmp_path: Path, index: bytes | None, problem: str | None) -> None:
    """Producer 7 aborts while 8 is open; 8 commits; then it aborts nothing, which needs no entry."""
    eight = replace(data(), producer_id=8)
    log = [data(), eight, marker(0, ABORT, 7), marker(0, COMMIT, 8), marker(0, ABORT, 8)]
    world = world_of(log, [], [])
    home = world.write(tmp_path / "run").node(1) / "data" / f"{TOPIC}-0"
    path = home / f"{0:020d}.txnindex"
    if index is None:
        path.unlink()
    else:
        path.write_bytes(index)
    found = audited(home)
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]


def test_what_was_deleted_cannot_contradict_an_index(tmp_path: Path) -> None:
    """In a log that begins later, a transaction may have begun before; what is left must fit all the same."""
    world = world_of([data(), replace(data(), producer_id=8), marker(0, ABORT, 7), marker(0, ABORT, 8)], [], [])
    del world.logs[TOPIC, 0][:2]
    home = world.write(tmp_path / "run").node(1) / "data" / f"{TOPIC}-0"
    path = home / f"{2:020d}.txnindex"
    for index, is_well in (
        (entry(7, 0, 2, 1) + entry(8, 1, 3, 4), True),
        (b"", True),
        (entry(7, 2, 2, 1), False),
        (entry(7, 0, 2, 5), False),
    ):
        path.write_bytes(index)
        assert (audited(home) == []) == is_well, index
