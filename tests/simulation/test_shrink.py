"""Shrinking: a failure is left with the moves that it needs, and what is printed runs exactly that."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest import mock

import pytest

from cluster.broker.rules import Rules
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader
from tests.simulation import story
from tests.simulation.case import Case
from tests.simulation.nemesis.base import Move
from tests.simulation.nemesis.catalogue import MOVES
from tests.simulation.nemesis.plan import Planned
from tests.simulation.removals import Removal
from tests.simulation.run import main
from tests.simulation.shrink import kind, kind_of_failure, shrink
from tests.simulation.story import Outcome

#: A seed that fails.
FAILING = Case(2, removed="cut-to-the-watermark")
#: A seed of 40 moves that shows the bug below, the leader epoch from which on there is one, and what the moves can be:
#: of these one alone makes a new leader epoch, and it makes only one.
PLANTED, BUGGY_EPOCH = Case(3, steps=40), 3
BUMP, OTHERS = "stop", ("slow-link", "cut-client", "clock-jump", "configure", "rebirth")


def errs_from_the_third_epoch_on(rules: Rules) -> Rules:
    """A leader tells the offset of a batch correctly, but only until leader epoch 3."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        info = rules.append(log, batch, header, leader_epoch, now_ms)
        return info if leader_epoch < BUGGY_EPOCH else info._replace(first_offset=info.first_offset + 1)

    return replace(rules, append=append)


def planted(case: Case) -> Outcome:
    moves = {name: Move(MOVES[name].action, 1) for name in (BUMP, *OTHERS)}
    with mock.patch.object(story, "MOVES", moves):
        return story.tell(case.seed, Removal(errs_from_the_third_epoch_on), steps=case.steps, kept=case.moves)


def fake(case: Case) -> Outcome:
    """A seed of 40 moves, three of which lose a write together; one of them alone makes something else fail."""
    moves = set(range(40) if case.moves is None else case.moves)
    findings = [("unavailable", f"not within {len(moves)} s: readers are at the end")] if 17 in moves else []
    if moves >= {3, 17, 31}:
        findings.append(("lost-write", f"t-0: b'writer 1/{len(moves)}' was acknowledged at 5"))
    made = tuple(Planned(number, number / 10, "kill") for number in sorted(moves))
    return Outcome(case.seed, tuple(findings), "", Counter(), made)


def test_what_is_left_fails_in_the_same_way() -> None:
    """The moves that it needs: not those of another failure that it brings with it, or that is found on the way."""
    told: list[tuple[int, Case, bool]] = []
    shrunk = shrink(Case(7, steps=40), fake(Case(7)), lambda *trial: told.append(trial), run=fake)
    assert shrunk.case == Case(7, steps=40, moves=(3, 17, 31))
    assert shrunk.is_minimal
    assert [number for number, _, _ in told] == list(range(1, shrunk.trials + 1))
    assert [is_same for _, case, is_same in told if case == shrunk.case] == [True]
    assert str(shrunk).splitlines() == [
        ".venv/bin/python -m tests.simulation.run --seed 7 --steps 40 --moves 3,17,31",
        f"3 moves are left (fewest, {shrunk.trials} trials):",
        "    move 3 at 0.3 s: kill",
        "    move 17 at 1.7 s: kill",
        "    move 31 at 3.1 s: kill",
        "    unavailable: not within 3 s: readers are at the end",
        "    lost-write: t-0: b'writer 1/3' was acknowledged at 5",
    ]


def test_trials_are_bounded() -> None:
    """What is left then still fails, and is said to be perhaps too much."""
    shrunk = shrink(Case(7), fake(Case(7)), lambda *_trial: None, most_trials=4, run=fake)
    assert set(shrunk.case.moves or ()) >= {3, 17, 31}
    assert (shrunk.trials, shrunk.is_minimal) == (4, False)
    assert "perhaps not the fewest, 4 trials" in str(shrunk)


def test_the_same_failure_has_the_same_kind() -> None:
    """Whoever has it, wherever; what cannot go on because of another failure is not what failed."""
    assert kind(("broken", "writer 3: ValueError: 7")) == kind(("broken", "writer 4.1: ValueError: 12"))
    assert kind(("unavailable", "not within 60 s: a")) != kind(("unavailable", "not within 60 s: b"))
    assert kind(("lost-write", "t-0: 5")) == kind(("lost-write", "t-1: 6"))
    assert kind_of_failure([("unavailable", "x"), ("duplicate", "y")]) == "duplicate"
    assert kind_of_failure([("unavailable", "x"), ("leftover", "y")]) == "unavailable: x"


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_failing_seed_is_shrunk_to_a_line_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line that is printed runs what is left, and finds what was found; so do its events."""
    monkeypatch.setattr("sys.argv", ["run", "--shrink", str(FAILING.seed), *FAILING.options.split()])
    assert main() == 1
    line, left, *rest = capsys.readouterr().out.splitlines()
    findings = [each.strip() for each in rest if not each.startswith("    move ")]
    assert line.startswith(f"{FAILING.line} --moves ")
    assert 0 < int(left.split()[0]) < FAILING.topology.steps
    monkeypatch.setattr("sys.argv", line.split(" -m ")[1].split())
    assert main() == 1
    assert capsys.readouterr().out.splitlines()[2:] == [*findings, line]


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_three_moves_of_forty_are_found() -> None:
    """A bug that needs three moves among 40 ends at four or fewer, each of which is needed."""
    outcome = planted(PLANTED)
    assert len(outcome.moves) == 40
    shrunk = shrink(PLANTED, outcome, lambda number, case, is_same: None, run=planted)
    assert [each.name for each in shrunk.outcome.moves].count(BUMP) == 3
    assert 3 <= len(shrunk.outcome.moves) <= 4
    assert shrunk.is_minimal
    assert kind_of_failure(outcome.findings) in map(kind, shrunk.outcome.findings)
