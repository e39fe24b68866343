"""``junit.xml``: one test suite per run, one test case per check, for CI. Owns the mapping of states to JUnit's words.

``<failure>`` is an anomaly that counts, ``<error>`` a check whose answer is unknown (never skipped, which would read as
harmless), and one more case, ``evidence``, carries what keeps the run from being valid.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from verifier.anomalies import BY_NAME
from verifier.evidence.run_model import RunModel
from verifier.verdict import CheckResult, Verdict


def junit_xml(path: Path, run: RunModel, verdict: Verdict) -> str:
    """The document as text."""
    faults = "+".join(run.faults_requested) or "none"
    classname = f"{run.name}.{faults}"
    cases = [_case(classname, check) for check in verdict.checks.values()]
    cases.append(_evidence(classname, verdict))
    suite = ET.Element(
        "testsuite",
        name=f"gapless.{run.name}",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped="0",
        timestamp=run.started.removesuffix("Z"),
        time="0",
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("verdict", verdict.verdict),
        ("seed", str(run.seed)),
        ("run_dir", str(path)),
        ("repro", run.repro),
        *((f"version.{name}", version) for name, version in sorted(run.versions.items())),
    ):
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
        message = _clean(check.failure or "the evidence is incomplete")
        ET.SubElement(case, "error", message=message, type="unknown").text = text
    elif check.allowed_count:
        reasons = {example.allowed for example in check.examples if example.allowed}
        allowed = f"{check.allowed_count} allowed: {'; '.join(sorted(reasons))}\n{text}"
        ET.SubElement(case, "system-out").text = _clean(allowed)
    return case


def _evidence(classname: str, verdict: Verdict) -> ET.Element:
    case = ET.Element("testcase", classname=classname, name="evidence", time="0")
    if verdict.doubts:
        text = _clean("\n".join(verdict.doubts))
        ET.SubElement(case, "error", message=_clean(verdict.doubts[0]), type="unknown").text = text
    return case


def _clean(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(each if each >= " " or each in "\t\n" else "\N{REPLACEMENT CHARACTER}" for each in text)
