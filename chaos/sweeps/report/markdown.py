"""``sweep.md``: the sweep on one page of Markdown. Owns the page; ``words`` has the texts of its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from chaos.sweeps.model import Sweep
from chaos.sweeps.outcome import CellOutcome, made_by
from chaos.sweeps.reach import together
from chaos.sweeps.report.sensitivity_words import markdown
from chaos.sweeps.report.words import HEADINGS, columns, figures
from chaos.sweeps.sensitivity_figures import sensitivity_of
from chaos.sweeps.summary import MatrixRow, claims_line, left_out, ran


def sweep_md(sweep: Sweep, rows: Sequence[MatrixRow], outcomes: Mapping[str, CellOutcome]) -> str:
    """The page as text."""
    return "\n".join(_lines(sweep, rows, outcomes)) + "\n"


def _lines(sweep: Sweep, rows: Sequence[MatrixRow], outcomes: Mapping[str, CellOutcome]) -> Iterator[str]:
    yield f"# sweep {sweep.name}"
    yield ""
    yield sweep.summary
    yield ""
    if line := claims_line(rows):
        yield line
        yield ""
    if others := made_by(list(outcomes.values())):
        yield f"Note: {others}."
        yield ""
    if shown := ran(rows):
        wanted = columns(shown)
        yield f"| {' | '.join([*shown[0].labels, *(HEADINGS[index] for index in wanted)])} |"
        yield f"|{'---|' * (len(shown[0].labels) + len(wanted))}"
        for row in shown:
            told = figures(row)
            yield f"| {' | '.join([*row.labels.values(), *(told[index] for index in wanted)])} |"
        yield ""
    for row in rows:
        for remark in row.reasons:
            yield f"- {', '.join(row.labels.values())}: {' '.join(remark.split())}"
    for why, which in left_out(rows):
        yield f"- {why}: {which}"
    yield ""
    if (measured := sensitivity_of(sweep, outcomes)) is not None:
        yield "## Sensitivity"
        yield ""
        yield from markdown(measured)
    if reached := together(sweep, outcomes).figures():
        yield "Reached by all runs together:"
        yield ""
        yield from (f"- {name}: {text}" for name, text in reached.items())
        yield ""
    for note in sweep.notes:
        yield f"- {note}"
