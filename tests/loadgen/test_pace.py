"""The open model: records are due by the clock alone, at a constant rate, evenly spread."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadgen.pace import OpenSchedule, partition_of, staggered_start_ns

rates = st.floats(0.01, 1e6)
times = st.integers(0, 10**18)


@given(times, rates, st.integers(0, 10**7))
def test_due_count_is_the_inverse_of_due_time(start_ns: int, rate: float, number: int) -> None:
    """A record is due exactly from its time on, never a nanosecond earlier."""
    schedule = OpenSchedule(start_ns, rate)
    due_ns = schedule.due_ns(number)
    assert schedule.due_count(due_ns) >= number + 1
    assert schedule.due_ns(schedule.due_count(due_ns) - 1) <= due_ns < schedule.due_ns(schedule.due_count(due_ns))
    assert schedule.due_count(due_ns - 1) <= number
    assert schedule.due_count(start_ns - 1) == 0


def test_the_rate_is_kept() -> None:
    """1000 records per second are 60000 in the first minute, the first of them at once."""
    schedule = OpenSchedule(5, 1000.0)
    assert schedule.due_count(5) == 1
    assert schedule.due_count(5 + 60 * 10**9 - 1) == 60_000


@given(st.integers(1, 64), st.floats(0.1, 1e5))
def test_users_are_spread_over_one_period(users: int, rate: float) -> None:
    """No two users of a load start together, and none starts later than one period."""
    starts = [staggered_start_ns(0, user, users, rate) for user in range(users)]
    assert starts == sorted(starts) and starts[0] == 0
    assert starts[-1] <= 1e9 / rate


def test_streams_share_the_partitions_in_turn() -> None:
    """Stream i writes to partition i modulo their number, and to no other."""
    assert [partition_of(stream, 3) for stream in range(7)] == [0, 1, 2, 0, 1, 2, 0]
