"""What is assigned, and where that is, when an exception (Ctrl-C) cuts a change of it short at any line."""

from __future__ import annotations

import sys

import pytest

from cluster.client.consumer.fetching import FetchCore
from cluster.client.offset_listing import EARLIEST_TIMESTAMP
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.consumer.test_fetching import T0, T1, answer, batch, core, result, sent, view
from tests.cluster.client.consumer.test_interrupts import Interrupter

T2 = ("t", 2)


def assigned_again(interrupter: Interrupter, from_committed: bool) -> FetchCore:
    """t-0, of which records wait, and t-1 are assigned; then t-1 and t-2 instead."""
    made = core(EARLIEST_TIMESTAMP)
    answer(made, sent(made), result(T0, records=batch(10, 2)), result(T1))
    before = sys.gettrace()
    sys.settrace(interrupter)
    try:
        made.assign([T1, T2], from_committed=from_committed)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return made


@pytest.mark.parametrize("from_committed", [False, True])
def test_an_interrupted_assign_is_done_or_not(from_committed: bool) -> None:
    """Only records of assigned partitions wait. Each of these has a position, or one is looked for; for no other, as
    soon as reading continues.
    """
    counting = Interrupter(None)
    assert assigned_again(counting, from_committed).assignment.assigned == [T1, T2]
    for at in range(counting.count):
        interrupter = Interrupter(at)
        made = assigned_again(interrupter, from_committed)
        is_done = T2 in made.assignment
        assert [each.offset for each in made.take(9)] == ([] if is_done else [10, 11]), interrupter.where
        made.plan(view(partitions=3), 0)
        looked_for = {*made.resets.outstanding, *made.awaiting}
        assert looked_for == ({T2} if is_done else set()), interrupter.where
        made.assign([T1, T2], from_committed=from_committed)
        assert made.assignment.assigned == [T1, T2], interrupter.where
        assert (T2 in made.awaiting, T2 in made.resets) == (from_committed, not from_committed), interrupter.where


def test_an_interrupted_reset_loses_no_position() -> None:
    """With a policy there is always one, or it is looked for: no poll says that there is none."""
    at = 0
    while True:
        made = core(EARLIEST_TIMESTAMP)
        fetch = sent(made)
        interrupter = Interrupter(at)
        before = sys.gettrace()
        sys.settrace(interrupter)
        try:
            answer(made, fetch, result(T0, int(ErrorCode.OFFSET_OUT_OF_RANGE)), result(T1))
        except KeyboardInterrupt:
            made.abandoned()
        finally:
            sys.settrace(before)
        assert made.take(9) == [], interrupter.where
        assert T0 in made.resets or made.position(T0) == 10, interrupter.where
        if not interrupter.where:
            break
        at += 1
    assert at > 20 and T0 in made.resets


def test_an_answer_about_what_was_given_away_is_passed_over() -> None:
    """The committed offset of a partition that was given away, or was given away and assigned again."""
    made = core(EARLIEST_TIMESTAMP)
    made.assign([T2], from_committed=True)
    number = made.awaiting[T2]
    made.assign([])
    made.resume(T2, number, None)
    made.assign([T2], from_committed=True)
    made.resume(T2, number, None)
    assert T2 in made.awaiting and T2 not in made.resets


@pytest.mark.parametrize("kept", [[], [T0]])
def test_records_that_were_not_handed_over_do_not_outlive_their_assignment(kept: list[tuple[str, int]]) -> None:
    """A poll is interrupted when it has taken records, and then something else is assigned."""
    made = core()
    answer(made, sent(made), result(T0, records=batch(10, 3)), result(T1))
    assert len(made.take(1)) == 1
    made.assign([*kept, T1])
    made.assignment.settle()
    assert made.position(T1) == 0 and not made.take(9)
    assert [made.position(key) for key in kept] == [10 for _ in kept]
