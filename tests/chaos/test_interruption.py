"""What an interrupt means to a run, by the phase in which it comes."""

from __future__ import annotations

import pytest

from chaos.conductor.interruption import Interruption
from verifier.evidence.phases import CHAOS, FINAL_READ, HEAL, LOAD_STARTS, START


@pytest.mark.parametrize("phase", [CHAOS, HEAL, FINAL_READ])
def test_the_first_ends_early_and_the_second_stops(phase: str) -> None:
    """Once there is load, what it wrote is read back; whoever asks twice does not wait for that."""
    asked = Interruption(is_judged=True)
    assert not asked.stops_now(phase)
    assert asked.stops_now(phase)
    assert not asked.stops_now(phase), "a run is stopped once"


@pytest.mark.parametrize("phase", [START, LOAD_STARTS])
def test_before_there_is_load_the_first_stops(phase: str) -> None:
    """There is nothing to read back."""
    asked = Interruption(is_judged=True)
    assert asked.stops_now(phase)
    assert not asked.stops_now(phase)


def test_a_run_that_no_one_will_judge_stops_at_once() -> None:
    """A cell of a sweep is run again when the sweep is resumed."""
    assert Interruption(is_judged=False).stops_now(CHAOS)
