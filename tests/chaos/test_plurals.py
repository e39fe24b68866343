"""Texts that count what there is one of."""

from __future__ import annotations

from pathlib import Path

from chaos.commands.sweep import _cost
from chaos.experiment.asked import Asked
from chaos.experiment.forms import ScheduleFile
from chaos.schedules.model import Injection, Schedule
from chaos.shrinking.scale import words_of
from chaos.shrinking.smaller_run import TryCount
from chaos.sweeps.catalogue import find_sweep
from chaos.sweeps.model import Wanted
from verifier.report.html import cut
from verifier.report.words import _joined


def test_one_of_a_thing_is_singular_wherever_it_is_counted() -> None:
    """Cells, minutes, faults, producers, tries, and what a page leaves out."""
    fault = ScheduleFile(Path("s.yaml"), Schedule(1, (Injection(4.0, "kill-leader", 2.0),)))
    assert [
        _cost(find_sweep("seeds")(Wanted(seeds=(1,))).cells),
        words_of(Asked(seed=1, users=1, schedule=fault)),
        str(TryCount(1, 1)),
        cut("ab", 1),
        _joined(["a"], 2),
    ] == [
        "1 cell, 1 minute of load, and most of a minute more for each",
        "1 fault (kill-leader at 4 s), 60 s of load, 1 producer",
        "1 of 1 try",
        "a... (1 more character)",
        "a; and 1 more kind of anomaly",
    ]
