"""The table of a sweep for a terminal. Owns its columns and colors."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from chaos.sweeps.model import Sweep
from chaos.sweeps.report.words import HEADINGS, columns, figures
from chaos.sweeps.summary import Row

_STYLES = {"valid": "green", "invalid": "red", "unknown": "yellow", "failed": "bold red", "NO": "red", "yes": "green"}
#: Words from the left, figures from the right.
_WORDS = ("verdict", "settings allow", "seeds say", "shown")


def table(sweep: Sweep, rows: Sequence[Row]) -> Table:
    """All rows; a line parts what differs in the dimension that the plot lays across."""
    grid = Table(title=f"sweep {sweep.name}: {sweep.summary}", title_justify="left", header_style="bold")
    wanted = columns(rows)
    for name in rows[0].labels if rows else ():
        grid.add_column(name, no_wrap=True)
    for index in wanted:
        name = HEADINGS[index]
        grid.add_column(name, justify="left" if name in _WORDS else "right", no_wrap=name not in _WORDS)
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        told = figures(row)
        end = following is not None and row.labels.get(sweep.across) != following.labels.get(sweep.across)
        grid.add_row(
            *row.labels.values(),
            *(Text(told[index], style=_STYLES.get(told[index].partition(" ")[0], "")) for index in wanted),
            end_section=end and len(row.labels) > 1,
        )
    return grid
