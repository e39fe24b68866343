"""Markdown that the summaries of runs and of histories share. Owns the escapes, tables and lists of anomalies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from cluster.process.one_line import printable
from verifier.verdict import CheckResult, Verdict

#: Heads the doubts where an anomaly was found too: an overloaded harness is none.
IN_DOUBT = "Beside that, the evidence is not sufficient"

#: The heading above what a verdict on a cluster that others started says nothing about.
NARROWED = "What this verdict says nothing about"

#: Examples that a summary shows of one anomaly.
SHOWN = 3

_SPECIAL = re.compile(r"[\\`*_|<>\[\]&~#!]")
#: What begins a list or a rule at the start of a line.
_BEGIN = re.compile(r"[-+=]|\d+[.)](?=\s|$)")
#: What GitHub makes a link of.
_LINK = re.compile(r"(?=://)|(?<=www)(?=\.)", re.IGNORECASE)


def inline(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    text = printable(" ".join(text.split()))
    text = _LINK.sub(r"\\", _SPECIAL.sub(r"\\\g<0>", text))
    begin = _BEGIN.match(text)
    return text if begin is None else f"{text[: begin.end() - 1]}\\{text[begin.end() - 1 :]}"


def code(text: str) -> str:
    """Text between backticks, as it is, on one line."""
    text = printable(" ".join(text.split()))
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    edge = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{edge}{text}{edge}{fence}"


def reasons(verdict: Verdict) -> Iterator[str]:
    """What speaks against it as a list, and an empty line; what is only in doubt stands apart from what was found."""
    for part in (verdict.accusations, verdict.doubts):
        if part is verdict.doubts and part and verdict.accusations:
            yield f"{IN_DOUBT}:"
            yield ""
        yield from (f"- {inline(reason)}" for reason in part)
        if part:
            yield ""
    if verdict.narrowed:
        yield f"{NARROWED}:"
        yield ""
        yield from (f"- {inline(line)}" for line in verdict.narrowed)
        yield ""


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
