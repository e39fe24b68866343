"""What became of a run's transactions, counted by what their clients were told. Owns the count; decides nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import Function
from verifier.evidence.history_parts import history_parts
from verifier.evidence.run_directory import RunDirectory
from verifier.transactions.client_rows import ABORTED, COMMITTED, UNKNOWN, outcome

_FUNCTIONS: tuple[Function, ...] = ("begin", "commit", "abort")
_COLUMNS = ("process", "op", "f", "type")


class EndRow(NamedTuple):
    """One row of a history: that its process began, committed or aborted its transaction ``op``."""

    process: str
    op: int
    f: str
    type: str


def transaction_figures(directory: RunDirectory) -> dict[str, int] | None:
    """How many transactions were committed, aborted, or are unknown to their clients; None if none was begun."""
    return figures_of(_rows(directory))


def figures_of(rows: Iterable[EndRow]) -> dict[str, int] | None:
    """The same of rows that begin or end a transaction. Pure."""
    ends: dict[tuple[str, int], set[tuple[str, str]]] = defaultdict(set)
    for row in rows:
        if row.op < 0:
            continue  # outside of transactions
        told = ends[row.process, row.op]
        if row.f != "begin":
            told.add((row.f, row.type))
    counted = dict.fromkeys((COMMITTED, ABORTED, UNKNOWN), 0)
    for told in ends.values():
        counted[outcome(told)] += 1
    return counted if ends else None


def figures_text(counted: Mapping[str, int]) -> str:
    """The figures as one line."""
    return f"{counted[COMMITTED]:,} committed, {counted[ABORTED]:,} aborted, {counted[UNKNOWN]:,} with unknown outcome"


def _rows(directory: RunDirectory) -> Iterator[EndRow]:
    # a file that cannot be read makes the run doubtful (verifier.completeness); a figure does without it
    skips = (HistoryError, OSError)
    for part in history_parts(directory.history_dir, _FUNCTIONS, _COLUMNS, skips=skips):
        yield from map(EndRow, *(part[name].to_pylist() for name in _COLUMNS))
