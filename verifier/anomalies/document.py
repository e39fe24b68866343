"""The reference of all anomalies, made from the checks' docstrings: ``python -m verifier.anomalies.document``.

Owns the text around them and the form: a docstring's first line, its definition and its example, and the causes from
the group's plain data. A new group is found without being listed. The anomalies of operation histories follow, from
their own plain data. A test holds that ``docs/anomalies.md`` is exactly this. Reads the docstrings without importing
the checks, so that no Spark is needed.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from verifier import anomalies
from verifier.anomalies.model import Anomaly
from verifier.operations.anomalies import ANOMALIES as OF_OPERATIONS
from verifier.operations.anomalies import OperationAnomaly

_CHECKS = Path(__file__).resolve().parent.parent / "checks"
#: Characters in a line of the document.
WIDTH = 120
_HEAD = """# Anomalies

<!-- Made by `python -m verifier.anomalies.document`; do not edit. -->

What the verifier looks for: one check each, with its definition and a small example. Each definition also says what is
legal. [verifier.md](verifier.md) explains how a run is judged; a run's report says what its settings permit.

A few terms. The *final leader* of a partition is the one that the final phase found. The *limit* of a replica is the
smaller of the final high watermark and the replica's own log end offset. Replicas are compared from their *start*, the
log start, up to that limit. `s1/3` is sequence 3 of stream 1.

An anomaly may *bring* others: where both are found in the same partitions, the report shows those below it.

The last section defines the [anomalies of operation histories](#anomalies-of-operation-histories).
"""
_OPERATIONS = """## Anomalies of operation histories

What `gapless verify` looks for in the history of a client alone, such as that of a Jepsen kafka workload
([jepsen.md](jepsen.md)). The definitions are those of Jepsen's checker (`jepsen.tests.kafka`) unless they say
otherwise. In the examples, `send 1 7 -> [0 7]` sends the value 7 to key 1 and learns that it is at offset 0, and
`poll {1 [[0 7]]}` reads 7 at offset 0 of key 1. An *index* is a position in a key's log without its gaps. Where one
anomaly brings another in the same keys, the report shows the other below it.
"""


def document() -> str:
    """The whole of docs/anomalies.md."""
    parts = [_HEAD, *_table(), ""]
    group = ""
    for anomaly in anomalies.ANOMALIES:
        title = _titles()[anomaly.name]
        if title != group:
            parts += [f"## {title}", ""]
            group = title
        parts += [*_section(anomaly), ""]
    parts += [_OPERATIONS, *_table_of_operations(), ""]
    for of_operations in OF_OPERATIONS:
        parts += [*_section_of_operations(of_operations), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _table() -> Iterator[str]:
    yield "| Anomaly | What it says |"
    yield "| --- | --- |"
    for anomaly in anomalies.ANOMALIES:
        yield f"| [`{anomaly.name}`](#{anomaly.name.lower()}) | {anomaly.summary} |"


def _table_of_operations() -> Iterator[str]:
    yield "| Anomaly | What it says |"
    yield "| --- | --- |"
    for anomaly in OF_OPERATIONS:
        yield f"| {_link_of_operations(anomaly.name)} | {anomaly.summary} |"


def _link_of_operations(name: str) -> str:
    """Runs and histories share names: the heading of a history's anomaly says so."""
    return f"[`{name}`](#{name.lower()}-in-a-history)"


def _section_of_operations(anomaly: OperationAnomaly) -> Iterator[str]:
    yield f"### {anomaly.name} in a history"
    yield ""
    yield f"{_sentence(anomaly.summary)}."
    yield ""
    yield from textwrap.wrap(f"Definition. {anomaly.definition}", WIDTH, break_long_words=False)
    yield from ["", "```text", anomaly.example, "```"]
    if anomaly.brings:
        yield ""
        yield f"It may bring: {', '.join(map(_link_of_operations, anomaly.brings))}."


def _titles() -> dict[str, str]:
    """The group of each anomaly, as the first words of its module say it: "The anomalies of values: ..."."""
    found = {}
    for module in pkgutil.iter_modules(anomalies.__path__):
        group = importlib.import_module(f"{anomalies.__name__}.{module.name}")
        title = (group.__doc__ or "").removeprefix("The anomalies of ").partition(":")[0]
        for anomaly in getattr(group, "ANOMALIES", ()):
            found[anomaly.name] = title[:1].upper() + title[1:]
    return found


def _section(anomaly: Anomaly) -> Iterator[str]:
    head, _, body = docstring(anomaly.name).partition("\n\n")
    yield f"### {anomaly.name}"
    yield ""
    yield _sentence(" ".join(head.split()).removeprefix(f"{anomaly.name}: "))
    yield ""
    yield from _body(body)
    if anomaly.causes:
        yield ""
        yield "| Cause | |"
        yield "| --- | --- |"
        yield from (f"| `{cause}` | {words} |" for cause, words in anomaly.causes.items())
    if anomaly.brings:
        yield ""
        yield f"It may bring: {', '.join(f'[`{name}`](#{name.lower()})' for name in anomaly.brings)}."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _body(text: str) -> Iterator[str]:
    """The paragraphs as they are; what is indented is an example."""
    for number, paragraph in enumerate(text.strip("\n").split("\n\n")):
        if number:
            yield ""
        lines = paragraph.replace("``", "`").splitlines()
        if all(line.startswith("    ") for line in lines):
            yield from ["```text", *(line[4:] for line in paragraph.splitlines()), "```"]
        else:
            yield from lines


def docstring(name: str) -> str:
    """That of a check's module. Raises ``OSError`` if there is no such check."""
    path = _CHECKS / f"{name.replace('-', '_').lower()}.py"
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


if __name__ == "__main__":
    sys.stdout.write(document())
