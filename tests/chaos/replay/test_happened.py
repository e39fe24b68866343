"""What really happened, from hand-made records: what is repeated, what is fixed, what is left out; and how punctual."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.replay.happened import happened
from chaos.replay.punctuality import punctuality
from chaos.schedules.model import Injection, Schedule, from_yaml, to_yaml

SECOND = 1_000_000_000
BEGAN = 77 * SECOND
PLANNED = Schedule(
    9,
    (
        Injection(4.0, "kill-leader", 3.0, {"partition": 2}),
        Injection(12.0, "cut-link", 2.0, {"partition": 1}),
        Injection(13.0, "pause-leader", 3.0, {"partition": 0}),
        Injection(20.0, "reset", 0.3, {"partition": 1}, {"direction": "request"}),
    ),
)


def begun(number: int, at_s: float, asked_s: float | None = None, probed_s: float = 0.1, **seen: Any) -> dict[str, Any]:
    start_ns = BEGAN + int(at_s * SECOND)
    fault = PLANNED.injections[number].fault
    end_ns = start_ns + int(probed_s * SECOND)
    times = {"start_ns": start_ns, "end_ns": end_ns}
    asked = {"asked_ns": BEGAN + int((asked_s or at_s) * SECOND), "waited": asked_s is not None}
    return {"number": number, "fault": fault, "phase": "inject", **times, "probe": seen, **asked}


def over(number: int, at_s: float) -> dict[str, Any]:
    return {
        "number": number,
        "fault": PLANNED.injections[number].fault,
        "phase": "heal",
        "start_ns": BEGAN + int(at_s * SECOND),
    }


def test_each_injection_comes_again_when_it_came() -> None:
    """At its time to the millisecond, with the numbers of its draws; what it drew and told is fixed by name."""
    record = [begun(0, 4.1237), begun(1, 12.5, direction="response", lossless=False, links=["b1-b2"]), begun(3, 20.0)]
    found = happened(PLANNED, record, BEGAN)
    assert found.without == {"never came": 1}
    assert found.schedule == Schedule(
        9,
        (
            Injection(4.124, "kill-leader", 3.0, {"partition": 2}, {}, True, 0),
            Injection(12.5, "cut-link", 2.0, {"partition": 1}, {"direction": "response", "lossless": False}, True, 1),
            Injection(20.0, "reset", 0.3, {"partition": 1}, {"direction": "request"}, True, 3),
        ),
    )
    assert from_yaml(to_yaml(found.schedule)) == found.schedule


def test_what_waited_is_due_when_it_began_to_wait() -> None:
    """It waits again; of a replay, which looks for its targets before they are due, the time when they were."""
    record = [begun(0, 4.0), begun(1, 15.0, asked_s=14.5), begun(2, 18.0, asked_s=11.5)]
    injections = happened(PLANNED, record, BEGAN).schedule.injections
    assert [(each.at_s, each.replays) for each in injections] == [(4.0, 0), (13.0, 2), (14.5, 1)]
    assert all(each.overlap for each in injections)


def test_what_broke_nothing_is_not_repeated() -> None:
    """Skipped for want of something to break, or left out for want of time."""
    skipped = {**begun(0, 4.0), "phase": "skip"}
    left_out = {**begun(1, 12.0), "phase": "left-out"}
    found = happened(PLANNED, [skipped, left_out, begun(2, 13.0)], BEGAN)
    assert [each.fault for each in found.schedule.injections] == ["pause-leader"]
    assert found.without == {"found nothing to break": 1, "never came": 2}


def test_a_replay_of_a_replay_draws_as_the_first_run() -> None:
    """Numbers of draws are those of the run that drew."""
    first = happened(PLANNED, [begun(1, 12.0), begun(2, 13.0)], BEGAN).schedule
    again = happened(first, [{**begun(1, 12.01), "number": 0}, {**begun(2, 13.02), "number": 1}], BEGAN).schedule
    assert [(each.at_s, each.replays) for each in again.injections] == [(12.01, 1), (13.02, 2)]


@pytest.mark.parametrize("number", [-1, 4])
def test_a_record_of_another_schedule_is_refused(number: int) -> None:
    """An injection that was not planned, or one that began as another fault."""
    with pytest.raises(ValueError, match=r"faults\.jsonl has an injection"):
        happened(PLANNED, [{**begun(0, 4.0), "number": number}], BEGAN)
    with pytest.raises(ValueError, match=r"injection 0 is kill-leader in .*, reset in faults\.jsonl"):
        happened(PLANNED, [{**begun(0, 4.0), "fault": "reset"}], BEGAN)


def test_punctuality_counts_what_has_a_time_of_its_own() -> None:
    """Beginnings and ends; what waited is told, an end that waited for its probe is neither."""
    record = [
        begun(0, 4.012), over(0, 6.995),
        begun(1, 12.5, asked_s=12.0), over(1, 14.5),
        begun(2, 13.0, probed_s=3.5), over(2, 16.5),
        {**begun(3, 20.0), "phase": "skip"},
    ]  # fmt: skip
    found = punctuality(PLANNED, record, BEGAN)
    assert found.deviations_ms == pytest.approx((12.0, -5.0, 0.0, 0.0))
    assert found.largest_ms == pytest.approx(12.0)
    assert found.sentence == (
        "4 events, largest deviation 12 ms, 1 waited, 1 missing "
        "(cut-link at 12 s found nothing to break for 500 ms; reset at 20 s found nothing to break)"
    )
    nothing = punctuality(PLANNED, [], BEGAN)
    assert nothing.largest_ms is None and nothing.sentence.startswith(
        "0 events, 4 missing (kill-leader at 4 s never came"
    )


def test_what_was_not_played_to_its_end_is_told() -> None:
    """One that could not be injected, or was cut short, did not come again, however punctually it began."""
    failed = {**begun(0, 4.0), "probe": {"error": "LinkError('no proxy')"}}
    found = punctuality(Schedule(7, PLANNED.injections[:2]), [failed, over(0, 7.0), begun(1, 12.0)], BEGAN)
    assert found.sentence == (
        "3 events, largest deviation 0 ms, 2 missing "
        "(kill-leader at 4 s failed: LinkError('no proxy'); cut-link at 12 s never ended)"
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 100)), max_size=4, unique_by=lambda each: each[0]))
def test_times_survive_the_way_through_a_file(times: list[tuple[int, float]]) -> None:
    """What is written is played: in the order of times, none before the load."""
    schedule = happened(PLANNED, [begun(number, at_s) for number, at_s in times], BEGAN).schedule
    assert from_yaml(to_yaml(schedule)) == schedule
    assert [each.at_s for each in schedule.injections] == pytest.approx(sorted(at_s for _, at_s in times), abs=0.001)
