"""The live line of a run: what somebody who looks at a narrow terminal sees of it."""

from __future__ import annotations

import io

from rich.console import Console

from chaos.conductor.load import LoadStatus
from chaos.conductor.progress import Progress, under_load
from cluster.seams.clock import SystemClock

COUNTS = LoadStatus(acked=123_456_789, acked_per_s=12_345.0, read=123_456_788, backlog=1234, errors=99).sentence()


def test_the_live_line_names_the_fault_first() -> None:
    """Behind the counts it was beyond the 80th column, which a terminal cuts; without a fault nothing stands there."""
    line = under_load("kill-leader, cut-link", 23.4, 60.0, COUNTS)
    assert line == f"fault: kill-leader, cut-link  23/60 s  {COUNTS}"
    assert len(COUNTS) > 70
    assert under_load("", 23.4, 60.0, "acked 1") == "23/60 s  acked 1"


def test_a_load_that_is_over_its_time_says_what_it_waits_for() -> None:
    """A fault that was begun in time is healed, however long that takes; within the time nothing is said."""
    assert under_load("isolate-broker", 72.0, 60.0, "acked 1") == (
        "fault: isolate-broker  72/60 s (over its time: waiting for isolate-broker to end)  acked 1"
    )
    assert (
        under_load("", 72.0, 60.0, "acked 1") == "72/60 s (over its time: waiting for the last fault to end)  acked 1"
    )
    assert under_load("", 60.4, 60.0, "acked 1") == "60/60 s  acked 1"


def test_a_terminal_of_80_columns_shows_the_fault() -> None:
    """The live line begins with the phase, then the fault; the end may be cut off."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80, soft_wrap=True, color_system=None)
    with Progress(SystemClock(), console) as progress:
        progress.phase("chaos")
        progress.status(under_load("kill-leader", 23.4, 60.0, COUNTS))
        assert progress._live is not None
        assert str(progress._live.status).startswith("chaos  fault: kill-leader  23/60 s  acked 123,456,789")


def test_what_goes_on_is_shown_in_the_live_line_or_as_a_line() -> None:
    """On a terminal it replaces what was there; elsewhere it stays, with the time."""
    for is_terminal in (True, False):
        shown = io.StringIO()
        console = Console(file=shown, force_terminal=is_terminal, width=80, soft_wrap=True, color_system=None)
        with Progress(SystemClock(), console) as progress:
            progress.phase("verify")
            progress.still("judging it: 10 s so far")
            if is_terminal:
                assert progress._live is not None
                assert str(progress._live.status) == "verify  judging it: 10 s so far"
            else:
                assert shown.getvalue().splitlines()[-1].endswith("s  judging it: 10 s so far")
