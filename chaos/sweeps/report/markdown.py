"""``sweep.md``: the sweep on one page of Markdown. Owns its wording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.sweeps.model import Sweep
from chaos.sweeps.report.words import HEADINGS, columns, figures
from chaos.sweeps.summary import Row, claims_line


def sweep_md(sweep: Sweep, rows: Sequence[Row]) -> str:
    """The page as text."""
    return "\n".join(_lines(sweep, rows)) + "\n"


def _lines(sweep: Sweep, rows: Sequence[Row]) -> Iterator[str]:
    yield f"# sweep {sweep.name}"
    yield ""
    yield sweep.summary
    yield ""
    if line := claims_line(rows):
        yield line
        yield ""
    if rows:
        wanted = columns(rows)
        yield f"| {' | '.join([*rows[0].labels, *(HEADINGS[index] for index in wanted)])} |"
        yield f"|{'---|' * (len(rows[0].labels) + len(wanted))}"
        for row in rows:
            told = figures(row)
            yield f"| {' | '.join([*row.labels.values(), *(told[index] for index in wanted)])} |"
        yield ""
    for row in rows:
        for remark in (row.inapplicable, *row.reasons):
            if remark:
                yield f"- {', '.join(row.labels.values())}: {' '.join(remark.split())}"
    yield ""
    for note in sweep.notes:
        yield f"- {note}"
