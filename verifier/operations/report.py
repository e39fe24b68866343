"""Writes the files of ``--out`` for a judged history: ``verdict.json``, ``summary.md``, ``junit.xml``, ``anomalies/``.

Owns their form. ``anomalies/<check>.parquet`` and ``.csv`` have one row for every anomaly, not only for the examples.
Takes a finished verdict, and judges nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from verifier.evidence.outputs import check_outputs
from verifier.evidence.run_directory import write_json_atomic, write_text_atomic
from verifier.evidence.texts import encodable
from verifier.operations.anomalies import BY_NAME
from verifier.operations.exported import asides
from verifier.operations.findings import Findings
from verifier.operations.model import IntArray
from verifier.operations.pairing import Operations
from verifier.operations.verify_history import ClientVerdict
from verifier.telling.markdown import anomaly, inline, reasons, table
from verifier.telling.suites import Suite, suite_xml
from verifier.verdict import Example

ANOMALIES = "anomalies"
FILES = ("verdict.json", "summary.md", "junit.xml")


def write_reports(out: Path, judged: ClientVerdict) -> None:
    """Writes everything into ``out``, which is created if needed; ``verdict.json`` comes last. Raises ``OSError``.

    Removes the anomalies of a previous verdict. If one of the paths exists and is not such a file or directory, raises
    ``InTheWay`` and changes nothing.
    """
    out.mkdir(parents=True, exist_ok=True)
    check_outputs(out, FILES, [ANOMALIES])
    for name in BY_NAME:
        for form in ("parquet", "csv"):
            (out / ANOMALIES / f"{name}.{form}").unlink(missing_ok=True)
    if judged.operations is not None:
        for found in judged.findings.values():
            if len(found):
                (out / ANOMALIES).mkdir(exist_ok=True)
                table = anomaly_table(judged.operations, found)
                pq.write_table(table, out / ANOMALIES / f"{found.check}.parquet")
                pyarrow.csv.write_csv(table, out / ANOMALIES / f"{found.check}.csv")
    write_text_atomic(out / "summary.md", summary_md(judged))
    write_text_atomic(out / "junit.xml", junit_xml(judged))
    write_json_atomic(out / "verdict.json", judged.to_json())


def anomaly_table(operations: Operations, found: Findings) -> pa.Table:
    """One row per anomaly: key and values by name, operations by index. Fields that do not apply are null."""
    names = operations.history.names

    def text(numbers: IntArray, codes: IntArray) -> list[str | None]:
        return [None if each < 0 else encodable(str(names.name(int(codes[each])))) for each in numbers.tolist()]

    def index(numbers: IntArray) -> list[int | None]:
        return [None if each < 0 else operations.index(each) for each in numbers.tolist()]

    def number(numbers: IntArray) -> list[int | None]:
        return [None if each < 0 else each for each in numbers.tolist()]

    return pa.table(
        {
            "check": pa.array([found.check] * len(found), pa.string()),
            "key": pa.array(text(found.key, operations.keys), pa.string()),
            "value": pa.array(text(found.value, operations.values), pa.string()),
            "offset": pa.array(number(found.offset), pa.int64()),
            "other_value": pa.array(text(found.other, operations.values), pa.string()),
            "operation": pa.array(index(found.operation), pa.int64()),
            "earlier_operation": pa.array(index(found.earlier), pa.int64()),
            "delta": pa.array(found.delta if _is_measured(found.check) else [None] * len(found), pa.int64()),
            "cycle": pa.array(_cycles(operations, found), pa.string()),
        }
    )


def _is_measured(check: str) -> bool:
    """Whether this check measures ``delta``, so that -1 is a distance. For other checks, -1 means none."""
    return check.endswith(("-skip", "-poll", "-send")) or check in ("lost-write", "duplicate", "inconsistent-offsets")


def _cycles(operations: Operations, found: Findings) -> list[str | None]:
    if not found.cycles:
        return [None] * len(found)
    return [
        " ".join(f"{operations.index(step.before)} -{step.kind}->" for step in cycle.steps)
        + f" {operations.index(cycle.steps[0].before)}"
        for cycle in found.cycles
    ]


def summary_md(judged: ClientVerdict) -> str:
    """The history on one page of Markdown."""
    return "\n".join(_lines(judged)) + "\n"


def _lines(judged: ClientVerdict) -> Iterator[str]:
    verdict = judged.verdict
    yield f"# {verdict.verdict}: {inline(judged.path.name)}"
    yield ""
    yield from reasons(verdict)
    words_of = {"acked": "acknowledged", "unknown": "outcome unknown to the client"}
    names = ("acked", "read", "unknown", "failed", "operations", "processes", "keys")
    beside = {name: f" ({aside})" for name, aside in asides(verdict.stats).items()}
    rows = [(words_of.get(name, name), f"{verdict.stats.get(name, 0):,}{beside.get(name, '')}") for name in names]
    yield from table(("", ""), rows)
    for title, chosen in (
        ("Anomalies", [check for check in verdict.checks.values() if check.forbidden_count]),
        ("Allowed by the options", [check for check in verdict.checks.values() if check.allowed_count]),
    ):
        if chosen:
            yield f"## {title}"
            yield ""
            for check in chosen:
                yield from anomaly(check, check.count, BY_NAME[check.name].summary, map(_example, check.examples))
            yield ""
    if judged.cannot_see:
        yield "## What this verdict cannot see"
        yield ""
    for note in judged.cannot_see:
        yield f"- {note}"


def _example(example: Example) -> str:
    allowed = f" (allowed: {inline(example.allowed)})" if example.allowed else ""
    return f"{inline(example.text)}{allowed}"


def junit_xml(judged: ClientVerdict) -> str:
    """One test suite with a case per check, and the case ``evidence`` for the doubts about the history."""
    suite = Suite(
        name=f"gapless.{judged.path.name}",
        classname=f"operations.{judged.path.stem}",
        summaries={name: each.summary for name, each in BY_NAME.items()},
        unanswered="the history does not show it",
        properties=(("verdict", judged.verdict.verdict), ("history", str(judged.path))),
    )
    return suite_xml(suite, judged.verdict)
