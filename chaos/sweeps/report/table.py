"""The table of a sweep for a terminal. Owns its columns, its colors, and how it fits into a narrow one.

The settings of a row are one key. What does not fit beside it goes into a second table below, so that nothing is cut.
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
#: In a narrow terminal these are in a table of their own.
_SECOND = ("settings allow", "documented", "shown", "records/s")
#: A terminal with this many columns has room for all in one table.
WIDE = 140
#: Between two columns.
_GAP = 2


def tables(sweep: Sweep, rows: Sequence[MatrixRow], width: int) -> list[Table]:
    """All rows, in as many tables as a terminal of ``width`` columns needs."""
    title = f"sweep {sweep.name}: {sweep.summary}"
    wanted = columns(rows)
    if width >= WIDE:
        return [_table(sweep, rows, wanted, title, width)]
    parts = [[index for index in wanted if (HEADINGS[index] in _SECOND) == second] for second in (False, True)]
    return [_table(sweep, rows, part, title if not number else "", width) for number, part in enumerate(parts) if part]


def _table(sweep: Sweep, rows: Sequence[MatrixRow], wanted: Sequence[int], title: str, width: int) -> Table:
    """Some columns of all rows; a line parts what differs in the dimension that the plot lays across."""
    grid = Table(
        title=title or None, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
        pad_edge=False, show_edge=False,
    )  # fmt: skip
    keys = [", ".join(row.labels.values()) for row in rows]
    longest = max(map(len, keys), default=0)
    # The key is never folded, only its heading.
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
    """Column -> its width. Where ``room`` is short the widest are folded first, and no word is."""
    widths = {index: max(map(len, cells)) for index, cells in texts.items()}
    least = {index: max(len(word) for cell in cells for word in cell.split()) for index, cells in texts.items()}
    while sum(widths.values()) + _GAP * len(widths) > room:
        foldable = [index for index in widths if widths[index] > least[index]]
        if not foldable:
            break
        widths[max(foldable, key=lambda index: widths[index])] -= 1
    return widths
