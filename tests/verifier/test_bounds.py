"""What headers may say at most, from ``run.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.settings import run_model, settings
from verifier.bounds import MARGIN_MS, bounds, expired_ms
from verifier.closing.wall_clock import OFFSET, ClockShift, known_shift, shift_of
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import PhaseSpan, RunModel

STARTED_MS = 1_700_000_000_000
STARTED = "2023-11-14T22:13:20+00:00"


def model(started: str = STARTED, **fields: object) -> RunModel:
    phases = [PhaseSpan("start", 7_000_000_000, 8_000_000_000), PhaseSpan("stop", 8_000_000_000, 27_500_000_000)]
    return run_model(started=started, **{"started_ns": 7_000_000_000, "phases": phases, **fields})


ZONES = ("+00:00", "Z", "")


@pytest.mark.parametrize("started", [*(f"2023-11-14T22:13:20{zone}" for zone in ZONES), "2023-11-14T23:13:20+01:00"])
def test_the_span_of_a_run(started: str) -> None:
    """From its start to the end of its last phase, which is told by the other clock, and the margin on both sides."""
    found = bounds(model(started))
    assert (found.earliest_ms, found.latest_ms) == (STARTED_MS - MARGIN_MS, STARTED_MS + 20_500 + MARGIN_MS)


def test_what_is_not_known_is_no_bound() -> None:
    """A start that is no time, a phase without its end, no phases, and no producer ids."""
    assert bounds(model("yesterday")).earliest_ms is None
    assert bounds(model("yesterday")).latest_ms is None
    assert bounds(model(phases=[PhaseSpan("start", 0, 5), PhaseSpan("chaos", 5)])).latest_ms is None
    assert bounds(model(phases=[])).latest_ms is None
    assert bounds(model()).producer_ids_below is None
    assert bounds(model(producer_ids_below=2000)).producer_ids_below == 2000


@pytest.mark.parametrize(("setting", "from_zero"), [("gapless", True), ("seed", True), ("kafka", False)])
def test_where_sequences_begin(setting: str, from_zero: bool) -> None:
    """Only Kafka's own rule takes any first sequence of a producer that is not known."""
    assert bounds(model(settings=settings(unknown_producer=setting))).begins_at_zero is from_zero


def test_when_producers_are_forgotten() -> None:
    """By the setting, or Kafka's default; at any time if the end of the run is not known."""
    over_ms = STARTED_MS + 20_500 + MARGIN_MS
    assert expired_ms(model()) == over_ms - 86_400_000
    assert expired_ms(model(settings=settings(producer_id_expiration_ms=5000))) == over_ms - 5_000
    assert expired_ms(model(phases=[])) > over_ms


def samples(path: Path, *offsets: Any) -> RunDirectory:
    """A run directory with these samples; None is one of a version that did not sample the clock."""
    directory = RunDirectory(path).prepare()
    lines = [{"time_ns": 1} if each is None else {"time_ns": 1, OFFSET: each} for each in offsets]
    directory.resources_jsonl.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory


def test_a_clock_that_moved_widens_the_span(tmp_path: Path) -> None:
    """By how far it was found behind and ahead; a producer is forgotten by the clock at its furthest."""
    at_start = STARTED_MS - 7_000
    shift = shift_of(samples(tmp_path, at_start, at_start + 600_000, at_start - 50, at_start + 9), model())
    assert shift == ClockShift(50, 600_000)
    found, steady = bounds(model(), shift), bounds(model())
    assert steady.earliest_ms is not None and steady.latest_ms is not None
    assert (found.earliest_ms, found.latest_ms) == (steady.earliest_ms - 50, steady.latest_ms + 600_000)
    assert expired_ms(model(), shift) == expired_ms(model()) + 600_000


def test_runs_without_samples_keep_their_span(tmp_path: Path) -> None:
    """Those of versions that took no samples of the clock, and those that ended before the first one."""
    assert shift_of(RunDirectory(tmp_path / "none").prepare(), model()) == ClockShift()
    assert shift_of(samples(tmp_path, None, None), model()) == ClockShift()
    assert bounds(model(), ClockShift()) == bounds(model())


@pytest.mark.parametrize("offset", ["soon", 1.5, True, 2**60, -(2**60)])
def test_a_sample_that_is_no_time_is_no_shift(tmp_path: Path, offset: Any) -> None:
    """It widens nothing; the closing of the run raises the doubt."""
    directory = samples(tmp_path, offset)
    with pytest.raises(ValueError, match=OFFSET):
        shift_of(directory, model())
    assert known_shift(directory, model()) == ClockShift()
