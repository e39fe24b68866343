"""From a candidate to a run: times, length and load; and what of a verdict counts as the same failure."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.experiment.asked import Asked
from chaos.experiment.experiment import WARMUP_S
from chaos.experiment.forms import ScheduleFile
from chaos.experiment.resolve import resolve
from chaos.faults.catalogue import FAULTS
from chaos.schedules.model import Injection, Schedule, from_yaml
from chaos.shrinking.failure import SameFailure, first_seen_ns, forbidden, leading
from chaos.shrinking.regression import doubts_of, regression_test, schedule_text, story, tries_needed
from chaos.shrinking.scale import load_steps, scaled
from chaos.shrinking.smaller_run import PlayingPace, SearchEnd, SmallerRun, TryCount, TryOutcome
from verifier.verdict import undecidable

PATH = Path("there.yaml")
SCHEDULE = Schedule(
    9,
    (
        Injection(20.0, "kill-leader", 3.0, {"partition": 2}, overlap=True, replays=0),
        Injection(21.5, "cut-link", 1.0, {"partition": 1}, overlap=True, replays=1),
        Injection(60.0, "reset", 0.3, {"partition": 1}, overlap=True, replays=4),
    ),
)
LOST = SameFailure(("lost-write",))
ASKED = Asked(seed=9, time_limit_s=90.0)


def _times(pace: PlayingPace, *events: int) -> tuple[list[float], float]:
    asked = scaled(ASKED, SCHEDULE, SmallerRun(events, pace), PATH)
    assert asked.schedule is not None
    return [each.at_s for each in asked.schedule.schedule.injections], asked.time_limit_s


def test_each_pace_takes_more_time_away() -> None:
    """The end, the beginning, what lies between, and most of the end; what overlaps still does."""
    assert _times(PlayingPace.AS_IT_WAS, 0, 1, 2) == ([20.0, 21.5, 60.0], 90.0)
    assert _times(PlayingPace.CUT, 0, 1, 2) == ([20.0, 21.5, 60.0], 71.0)
    assert _times(PlayingPace.CUT, 0, 1) == ([20.0, 21.5], 33.0)
    assert _times(PlayingPace.SHIFTED, 0, 1, 2) == ([WARMUP_S, WARMUP_S + 1.5, 44.0], 55.0)
    closed = WARMUP_S + 3.0 + FAULTS["kill-leader"].recovery_s
    assert _times(PlayingPace.CLOSED, 0, 1, 2) == ([WARMUP_S, WARMUP_S + 1.5, closed], 22.0)
    assert _times(PlayingPace.SHORT, 0, 1, 2) == ([WARMUP_S, WARMUP_S + 1.5, closed], 15.0)
    assert _times(PlayingPace.SHORT) == ([], WARMUP_S + 3.0)


@given(st.sets(st.integers(0, 2)), st.sampled_from(PlayingPace))
def test_a_candidate_is_never_longer_than_the_whole(events: set[int], pace: PlayingPace) -> None:
    """Nothing comes later than it did, each keeps its draws, and the schedule can be run as it is."""
    asked = scaled(ASKED, SCHEDULE, SmallerRun(tuple(sorted(events)), pace), PATH)
    resolve(asked)
    assert asked.schedule is not None and asked.time_limit_s <= ASKED.time_limit_s
    of = {each.replays: each for each in SCHEDULE.injections}
    for each in asked.schedule.schedule.injections:
        assert each.at_s <= of[each.replays].at_s
        assert replace(each, at_s=0.0) == replace(of[each.replays], at_s=0.0)


def test_the_load_may_do_with_less() -> None:
    """One reader, one process, fewer producers, a lower rate; not those that the workload needs or that are least."""
    experiment, _ = resolve(replace(ASKED, rate=1_000, load_processes=2))
    assert load_steps(experiment) == {
        "readers": (("confluent",), ("native",)),
        "load_processes": (1,),
        "users": (1, 3),
        "rate": (62, 250, 500),
    }
    least, _ = resolve(replace(ASKED, rate=20, users=1, partitions=1, readers=("native",)))
    assert load_steps(least) == {}
    assert set(load_steps(resolve(replace(ASKED, workload="bank"))[0])) <= {"readers", "rate"}
    asked = scaled(ASKED, SCHEDULE, SmallerRun((), PlayingPace.CUT, (("users", 1), ("rate", 62))), PATH)
    assert (asked.users, asked.rate) == (1, 62)


def _check(count: int, allowed: int = 0, by: str | None = None, **more: Any) -> dict[str, Any]:
    return {"count": count, "allowed_count": allowed, "explained_by": by, "withheld": False, "failure": None, **more}


VERDICT = {
    "checks": {
        "lost-write": _check(5, 2),
        "log-gap": _check(3, by="lost-write"),
        "unseen": _check(1, by="log-gap"),
        "duplicate": _check(4, 4),
        "poll-skip": _check(2, by="duplicate"),
        "stale": _check(0),
    }
}


def test_a_run_fails_as_the_anomalies_do_that_lead() -> None:
    """What the settings forbid and no other forbidden one explains; a try must have all of them."""
    assert forbidden(VERDICT) == {"lost-write": 3, "log-gap": 3, "unseen": 1, "poll-skip": 2}
    assert leading(VERDICT) == ("lost-write", "poll-skip")
    assert SameFailure(("lost-write", "poll-skip")).outcome(VERDICT) is TryOutcome.FAILED
    assert SameFailure(("lost-write", "stale")).outcome(VERDICT) is TryOutcome.PASSED
    assert SameFailure(("duplicate",)).outcome(VERDICT) is TryOutcome.PASSED, "it is allowed"
    assert SameFailure(("duplicate",), frozenset({"duplicate"})).outcome(VERDICT) is TryOutcome.FAILED, (
        "that was asked for"
    )


@pytest.mark.parametrize("silent", [{"withheld": True}, {"failure": "no"}])
def test_a_check_that_says_nothing_is_no_pass(silent: dict[str, Any]) -> None:
    """Nor is a run without a verdict; what was found all the same counts."""
    assert LOST.outcome({"checks": {"lost-write": _check(0, **silent)}}) is TryOutcome.UNRESOLVED
    assert LOST.outcome({"checks": {}}) is TryOutcome.UNRESOLVED
    assert LOST.outcome(None) is TryOutcome.UNRESOLVED
    assert LOST.outcome({"checks": {"lost-write": _check(1, **silent)}}) is TryOutcome.FAILED


def test_a_run_that_could_not_be_judged_is_no_pass() -> None:
    """Its verifier died, or its evidence is incomplete: it would lower how often the run is said to fail."""
    assert LOST.outcome(undecidable("the verifier was killed by signal 9").to_json()) is TryOutcome.UNRESOLVED
    assert LOST.outcome({"checks": {"lost-write": _check(0, valid="unknown")}}) is TryOutcome.UNRESOLVED
    assert LOST.outcome({"checks": {"lost-write": _check(1, valid="unknown")}}) is TryOutcome.FAILED
    # what is unknown only because no fault bit was judged: it did not fail
    assert LOST.outcome({"verdict": "unknown", "checks": {"lost-write": _check(0, valid=True)}}) is TryOutcome.PASSED


def test_when_an_anomaly_was_seen_is_looked_for_in_its_examples() -> None:
    """The earliest time in the run that one of them names."""
    examples = [{"detail": {"ack_ns": 70, "offset": 3}, "context": {"rows": [{"complete_ns": 40}, {"at_ns": 4}]}}]
    verdict = {"checks": {"lost-write": {**_check(1), "examples": examples}}}
    assert first_seen_ns(verdict, ("lost-write",), 10, 100) == 40
    assert first_seen_ns(verdict, ("lost-write",), 80, 100) is None
    assert first_seen_ns(verdict, ("stale",), 10, 100) is None


@pytest.mark.parametrize(
    ("after", "tries"), [(TryCount(3, 3), 2), (TryCount(3, 2), 4), (TryCount(3, 1), 7), (TryCount(40, 1), 10)]
)
def test_a_test_runs_as_often_as_it_takes(after: TryCount, tries: int) -> None:
    """A bug that is still there goes unnoticed once in twenty times, at most; ten runs are enough for anyone."""
    assert tries_needed(after) == tries


@pytest.mark.parametrize(
    ("after", "said"),
    [(TryCount(3, 1), []), (TryCount(40, 1), ["Its 10 runs miss a bug that fails so seldom in 69% of all cases."])],
)
def test_a_test_that_would_often_be_green_says_so(after: TryCount, said: list[str]) -> None:
    """Ten runs are the most: of a bug that fails too seldom for them, the test tells how often it notices nothing."""
    assert doubts_of(after, tries_needed(after)) == said


@pytest.mark.parametrize("defects", [(), ("lose-acked:0.5",)])
def test_a_schedule_and_a_test_are_left(defects: tuple[str, ...], tmp_path: Path) -> None:
    """The schedule can be played, its story and its command stand above it; the test is Python that names all of it."""
    file = ScheduleFile(tmp_path / "schedule.yaml", SCHEDULE)
    asked = replace(ASKED, schedule=file, acks="1", defects=defects)
    lines = story(
        SameFailure(("lost-write", "log-gap")), "results/latest", SearchEnd.SMALLER, TryCount(3, 3), TryCount(3, 2, 1)
    )
    text = schedule_text(asked, SCHEDULE, lines)
    assert from_yaml(text) == SCHEDULE
    assert "# The whole run failed in 3 of 3 tries, this in 2 of 3 tries (1 more without a verdict).\n" in text
    assert f"--schedule {file.path}" in text and "--acks 1" in text
    test = regression_test(asked, "schedule.yaml", SameFailure(("lost-write", "log-gap")), lines, 4)
    (function,) = (node for node in ast.parse(test).body if isinstance(node, ast.FunctionDef))
    assert function.name == "test_lost_write_log_gap"
    assert "TRIES = 4" in test and "'--acks', '1'" in test.replace('"', "'") and "--schedule" in test
    assert ('== "valid"' in test) == (not defects)
    assert ("pytest.fail" in test) == bool(defects)


@pytest.mark.parametrize("end", SearchEnd)
@pytest.mark.parametrize("after", [TryCount(), TryCount(0, 0, 3), TryCount(1, 1)])
def test_the_story_calls_only_a_smaller_run_the_smallest(end: SearchEnd, after: TryCount) -> None:
    """Else it says that this is the whole, and why; it never counts tries that were not made."""
    text = " ".join(story(LOST, "results/latest", end, TryCount(1, 1), after))
    assert ("the smallest schedule, duration and load" in text) == (end is SearchEnd.SMALLER)
    assert (f"the whole of results/latest, not a smaller run ('gapless shrink': {end.value})" in text) == (
        end is not SearchEnd.SMALLER
    )
    assert "failed in 1 of 1 try" in text and "no tr" not in text


@pytest.mark.parametrize(
    ("defects", "is_allowed", "count", "passes"),
    [
        ((), False, 0, True),
        ((), False, 1, False),
        (("lose-acked",), False, 0, False),
        (("lose-acked",), False, 1, True),
        ((), True, 0, False),
        ((), True, 1, True),
    ],
)
def test_the_test_that_is_left_judges(
    defects: tuple[str, ...],
    is_allowed: bool,
    count: int,
    passes: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A valid run passes it, one with the anomaly fails it; if that was planted, or is allowed, the other way round."""
    checks = {"lost-write": _check(count, count if is_allowed else 0)}
    verdict = {"verdict": "invalid" if count and not is_allowed else "valid", "reasons": [], "checks": checks}
    asked = replace(ASKED, schedule=ScheduleFile(tmp_path / "schedule.yaml", SCHEDULE), defects=defects)
    failure = SameFailure(("lost-write",), frozenset({"lost-write"} if is_allowed else ()))
    text = regression_test(asked, "schedule.yaml", failure, [], 2)
    place: dict[str, Any] = {"__file__": str(tmp_path / "test_it.py"), "__name__": "it"}
    exec(compile(text, "test_it.py", "exec"), place)
    calls: list[list[str]] = []

    class Done:
        stdout = json.dumps(verdict)

    def run(argv: list[str], **_: Any) -> Done:
        calls.append(argv)
        return Done()

    monkeypatch.setattr(place["subprocess"], "run", run)
    if passes:
        place["test_lost_write"](tmp_path)
        assert len(calls) == (1 if defects or is_allowed else 2)
    else:
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            place["test_lost_write"](tmp_path)
    assert all(argv[argv.index("--schedule") + 1] == str(tmp_path / "schedule.yaml") for argv in calls)


@pytest.mark.parametrize(("allowed_count", "is_found"), [(4, False), (3, True)])
def test_what_is_allowed_counts_only_where_it_was_asked_for(allowed_count: int, is_found: bool) -> None:
    """The test that is left asks for a duplicate that is forbidden, beside a loss that the settings allow."""
    failure = SameFailure(("lost-write", "duplicate"), frozenset({"lost-write"}))
    text = regression_test(ASKED, "schedule.yaml", failure, [], 1)
    (line,) = (line.strip() for line in text.splitlines() if line.strip().startswith("found = "))
    checks = {"lost-write": _check(2, 2), "duplicate": _check(4, allowed_count)}
    place: dict[str, Any] = {"checks": checks.items()}
    exec(line, place)
    assert ("duplicate" in place["found"]) == is_found and "lost-write" in place["found"]
