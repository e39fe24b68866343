"""The decisions of shrinking against failures made up: monotone, arbitrary, and flaky ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chaos.shrinking.search import Search, patience
from chaos.shrinking.smaller_run import PlayingPace, SmallerRun, TryCount, TryOutcome

LOAD: dict[str, Sequence[Any]] = {"users": (1, 3), "rate": (100, 400, 800)}
Fails = Callable[[SmallerRun], bool]


def searched(search: Search, fails: Fails) -> list[tuple[SmallerRun, TryOutcome]]:
    """Work the search off; what was tried."""
    tried = []
    while search.candidate is not None:
        candidate = search.candidate
        outcome = TryOutcome.FAILED if fails(candidate) else TryOutcome.PASSED
        tried.append((candidate, outcome))
        search.told(outcome)
    return tried


def needing(*events: int) -> Fails:
    return lambda candidate: set(events) <= set(candidate.events)


def flaky(fails: Fails, chance: float, seed: int) -> Fails:
    """The same, with luck."""
    random = Random(seed)
    return lambda candidate: random.random() < chance and fails(candidate)


def arbitrary(seed: int) -> Fails:
    """Neither monotone nor otherwise kind, but the same each time; the whole fails."""

    def fails(candidate: SmallerRun) -> bool:
        text = f"{seed} {candidate}"
        return len(candidate.events) >= 12 or hashlib.sha256(text.encode()).digest()[0] < 60

    return fails


@given(st.integers(0, 39), st.integers(0, 39))
def test_two_faults_of_forty_are_found_within_sixty_runs(one: int, other: int) -> None:
    """A defect that needs two faults: these two are left, with the tries before and after; little time and load."""
    search = Search(40, max_runs=60, load=LOAD)
    searched(search, needing(one, other))
    assert search.best == SmallerRun(tuple(sorted({one, other})), PlayingPace.SHORT, (("users", 1), ("rate", 100)))
    assert search.runs <= 25
    assert (search.before, search.after) == (TryCount(3, 3), TryCount(3, 3))


def test_two_faults_are_found_though_it_seldom_fails() -> None:
    """At two of three tries: three faults or fewer nine times in ten within sixty runs, and never a harmless rest."""
    small = 0
    for seed in range(200):
        one, other = Random(seed).sample(range(40), 2)
        search = Search(40, max_runs=60, load=LOAD)
        searched(search, flaky(needing(one, other), 0.7, seed))
        assert search.runs <= 60
        if search.best is not None:
            assert {one, other} <= set(search.best.events)
            small += len(search.best.events) <= 3
    assert small >= 180


@given(st.integers(0, 25).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, max(0, n - 1)), max_size=n))))
def test_what_is_needed_is_left_and_nothing_else(drawn: tuple[int, set[int]]) -> None:
    """With time enough, whatever is needed: none, one, many, all."""
    count, needed = drawn
    needed = needed if count else set()
    search = Search(count, max_runs=5_000)
    searched(search, needing(*needed))
    assert search.best is not None
    assert set(search.best.events) == needed


@given(st.integers(0, 20), st.integers(0, 10_000))
def test_what_is_left_fails_and_no_single_fault_can_be_left_out(count: int, seed: int) -> None:
    """Also where less may fail though more does not: of what is left each one is needed, at the pace of that stage."""
    fails = arbitrary(seed)
    search, at_last = Search(count, max_runs=5_000), SmallerRun(tuple(range(count)))
    passed, failed = set[SmallerRun](), set[SmallerRun]()
    while (candidate := search.candidate) is not None:
        does = candidate == SmallerRun(tuple(range(count))) or fails(candidate)
        (failed if does else passed).add(candidate)
        stage = search.stage
        search.told(TryOutcome.FAILED if does else TryOutcome.PASSED)
        at_last = search.best or at_last if stage == "faults" else at_last
    assert search.best in failed
    assert search.best is not None and search.best.events == at_last.events
    for event in at_last.events:
        assert replace(at_last, events=tuple(each for each in at_last.events if each != event)) in passed


@given(st.integers(0, 40), st.floats(0, 1), st.integers(0, 10_000), st.integers(7, 60), st.integers(1, 3))
def test_nothing_is_accepted_that_has_not_failed(
    count: int, chance: float, seed: int, max_runs: int, tries: int
) -> None:
    """However flaky, and wherever it is interrupted; and never more runs than were allowed."""
    needed = Random(seed).sample(range(count), min(2, count))
    fails = flaky(needing(*needed), chance, seed)
    search = Search(count, max_runs=max_runs, tries=tries, load=LOAD)
    failed: set[SmallerRun] = set()
    while (candidate := search.candidate) is not None:
        outcome = TryOutcome.FAILED if fails(candidate) else TryOutcome.PASSED
        if outcome is TryOutcome.FAILED:
            failed.add(candidate)
        search.told(outcome)
        assert (search.best is None) == (not failed) or search.stage == "before"
        assert search.best is None or search.best in failed
    assert search.runs <= max_runs
    assert (search.best is None) == (search.before.failures == 0)


def test_a_run_that_does_not_fail_again_is_not_shrunk() -> None:
    """It gets twice the tries, and that is the end."""
    search = Search(9, max_runs=60)
    tried = searched(search, lambda _: False)
    assert search.best is None and search.runs == 6 and search.before == TryCount(6, 0)
    assert {candidate for candidate, _ in tried} == {SmallerRun(tuple(range(9)))}


def test_what_failed_by_luck_is_given_up_in_the_end() -> None:
    """If what is left never fails again, one accepted before it counts; here that is the whole."""
    seen: set[SmallerRun] = set()

    def fails(candidate: SmallerRun) -> bool:
        lucky = candidate not in seen
        seen.add(candidate)
        return len(candidate.events) >= 5 or (len(candidate.events) >= 2 and lucky)

    search = Search(8, max_runs=200)
    searched(search, fails)
    assert search.best == SmallerRun(tuple(range(8)))
    assert search.after == search.before == TryCount(3, 3)


def test_what_failed_by_luck_is_given_up_though_no_run_is_left() -> None:
    """What did not fail when it was tried again is not claimed to; what was accepted before it has no such tries."""
    seen: set[SmallerRun] = set()

    def fails(candidate: SmallerRun) -> bool:
        lucky = candidate not in seen
        seen.add(candidate)
        return len(candidate.events) == 8 or lucky

    search = Search(8, max_runs=8)
    tried = searched(search, fails)
    again = tried[-1][0]
    assert [candidate for candidate, _ in tried[-3:]] == [again] * 3 and tried[-1][1] is TryOutcome.PASSED
    assert search.runs == 8 and search.best not in (None, again)
    assert search.after == TryCount()


def test_what_cannot_be_run_costs_nothing_and_what_has_no_verdict_is_no_failure() -> None:
    """A setting that would be refused is not accepted; a run without a verdict counts as one, and as neither."""
    search = Search(2, max_runs=60, load={"users": (1, 2)})
    while (candidate := search.candidate) is not None:
        if candidate.load == (("users", 1),):
            search.told(TryOutcome.IMPOSSIBLE)
        elif not candidate.events:
            search.told(TryOutcome.UNRESOLVED)
        else:
            search.told(TryOutcome.FAILED)
    assert search.best is not None
    assert search.best.load == (("users", 2),)
    assert len(search.best.events) == 1


def test_a_guess_is_tried_first() -> None:
    """Faults that had begun when the anomaly was first seen: if these do, the others are not looked at."""
    search = Search(40, max_runs=60, likely=5)
    tried = [candidate.events for candidate, _ in searched(search, needing(4))]
    assert tried[3] == (0, 1, 2, 3, 4)
    assert max(map(len, tried[4:])) < 5
    wrong = Search(40, max_runs=60, likely=5)
    searched(wrong, needing(6, 30))
    assert wrong.best is not None and wrong.best.events == (6, 30)


def test_patience_grows_with_luck() -> None:
    """What always failed is tried once, what seldom fails again and again."""
    assert [patience(TryCount(3, failures)) for failures in (3, 2, 1)] == [1, 2, 4]
    assert patience(TryCount(10, 10)) == 1 and patience(TryCount(10, 2)) == 4
