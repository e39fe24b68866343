"""What is long says that it works."""

from __future__ import annotations

import pytest

from chaos.commands.long_wait import LongWait


def test_a_line_comes_after_ten_silent_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """And again after ten more; not while something else is said, and never if it is to be quiet."""
    now_ms = 0
    loud = LongWait("judging a run", "verifier.log", quiet=False, now_ms=lambda: now_ms)
    quiet = LongWait("judging a run", "verifier.log", quiet=True, now_ms=lambda: now_ms)
    for later_ms in (9_500, 10_000, 19_500, 20_000):
        now_ms = later_ms
        loud.look()
        quiet.look()
    lines = [f"judging a run: {seconds} s so far; the log is verifier.log" for seconds in (10, 20)]
    assert capsys.readouterr().err.splitlines() == lines
    now_ms = 29_000
    loud.spoken()
    now_ms = 31_000
    loud.look()
    assert capsys.readouterr().err == ""
