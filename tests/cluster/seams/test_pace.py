"""The pace of a log: a limit of lines in a period, and a count of those left out."""

from __future__ import annotations

from cluster.seams.pace import Pace


def test_some_lines_in_a_period_and_a_count_of_the_others() -> None:
    """A period begins with its first line, and that line may add how many were left out before it."""
    pace = Pace(2, 10)
    assert [pace.take(now) for now in (5, 6, 7, 14.9)] == [0, 0, None, None]
    assert [pace.take(now) for now in (15, 16, 17)] == [2, 0, None]
    assert [pace.take(now) for now in (100, 110)] == [1, 0]


def test_what_was_left_out_may_have_a_line_of_its_own() -> None:
    """Once its period is over, and only if there is anything to tell. It is the first line of the next period."""
    pace = Pace(1, 10)
    assert pace.take_summary(0) == 0
    assert [pace.take(now) for now in (0, 1, 2)] == [0, None, None]
    assert [pace.take_summary(now) for now in (9, 10, 10)] == [0, 2, 0]
    assert pace.take(11) is None
    assert [pace.take_summary(now) for now in (20, 30)] == [1, 0]
    assert pace.take(30) == 0
