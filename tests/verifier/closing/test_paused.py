"""The lag of a process that a fault had stopped: what its pause explains, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from verifier.closing.paused import own_lag_ms, pauses
from verifier.evidence.series import SeriesPoint
from verifier.witness.effectiveness import Injected

S = 1_000_000_000
PROBE = {"process": "producers", "pid": 7, "stopped": True, "fenced": 2}
PAUSE = Injected("pause-producers", "load process producers", 10 * S, 28 * S, True, False, PROBE, healed_ns=27 * S)


def test_a_pause_is_from_the_injection_to_the_heal() -> None:
    """Of this process, and seen by the probe."""
    assert pauses("producers", {7}, [PAUSE]) == ((10 * S, 27 * S),)
    assert pauses("producers", {8}, [PAUSE]) == ()
    assert pauses("producers-1", {7}, [PAUSE]) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"fault": "pause-leader"},
        {"skipped": True},
        {"healed_ns": None},
        {"probe": {**PROBE, "stopped": False}},
        {"probe": {"error": "not injected"}},
    ],
)
def test_a_name_in_a_record_is_not_enough(changes: dict[str, Any]) -> None:
    """Another fault, one that was skipped, never healed, or that did not stop the process explains nothing."""
    assert pauses("producers", {7}, [replace(PAUSE, **changes)]) == ()


@pytest.mark.parametrize(
    ("time_s", "interval_s", "lag_s", "own_s"),
    [
        (28, 19, 17.2, 0.2),  # the point after the pause
        (28, 19, 25, 8),  # it stood still for longer than that
        (9, 1, 6, 6),  # before it
        (40, 1, 6, 6),  # after it
        (27.5, 1, 3, 2.5),  # half of its interval
        (28, 19, 0.1, 0),
    ],
)
def test_what_a_pause_does_not_explain_is_its_own(time_s: float, interval_s: float, lag_s: float, own_s: float) -> None:
    """Only as much as the process was stopped in the very interval of the point."""
    point = SeriesPoint("producers", int(time_s * S), int(interval_s * S), loop_lag_ms=lag_s * 1000)
    assert own_lag_ms(point, pauses("producers", {7}, [PAUSE])) == pytest.approx(own_s * 1000, abs=1)
