"""Markdown that the summaries of runs and of histories share. Owns the escapes, tables and lists of anomalies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from verifier.verdict import CheckResult

#: Examples that a summary shows of one anomaly.
SHOWN = 3


def inline(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    for character in "\\`*_|<>[]":
        text = text.replace(character, "\\" + character)
    return " ".join(text.split())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, and an empty one. Cells are Markdown already."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def anomaly(check: CheckResult, count: int, summary: str, examples: Iterable[str]) -> Iterator[str]:
    """One item of a list: the anomaly with its count, and its first examples below. Examples are Markdown already."""
    under = f", explained by {check.explained_by}" if check.explained_by else ""
    yield f"- **{check.name}** ({count:,}{under}): {summary}"
    yield from (f"  - {example}" for example in islice(examples, SHOWN))
