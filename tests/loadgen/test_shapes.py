"""Load shapes: work and time are inverse to each other, and a shape says what its words say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.pace import OpenSchedule
from loadgen.shapes import RateShape, parse_shape
from loadgen.spec import SpecError

BURSTS = {"bursts": {"every_s": 10, "for_s": 2, "factor": 8}}
pieces = st.lists(st.tuples(st.floats(0.1, 100), st.sampled_from([0.0, 0.5, 1.0, 3.0, 40.0])), min_size=1, max_size=5)
shapes = st.builds(RateShape, pieces.filter(lambda each: each[-1][1] > 0).map(tuple), st.booleans())


@given(shapes, st.floats(0.0, 10_000))
def test_seconds_are_the_inverse_of_work(shape: RateShape, work: float) -> None:
    """So much work is due at its time, and time gives the work back."""
    assert shape.work(shape.seconds_of(work)) == pytest.approx(work, rel=1e-9, abs=1e-6)


@given(shapes, st.floats(0.5, 1e5), st.integers(0, 10**6))
def test_due_count_is_the_inverse_of_due_time_under_any_shape(shape: RateShape, rate: float, number: int) -> None:
    """Records are due in their order, each from its time on and never before."""
    schedule = OpenSchedule(10**12, rate, shape)
    due_ns = schedule.due_ns(number)
    assert schedule.due_ns(number + 1) >= due_ns
    count = schedule.due_count(due_ns)
    assert count > number and schedule.due_ns(count - 1) <= due_ns < schedule.due_ns(count)


def test_bursts_come_at_the_end_of_each_period() -> None:
    """Eight seconds at the rate, two at eight times: 24 times the rate in ten seconds, again and again."""
    shape = parse_shape(BURSTS)
    assert [shape.work(seconds) for seconds in (0, 8, 9, 10, 18, 20)] == [0, 8, 16, 24, 32, 48]
    assert OpenSchedule(0, 100.0, shape).due_count(10 * 10**9 - 1) == 2400


def test_the_last_step_is_held() -> None:
    """Twice the rate from the tenth second on, forever; a pause is a step with the factor 0."""
    shape = parse_shape({"steps": [[5, 1], [5, 0], [1, 2]]})
    assert [shape.work(seconds) for seconds in (5, 10, 11, 111)] == [5, 5, 7, 207]
    assert [shape.seconds_of(work) for work in (5, 7, 207)] == [5, 11, 111]


def test_a_constant_shape_changes_nothing() -> None:
    """Also when it is written with several steps."""
    assert parse_shape("constant").is_constant
    assert parse_shape({"steps": [[1, 1], [9, 1]]}).is_constant
    assert not parse_shape({"steps": [[1, 2]]}).is_constant


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("wave", "constant, steps, bursts"),
        (7, "constant, steps, bursts"),
        ({"steps": [[1, 1]], "bursts": {}}, "constant, steps, bursts"),
        ({"steps": []}, "SECONDS, FACTOR"),
        ({"steps": [[1]]}, "SECONDS, FACTOR"),
        ({"steps": [["1", 1]]}, "SECONDS, FACTOR"),
        ({"steps": [[0, 1]]}, "more than 0 seconds"),
        ({"steps": [[1, -1]]}, "0 or more"),
        ({"steps": [[1, float("inf")]]}, "0 or more"),
        ({"steps": [[float("inf"), 1]]}, "more than 0 seconds"),
        ({"steps": [[1, 1], [1, 0]]}, "above 0"),
        ({"bursts": {"every_s": 10}}, "every_s, for_s, factor"),
        ({"bursts": {"every_s": 10, "for_s": 10, "factor": 2}}, "for_s < every_s"),
        ({"bursts": {"every_s": 10, "for_s": True, "factor": 2}}, "for_s of bursts is a number"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(spec: object, says: str) -> None:
    """An impossible shape is refused with what it should be."""
    with pytest.raises(SpecError, match=says):
        parse_shape(spec)  # type: ignore[arg-type]
