"""Counts the outcomes of a run's transactions as their clients saw them. Owns the count; decides nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import Function, stream_history
from verifier.evidence.history_parts import with_functions
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.transactions.client_rows import ABORTED, COMMITTED, UNKNOWN, outcome

_FUNCTIONS: tuple[Function, ...] = ("begin", "commit", "abort")
_COLUMNS = ("process", "op", "f", "type")


class EndRow(NamedTuple):
    """One row of a history: its process began, committed or aborted its transaction number ``op``."""

    process: str
    op: int
    f: str
    type: str


def transaction_figures(directory: RunDirectory, run: RunModel) -> dict[str, int] | None:
    """The number of transactions with each outcome: committed, aborted, or unknown to the client.

    None if no transaction was begun. Also None if any history is unreadable, or one of a producer or a group member is
    missing: the count would be incomplete.
    """
    absent = {process.name for process in run.evidence.of_role("producers", "members")}
    try:
        found = figures_of(_rows(directory, absent))
    except (HistoryError, OSError):
        return None
    return None if absent else found


def figures_of(rows: Iterable[EndRow]) -> dict[str, int] | None:
    """The same count, from rows that begin or end a transaction; None if there are none. Pure."""
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


def _rows(directory: RunDirectory, absent: set[str]) -> Iterator[EndRow]:
    """The rows of all histories. Removes each process that left a history from ``absent``."""
    for path in sorted(directory.history_dir.glob("*.arrow")):
        file, parts = stream_history(path)
        absent.discard(file.process)
        for part in with_functions(parts, _FUNCTIONS, _COLUMNS):
            yield from map(EndRow, *(part[name].to_pylist() for name in _COLUMNS))
