"""What shrinking writes: a schedule with its story, and a test that plays it. Makes texts only. Pure.

The test expects a valid run, repeated until a bug would hardly be missed, or says how often it misses one. If bugs were
planted, or the settings allow the anomaly, it expects the verifier to find the anomaly in one of its runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pprint import pformat
from textwrap import fill

from chaos.experiment.asked import Asked
from chaos.experiment.command_line import words
from chaos.schedules.model import Schedule, to_yaml
from chaos.shrinking.failure import SameFailure
from chaos.shrinking.smaller_run import SearchEnd, TryCount
from cluster.process.invocation import command
from verifier.evidence.how_many import how_many

#: The accepted probability that a bug that is still there goes unnoticed.
MISS = 0.05
MOST_TRIES = 10
#: The time limit of one try, on a busy machine.
TRY_S = 600


def tries_needed(after: TryCount) -> int:
    """The number of runs in which a bug that shows this often is hardly ever missed."""
    return max(1, min(MOST_TRIES, math.ceil(math.log(MISS) / math.log(_passes(after)))))


def doubts_of(after: TryCount, tries: int) -> list[str]:
    """A line if this many runs are not enough: how likely all are valid although the bug is there."""
    missed = _passes(after) ** tries
    if missed <= MISS:
        return []
    miss = "misses" if tries == 1 else "miss"
    return [f"Its {how_many(tries, 'run')} {miss} a bug that fails so seldom in {missed:.0%} of all cases."]


def _passes(after: TryCount) -> float:
    """The probability that a run is valid although the bug is there: a little higher than observed."""
    return 1 - (after.failures + 0.5) / (after.runs + 1)


def story(failure: SameFailure, run: str, end: SearchEnd, before: TryCount, after: TryCount) -> list[str]:
    """What the schedule shows and where it comes from, in lines."""
    if end is not SearchEnd.SMALLER:
        return [
            f"{failure}: the whole of {run}, not a smaller run ('gapless shrink': {end.value}).",
            f"It failed in {before}.",
        ]
    again = f"The whole run failed in {before}, this in {after}."
    if not after.tries:
        again = f"The whole run failed in {before}. This failed when it was found, and was not tried again."
    return [f"{failure}: the smallest schedule, duration and load found by 'gapless shrink {run}'.", again]


def schedule_text(asked: Asked, schedule: Schedule, lines: Sequence[str]) -> str:
    """The text of ``schedule.yaml``, which ``gapless run --schedule`` takes."""
    play = f"Play it: {command(words(asked))}"
    return "".join(f"# {line}\n" for line in (*lines, play)) + to_yaml(schedule)


_TEST = '''"""{title}

{story}
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCHEDULE = Path(__file__).with_name({schedule!r})
OPTIONS = {options}
TRIES = {tries}


@pytest.mark.integration
@pytest.mark.full
@pytest.mark.timeout({timeout_s} * TRIES)
def test_{name}(tmp_path: Path) -> None:
    """{rule}"""
    for number in range(TRIES):
        out = str(tmp_path / str(number))
        gapless = [sys.executable, "-m", "chaos.commands.main", "run", *OPTIONS, "--schedule", str(SCHEDULE)]
        done = subprocess.run([*gapless, "--out", out, "-q", "--json"], stdout=subprocess.PIPE, text=True, check=False)
        verdict = json.loads(done.stdout)
{judged}
'''
_VALID = """        assert verdict["verdict"] == "valid", (verdict["reasons"], out)"""
_FOUND = """        checks = verdict["checks"].items()
        found = [name for name, check in checks if check["count"] > {least}]
        if {anomalies} <= {{*found}}:
            return
    pytest.fail(f"none of {{TRIES}} runs had {named}")"""


def _least(failure: SameFailure) -> str:
    """The count that must be exceeded, as an expression: an allowed anomaly counts only if it was asked for by name."""
    if not failure.allowed:
        return 'check["allowed_count"]'
    if failure.allowed >= set(failure.names):
        return "0"
    return f'(0 if name in {tuple(sorted(failure.allowed))} else check["allowed_count"])'


def regression_test(asked: Asked, schedule_name: str, failure: SameFailure, lines: Sequence[str], tries: int) -> str:
    """The text of the test, which lies beside the schedule."""
    options = words(replace(asked, schedule=None))[1:]
    names, named = failure.names, ", ".join(failure.names)
    is_due = bool(asked.defects or failure.allowed)
    least = _least(failure)
    anomalies = "{" + ", ".join(f'"{name}"' for name in names) + "}"
    judged = _FOUND.format(anomalies=anomalies, named=named, least=least) if is_due else _VALID
    return _TEST.format(
        title=f"A schedule that showed {named}.",
        story=fill(" ".join(lines), 110),
        schedule=schedule_name,
        options=pformat(options, width=110, compact=True),
        tries=tries,
        timeout_s=TRY_S,
        name="_".join(names).lower().replace("-", "_"),
        rule=f"One of its runs has {named}." if is_due else f"No {named} anymore: every run is valid.",
        judged=judged,
    )
