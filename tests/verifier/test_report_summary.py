"""The report's other files: JUnit for CI, and the summary in Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.verifier.reported import FAULTS, SECOND, bad_verdict
from tests.verifier.test_verdict import a_run, audit, closing, decide, found
from verifier.anomalies import NAMES
from verifier.evidence.run_model import PhaseSpan
from verifier.report.junit import junit_xml
from verifier.report.summary import LONGEST, summary_md
from verifier.verdict import Verdict, undecidable


@pytest.fixture
def bad() -> Verdict:
    return bad_verdict()


def test_junit_tells_ci_what_is_what(bad: Verdict) -> None:
    """Anomalies are failures, unknown checks are errors, allowed ones pass and say why; so does the evidence."""
    verdict = replace(bad, doubts=("the run was interrupted",))
    unknown = replace(verdict.checks["unseen"], state="unknown", failure="no memory")
    verdict = replace(verdict, checks={**verdict.checks, "unseen": unknown})
    suite = ET.fromstring(junit_xml(Path("/runs/1"), a_run(faults_requested=["kill-leader"]), verdict))
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert suite.get("tests") == str(len(cases)) == str(len(NAMES) + 1)
    assert suite.get("failures") == "2"
    assert suite.get("errors") == "2"
    assert cases["lost-write"].get("classname") == "story.kill-leader"
    failure = cases["lost-write"].find("failure")
    assert failure is not None
    assert "s1/4 was acknowledged" in (failure.text or "")
    allowed = cases["duplicate"].find("system-out")
    assert allowed is not None
    assert "idempotence is off" in (allowed.text or "")
    assert cases["unseen"].find("error") is not None
    assert cases["evidence"].find("error") is not None
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert (properties["seed"], properties["run_dir"]) == ("1", "/runs/1")


def test_junit_survives_control_characters() -> None:
    """What a probe or an error brought along never breaks the document, nor do halves of surrogate pairs."""
    run = a_run(name="odd\ud800", repro="a\x00b\x1bc")
    text = junit_xml(Path("x"), run, undecidable("bad \x07 bell \udfff"))
    suite = ET.fromstring(text.encode())
    assert suite.get("errors") == str(len(NAMES) + 1)
    assert suite.get("name") == "gapless.odd\N{REPLACEMENT CHARACTER}"


def test_the_summary_fits_a_page_and_is_markdown(bad: Verdict) -> None:
    """Verdict, numbers, anomalies, faults and the way to repeat it; text is escaped, length is bounded."""
    run = a_run(name="a|b*c")
    text = summary_md(run, FAULTS, bad)
    assert text.startswith("# invalid: a\\|b\\*c, seed 1\n")
    for part in ("- **lost-write** (12)", "## Allowed by the settings", "| kill-leader | b1 | yes |", "`gapless run"):
        assert part in text, part
    many = replace(bad, doubts=tuple(f"reason {n} {'x' * 100}" for n in range(2000)))
    assert len(summary_md(run, FAULTS, many)) < LONGEST + 100


def test_junit_has_the_time_of_the_run(bad: Verdict) -> None:
    """The cases' times sum to the suite's: from the start of the run to the end of its last phase."""
    begin = a_run().started_ns
    phases = [PhaseSpan("load", begin + SECOND, begin + 90 * SECOND), PhaseSpan("final", begin + 90 * SECOND, None)]
    suite = ET.fromstring(junit_xml(Path("x"), a_run(phases=phases), bad))
    times = [float(case.get("time", "nan")) for case in suite.iter("testcase")]
    assert (suite.get("time"), sum(times)) == ("90", 90.0)
    assert ET.fromstring(junit_xml(Path("x"), a_run(phases=[]), bad)).get("time") == "0"


def test_the_summary_names_partitions() -> None:
    """Those where it counts, with how often, beside the examples."""
    verdict = decide(
        a_run(),
        audit(found("lost-write", count=3), found("lost-write", partition=2, count=4000)),
        closing(),
    )
    assert "  - partitions: t-0 (3), t-2 (4,000)" in summary_md(a_run(), [], verdict)
