"""What ``--out`` leaves of a judged history: ``verdict.json``, ``summary.md``, ``junit.xml`` and ``anomalies/``.

Owns how they look. ``anomalies/<check>.parquet`` and ``.csv`` have one row for every anomaly, not only the examples.
Takes a finished verdict and adds no judgment of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from verifier.evidence.run_directory import write_json_atomic, write_text_atomic
from verifier.operations.anomalies import BY_NAME
from verifier.operations.findings import Findings
from verifier.operations.model import IntArray
from verifier.operations.pairing import Operations
from verifier.operations.verdict import ClientVerdict
from verifier.verdict import CheckResult

ANOMALIES = "anomalies"
SHOWN = 3


def write_reports(out: Path, judged: ClientVerdict) -> None:
    """Write everything into ``out``, which is made if absent; ``verdict.json`` comes last. Raises ``OSError``."""
    out.mkdir(parents=True, exist_ok=True)
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
    """One row per anomaly: names of key and values as text, the operations' indices; null where nothing applies."""
    names = operations.history.names

    def text(numbers: IntArray, codes: IntArray) -> list[str | None]:
        return [None if each < 0 else str(names.name(int(codes[each]))) for each in numbers.tolist()]

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
            "delta": pa.array(found.delta, pa.int64()),
            "cycle": pa.array(_circles(operations, found), pa.string()),
        }
    )


def _circles(operations: Operations, found: Findings) -> list[str | None]:
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
    yield f"# {verdict.verdict}: {_inline(judged.path.name)}"
    yield ""
    for reason in verdict.reasons:
        yield f"- {_inline(reason)}"
    if verdict.reasons:
        yield ""
    yield "|  |  |"
    yield "|---|---|"
    words_of = {"acked": "acknowledged", "unknown": "outcome unknown to the client"}
    for name in ("acked", "read", "unknown", "failed", "operations", "processes", "keys"):
        words = words_of.get(name, name)
        yield f"| {words} | {verdict.stats.get(name, 0):,} |"
    yield ""
    for title, chosen in (
        ("Anomalies", [check for check in verdict.checks.values() if check.forbidden_count]),
        ("Allowed by the options", [check for check in verdict.checks.values() if check.allowed_count]),
    ):
        if chosen:
            yield f"## {title}"
            yield ""
            for check in chosen:
                yield from _anomaly(check)
            yield ""
    yield "## What this verdict cannot see"
    yield ""
    for note in judged.notes:
        yield f"- {note}"


def _anomaly(check: CheckResult) -> Iterator[str]:
    under = f", explained by {check.explained_by}" if check.explained_by else ""
    yield f"- **{check.name}** ({check.count:,}{under}): {BY_NAME[check.name].summary}"
    for example in check.examples[:SHOWN]:
        yield f"  - {_inline(example.text)}{f' (allowed: {_inline(example.allowed)})' if example.allowed else ''}"


def _inline(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    for character in "\\`*_|<>[]":
        text = text.replace(character, "\\" + character)
    return " ".join(text.split())


def junit_xml(judged: ClientVerdict) -> str:
    """One test suite, one case per check, and the case ``evidence`` for what keeps the history from being valid."""
    classname = f"operations.{judged.path.stem}"
    cases = [_case(classname, check) for check in judged.verdict.checks.values()]
    evidence = ET.Element("testcase", classname=classname, name="evidence", time="0")
    if judged.verdict.doubts:
        error = ET.SubElement(evidence, "error", message=_clean(judged.verdict.doubts[0]), type="unknown")
        error.text = _clean("\n".join(judged.verdict.doubts))
    cases.append(evidence)
    suite = ET.Element(
        "testsuite",
        name=f"gapless.{judged.path.name}",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped="0",
        time="0",
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in (("verdict", judged.verdict.verdict), ("history", str(judged.path))):
        ET.SubElement(properties, "property", name=name, value=_clean(value))
    suite.extend(cases)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(classname: str, check: CheckResult) -> ET.Element:
    case = ET.Element("testcase", classname=classname, name=check.name, time="0")
    text = _clean("\n".join(example.text for example in check.examples))
    if check.state == "invalid":
        message = f"{BY_NAME[check.name].summary} ({check.forbidden_count})"
        ET.SubElement(case, "failure", message=message, type=check.name).text = text
    elif check.state == "unknown":
        message = _clean(check.failure or "the history does not tell")
        ET.SubElement(case, "error", message=message, type="unknown").text = text
    elif check.allowed_count:
        reason = check.examples[0].allowed or ""
        ET.SubElement(case, "system-out").text = _clean(f"{check.allowed_count} allowed: {reason}\n{text}")
    return case


def _clean(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(
        each if (each >= " " or each in "\t\n") and not "\ud800" <= each <= "\udfff" else "\N{REPLACEMENT CHARACTER}"
        for each in text
    )
