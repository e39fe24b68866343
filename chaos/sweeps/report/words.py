"""The texts in a row of a sweep's table, the same on every page. Pure. Does not own the layout of any page."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.sweeps.model import COUNTED, Cell
from chaos.sweeps.outcome import CellOutcome
from chaos.sweeps.summary import FOUND, MatrixRow, ending
from cluster.process.one_line import printable
from verifier.evidence.how_many import how_many

#: The headings of the columns that follow a row's labels.
HEADINGS = ("verdict", *COUNTED, "settings allow", "documented", "shown", "records/s", "bit", "fired", "found", "as")
#: The columns with words, which are left-aligned. The others have figures and are right-aligned.
WORDS = ("verdict", "settings allow", "documented", "shown", "as")


def figures(row: MatrixRow) -> list[str]:
    """The texts of the columns in ``HEADINGS``. A question mark means that the effect could not be counted."""
    counts = [f"{row.found[name]:,}" if name in row.found else "?" if row.judged else "" for name in COUNTED]
    return [verdict(row), *counts, allowed(row), said(row), shown(row), speed(row), bit(row), *planted(row)]


def verdict(row: MatrixRow) -> str:
    """The verdict; if there were several runs, also how many of them have it."""
    if len(row.verdicts) < 2:
        return row.verdict
    same = row.verdicts.count(row.verdict)
    return f"{row.verdict} {same}/{len(row.verdicts)}"


def allowed(row: MatrixRow) -> str:
    """The effects that the settings allow, by the expectation matrix."""
    return (", ".join(row.allowed) or "nothing") if row.judged else ""


def said(row: MatrixRow) -> str:
    """The effects that the documentation claims."""
    return "" if row.inapplicable else ", ".join(row.claims) or "nothing"


def shown(row: MatrixRow) -> str:
    """Whether the runs show what is claimed; "" if unknown."""
    return {None: "", True: "yes", False: "NO"}[row.shown]


def speed(row: MatrixRow) -> str:
    """Records per second: the median and, with several seeds, the extremes."""
    middle = row.middle_records_per_s
    if middle is None:
        return ""
    spread = f" ({min(row.records_per_s):,.0f}-{max(row.records_per_s):,.0f})" if len(row.records_per_s) > 1 else ""
    return f"{middle:,.0f}{spread}"


def bit(row: MatrixRow) -> str:
    """How many of the injected faults took effect."""
    return f"{row.faults[1]}/{row.faults[0]}" if row.faults[0] else ""


def planted(row: MatrixRow) -> tuple[str, str, str]:
    """How many runs a planted defect fired in, how many of these found it, and which checks found it."""
    runs, fired, found = row.planted
    if not runs:
        return "", "", ""
    names = [f"{name} {row.forbidden[name]:,}" for name in row.finds if name in row.forbidden]
    return f"{fired}/{runs}", f"{found}/{fired}" if fired else "", ", ".join(names)


def key(cell: Cell) -> str:
    """The labels of a cell, including the seed."""
    return ", ".join(cell.labels.values())


def found(outcome: CellOutcome) -> str:
    """The anomalies of one run that its settings do not allow, in the form of its ``RESULT`` line.

    A question mark means that there are none, but that not everything could be counted.
    """
    if outcome.status != "judged":
        return "not judged"
    nothing = "none" if len(outcome.found) == len(COUNTED) else "?"
    return ",".join(f"{name}:{count}" for name, count in outcome.forbidden.items()) or nothing


def red_lines(cell: Cell, outcome: CellOutcome) -> list[str]:
    """The lines about a run that is not valid or whose defect was not found; no lines about any other run.

    They say what was found, what was planted, and how to repeat the run.
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
    """Whether any row claims an effect. If none does, the columns about claims are omitted."""
    return any(row.claims for row in rows)


def columns(rows: Sequence[MatrixRow]) -> list[int]:
    """The indexes in ``HEADINGS`` of the columns that have a text in at least one row."""
    hidden = set() if has_claims(rows) else {HEADINGS.index("documented"), HEADINGS.index("shown")}
    told = [figures(row) for row in rows]
    return [index for index in range(len(HEADINGS)) if index not in hidden and any(row[index] for row in told)]
