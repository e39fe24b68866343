"""Shrinking: a simulation that fails, with as few of its moves as still make it fail.

Owns what counts as the same failure, and the trials: each runs the same seed once more with some of its moves. Does not
own which of them are tried (``ddmin``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.simulation.case import Case, told
from tests.simulation.ddmin import smallest
from tests.simulation.oracle import Finding
from tests.simulation.story import Outcome

#: Trials of one case, at most: 8 moves take up to 20, 40 of which 3 are needed take 20 to 40.
MOST_TRIALS = 80
#: Findings that are shown.
SHOWN = 5
#: Findings that others bring with them: what a failure is, any other finding says better.
CONSEQUENCES = frozenset({"unavailable", "leftover"})
#: Findings whose name says too little.
TEXTS = frozenset({"unavailable", "broken"})


@dataclass(frozen=True)
class Shrunk:
    """``case`` fails as the original does, and ``outcome`` is what became of it. ``is_minimal``: without any one or
    two of its moves it does not."""

    case: Case
    outcome: Outcome
    trials: int
    is_minimal: bool

    def __str__(self) -> str:
        """Its line, what it shows, and its events: the moves that are left, and what they did."""
        moves = [f"    move {each.number} at {each.at_s:g} s: {each.name}" for each in self.outcome.moves]
        found = self.outcome.findings
        findings = [f"    {name}: {text}" for name, text in found[:SHOWN]]
        if len(found) > SHOWN:
            findings.append(f"    and {len(found) - SHOWN} findings more")
        few = "fewest" if self.is_minimal else "few, and perhaps not the fewest"
        left = "1 move is" if len(moves) == 1 else f"{len(moves)} moves are"
        head = f"{left} left ({few}, {self.trials} trials):"
        return "\n".join([self.case.line, head, *moves, *findings])


def kind(finding: Finding) -> str:
    """What a finding is, whoever has it, wherever and whenever."""
    name, text = finding
    return f"{name}: {re.sub(r'[0-9.]*[0-9]', 'N', text)}" if name in TEXTS else name


def kind_of_failure(findings: Sequence[Finding]) -> str:
    """The kind of the first finding that is no mere consequence, or of the first."""
    causes = [finding for finding in findings if finding[0] not in CONSEQUENCES]
    return kind((causes or findings)[0])


def shrink(
    case: Case,
    outcome: Outcome,
    progress: Callable[[int, Case, bool], None],
    most_trials: int = MOST_TRIALS,
    run: Callable[[Case], Outcome] = told,
) -> Shrunk:
    """The case with as few of its moves as may be; ``outcome`` is what became of all of them, a failure.

    ``progress`` is told of each trial: its number, the case, and whether it fails in the same way: another way does not
    count.
    """
    wanted = kind_of_failure(outcome.findings)
    latest = outcome
    trials = 0

    def fails(moves: tuple[int, ...]) -> bool:
        nonlocal latest, trials
        trials += 1
        trial = replace(case, moves=moves)
        found = run(trial)
        is_same = wanted in map(kind, found.findings)
        if is_same:
            latest = found
        progress(trials, trial, is_same)
        return is_same

    found = smallest(tuple(each.number for each in outcome.moves), fails, most_trials)
    return Shrunk(replace(case, moves=found.items), latest, found.trials, found.is_minimal)
