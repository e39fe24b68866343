"""The worked examples in the docstrings of ``checks.sequences`` and ``cycles`` are what the code computes."""

from __future__ import annotations

from pathlib import Path

from tests.verifier.operations.histories import Line, counts, history_of, op
from tests.verifier.operations.planted import history, poll, send, together
from verifier.operations.options import JudgeOptions
from verifier.operations.verify_history import ClientVerdict, judge

NAME = Path("history.jsonl")


def judged(*operations: list[Line]) -> ClientVerdict:
    return judge(history_of(history(*operations)), JudgeOptions(), NAME)


def test_a_skip_and_a_step_back() -> None:
    """B passed over 8 at the distance 2, and C went back by 1; offset 3 holds nothing and counts as no value."""
    log = [op(1, "send", [send(1, offset, value)]) for offset, value in ((0, 5), (1, 6), (2, 8), (4, 9))]
    polls = [[(0, 5), (1, 6)], [(4, 9)], [(2, 8)]]
    verdict = judged(*log, *(op(0, "poll", [poll(k1=each)]) for each in polls))
    assert counts(verdict) == {"poll-skip": 1, "nonmonotonic-poll": 1}
    (skip,) = verdict.verdict.checks["poll-skip"].examples
    assert (skip.found.detail["delta"], skip.found.detail["skipped"]) == (2, [8])
    (back,) = verdict.verdict.checks["nonmonotonic-poll"].examples
    assert (back.found.detail["delta"], back.found.detail["value"]) == (-1, 8)


def test_two_transactions_that_read_from_each_other() -> None:
    """One G1c of length 2, and nothing of the kinds that contain it."""
    first = op(0, "txn", [send(1, 0, 7), poll(k2=[(0, 8)])])
    second = op(1, "txn", [send(2, 0, 8), poll(k1=[(0, 7)])])
    verdict = judged(together(first, second))
    assert counts(verdict) == {"G1c": 1}
    (example,) = verdict.verdict.checks["G1c"].examples
    steps = [step["edge"] for step in example.found.detail["cycle"]["steps"]]
    assert steps == ["wr", "wr"]
