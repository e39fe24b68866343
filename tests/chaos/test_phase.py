"""Which phase the web page names: the newest, and chaos only once a fault is due."""

from __future__ import annotations

import pytest

from chaos.conductor.phase import shown_phase
from verifier.evidence.run_model import PhaseSpan

SECOND = 1_000_000_000
BEFORE = PhaseSpan("load starts", 92 * SECOND, 99 * SECOND)
CHAOS = PhaseSpan("chaos", 99 * SECOND)


def shown(*phases: PhaseSpan, first_fault_s: float | None, load_s: float | None, now_s: float) -> tuple[str, float]:
    """The phase and since when, in seconds; the run started at 90 s."""
    load_ns = None if load_s is None else int(load_s * SECOND)
    name, since_ns = shown_phase(
        phases,
        started_ns=90 * SECOND,
        first_fault_s=first_fault_s,
        load_since_ns=load_ns,
        now_ns=int(now_s * SECOND),
    )
    return name, since_ns / SECOND


def test_before_any_phase_the_run_starts() -> None:
    """Since it was started, whatever is planned."""
    for first_fault_s in (None, 0.0, 4.0):
        assert shown(first_fault_s=first_fault_s, load_s=None, now_s=91) == ("start", 90)


@pytest.mark.parametrize("name", ["start", "load starts", "heal", "flush", "final read", "stop"])
def test_any_other_phase_is_what_it_is(name: str) -> None:
    """The newest, since its own begin; that a fault is due or not makes no difference to it."""
    phases = (CHAOS, PhaseSpan(name, 120 * SECOND))
    for now_s in (120, 500):
        assert shown(*phases, first_fault_s=4.0, load_s=99, now_s=now_s) == (name, 120)


@pytest.mark.parametrize(
    ("first_fault_s", "load_s", "now_s", "expected"),
    [
        (4.0, 100.0, 103.999, ("warm up", 99)),
        (4.0, 100.0, 104.0, ("chaos", 104)),
        (4.0, 100.0, 130.0, ("chaos", 104)),
        # the load flowed before the phase began, and a given schedule may begin at once
        (0.0, 98.0, 99.0, ("chaos", 99)),
        (0.5, 98.0, 99.0, ("chaos", 99)),
        # the schedule has not begun: nothing of it is due
        (0.0, None, 99.0, ("warm up", 99)),
        (4.0, None, 500.0, ("warm up", 99)),
        # nothing is planned, so nothing is waited for
        (None, None, 99.0, ("chaos", 99)),
        (None, 98.0, 130.0, ("chaos", 99)),
    ],
)
def test_chaos_is_the_warm_up_until_its_first_fault_is_due(
    first_fault_s: float | None, load_s: float | None, now_s: float, expected: tuple[str, float]
) -> None:
    """The fault's time counts from the load's begin; chaos is shown since then, and never since before its phase."""
    assert shown(BEFORE, CHAOS, first_fault_s=first_fault_s, load_s=load_s, now_s=now_s) == expected
