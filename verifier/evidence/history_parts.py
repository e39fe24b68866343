"""Rows of a run's histories, selected by their functions and read one part of a file at a time.

Owns the reading that the checks and figures without Spark share, and what a damaged history contributes: the rows
before its damage. ``verifier.completeness`` doubts the run for the damage. Does not own the columns
(``verifier.evidence.history``), and judges nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import Function, stream_history


def history_parts(
    histories: Path,
    functions: Collection[Function],
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """The rows with these functions, file by file; ``columns`` None keeps all columns.

    Damage ends its file, and reading continues with the next one. Raises ``OSError``.
    """
    for path in sorted(histories.glob("*.arrow")):
        try:
            yield from with_functions(stream_history(path)[1], functions, columns)
        except HistoryError:
            continue


def with_functions(
    parts: Iterable[pa.Table], functions: Collection[Function], columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The rows of one history that have these functions."""
    wanted = pa.array(sorted(functions))
    for part in parts:
        rows = part if columns is None else part.select(list(columns))
        yield rows.filter(pc.is_in(part["f"], value_set=wanted))
