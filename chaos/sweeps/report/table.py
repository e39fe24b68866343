"""The table of a sweep on a terminal. Owns its columns and colors, and how it fits into a narrow terminal.

The labels of a row are one column. Columns that do not fit next to it go into a second table below, so that no text is
cut off. Does not own the texts (``words``).
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from chaos.sweeps.model import Sweep
from chaos.sweeps.report.words import HEADINGS, WORDS, columns, figures
from chaos.sweeps.summary import MatrixRow

_STYLES = {
    "valid": "green", "invalid": "red", "unknown": "yellow", "interrupted": "yellow",
    "unjudged": "yellow", "failed": "bold red",
    "NO": "red", "yes": "green",
}  # fmt: skip
#: On a narrow terminal, these columns are in a separate table.
_SECOND = ("settings allow", "documented", "shown", "records/s")
#: A terminal that is this wide has room for all columns in one table.
WIDE = 140
#: The number of spaces between two columns.
_GAP = 2


def tables(sweep: Sweep, rows: Sequence[MatrixRow], width: int) -> list[Table]:
    """All rows, in one table or two, to fit a terminal that is ``width`` characters wide."""
    title = f"sweep {sweep.name}: {sweep.summary}"
    wanted = columns(rows)
    if width >= WIDE:
        return [_table(sweep, rows, wanted, title, width)]
    parts = [[index for index in wanted if (HEADINGS[index] in _SECOND) == second] for second in (False, True)]
    return [_table(sweep, rows, part, title if not number else "", width) for number, part in enumerate(parts) if part]


def _table(sweep: Sweep, rows: Sequence[MatrixRow], wanted: Sequence[int], title: str, width: int) -> Table:
    """A table of all rows with the columns ``wanted``. A line separates rows with different values of ``across``."""
    grid = Table(
        title=title or None, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
        pad_edge=False, show_edge=False,
    )  # fmt: skip
    keys = [", ".join(row.labels.values()) for row in rows]
    longest = max(map(len, keys), default=0)
    # The labels are never wrapped, only their heading.
    grid.add_column(textwrap.fill(", ".join(rows[0].labels), longest, break_on_hyphens=False), width=longest)
    texts = {index: [HEADINGS[index], *(figures(row)[index] for row in rows)] for index in wanted}
    for index, room in _widths(texts, width - longest).items():
        name = HEADINGS[index]
        grid.add_column(name, justify="left" if name in WORDS else "right", width=room)
    for key, row, following in zip(keys, rows, [*rows[1:], None], strict=True):
        told = figures(row)
        end = following is not None and row.labels.get(sweep.across) != following.labels.get(sweep.across)
        grid.add_row(
            key,
            *(Text(told[index], style=_STYLES.get(told[index].partition(" ")[0], "")) for index in wanted),
            end_section=end and len(row.labels) > 1,
        )
    return grid


def _widths(texts: Mapping[int, Sequence[str]], room: int) -> dict[int, int]:
    """The width of each column. If ``room`` is short, the widest columns are wrapped first, between words only."""
    widths = {index: max(map(len, cells)) for index, cells in texts.items()}
    least = {index: max(len(word) for cell in cells for word in cell.split()) for index, cells in texts.items()}
    while sum(widths.values()) + _GAP * len(widths) > room:
        foldable = [index for index in widths if widths[index] > least[index]]
        if not foldable:
            break
        widths[max(foldable, key=lambda index: widths[index])] -= 1
    return widths
