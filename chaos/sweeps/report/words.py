"""A row of a sweep in words, the same on every page. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.sweeps.model import COUNTED, Cell
from chaos.sweeps.outcome import CellOutcome
from chaos.sweeps.summary import FOUND, MatrixRow, ending
from cluster.process.one_line import printable
from verifier.evidence.how_many import how_many

#: Headings of what follows a row's labels.
HEADINGS = ("verdict", *COUNTED, "settings allow", "documented", "shown", "records/s", "bit", "fired", "found", "as")
#: Words from the left, figures from the right.
WORDS = ("verdict", "settings allow", "documented", "shown", "as")


def figures(row: MatrixRow) -> list[str]:
    """The columns of ``HEADINGS``. A question mark stands for what could not be counted."""
    counts = [f"{row.found[name]:,}" if name in row.found else "?" if row.judged else "" for name in COUNTED]
    return [verdict(row), *counts, allowed(row), said(row), shown(row), speed(row), bit(row), *planted(row)]


def verdict(row: MatrixRow) -> str:
    """The verdict, and of how many runs, if there were several."""
    if len(row.verdicts) < 2:
        return row.verdict
    same = row.verdicts.count(row.verdict)
    return f"{row.verdict} {same}/{len(row.verdicts)}"


def allowed(row: MatrixRow) -> str:
    """What the expectation matrix lets pass."""
    return (", ".join(row.allowed) or "nothing") if row.judged else ""


def said(row: MatrixRow) -> str:
    """What the documentation claims."""
    return "" if row.inapplicable else ", ".join(row.claims) or "nothing"


def shown(row: MatrixRow) -> str:
    """Whether that came true."""
    return {None: "", True: "yes", False: "NO"}[row.shown]


def speed(row: MatrixRow) -> str:
    """Records per second: the median, and the extremes of several seeds."""
    middle = row.middle_records_per_s
    if middle is None:
        return ""
    spread = f" ({min(row.records_per_s):,.0f}-{max(row.records_per_s):,.0f})" if len(row.records_per_s) > 1 else ""
    return f"{middle:,.0f}{spread}"


def bit(row: MatrixRow) -> str:
    """How many of the faults took effect."""
    return f"{row.faults[1]}/{row.faults[0]}" if row.faults[0] else ""


def planted(row: MatrixRow) -> tuple[str, str, str]:
    """In how many runs a planted defect fired, in how many of these it was found, and as what."""
    runs, fired, found = row.planted
    if not runs:
        return "", "", ""
    names = [f"{name} {row.forbidden[name]:,}" for name in row.finds if name in row.forbidden]
    return f"{fired}/{runs}", f"{found}/{fired}" if fired else "", ", ".join(names)


def key(cell: Cell) -> str:
    """A cell's place in the matrix, the seed too."""
    return ", ".join(cell.labels.values())


def found(outcome: CellOutcome) -> str:
    """The anomalies of one run that its settings do not allow, as its ``RESULT`` line has them.

    A question mark stands for what could not be counted.
    """
    if outcome.status != "judged":
        return "not judged"
    nothing = "none" if len(outcome.found) == len(COUNTED) else "?"
    return ",".join(f"{name}:{count}" for name, count in outcome.forbidden.items()) or nothing


def red_lines(cell: Cell, outcome: CellOutcome) -> list[str]:
    """What was found, what was planted, how to repeat it: of a run that is not valid, or whose defect was not found. Of
    any other, nothing.
    """
    ended = ending(cell, outcome)
    if ended in ("", "valid", FOUND):
        return []
    planted = f" planted={','.join(cell.asked.defects)}" if cell.asked.defects else ""
    why = f"; {outcome.reasons[0]}" if outcome.reasons else ""
    why += f" (and {how_many(len(outcome.reasons) - 1, 'more reason')})" if len(outcome.reasons) > 1 else ""
    lines = [f"{ended}: {key(cell)}: anomalies={found(outcome)}{planted}{why}"]
    return [printable(line) for line in [*lines, *([f"repro: {outcome.repro}"] if outcome.repro else [])]]


def has_claims(rows: Sequence[MatrixRow]) -> bool:
    """Whether the sweep claims anything; one that does not needs no columns for it."""
    return any(row.claims for row in rows)


def columns(rows: Sequence[MatrixRow]) -> list[int]:
    """The indexes of ``HEADINGS`` that say something in these rows."""
    hidden = set() if has_claims(rows) else {HEADINGS.index("documented"), HEADINGS.index("shown")}
    told = [figures(row) for row in rows]
    return [index for index in range(len(HEADINGS)) if index not in hidden and any(row[index] for row in told)]
