"""A bound holds on a slow machine as on a fast one, and a machine that is faster gives nothing away."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.hostile.pace import REFERENCE_S, SAMPLES, slowness


def clock_of(took_s: Sequence[float]) -> list[float]:
    """What the clock says before and after each piece of work."""
    return [moment for each in took_s for moment in (0.0, each)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([1.0] * SAMPLES, 1.0),
        ([2.5] * SAMPLES, 2.5),
        ([2.0] + [9.0] * (SAMPLES - 1), 2.0),
        ([0.4] * SAMPLES, 1.0),
    ],
    ids=["the reference machine", "slower", "interrupted", "faster"],
)
def test_slowness(times: list[float], expected: float) -> None:
    """The fastest sample counts, so that an interrupt excuses no turn; it is never less than one."""
    moments = iter(clock_of([each * REFERENCE_S for each in times]))
    assert slowness(lambda: next(moments)) == pytest.approx(expected)
    assert next(moments, None) is None
