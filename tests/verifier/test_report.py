"""The report's files: what stands in them, and that the page needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.settings import settings as run_settings
from tests.verifier.test_verdict import a_run, audit, closing, found
from verifier.anomalies import NAMES
from verifier.effectiveness import Injected
from verifier.evidence.run_model import DefectSetting, PhaseSpan, RunModel
from verifier.evidence.series import SeriesPoint
from verifier.report.junit import junit_xml
from verifier.report.page import report_html
from verifier.report.summary import LONGEST, summary_md
from verifier.report.timeline import LEFT, MAX_BINS, RIGHT, WIDTH, timeline
from verifier.verdict import Verdict, decide, undecidable

SECOND = 1_000_000_000
FAULTS = [
    Injected("kill-leader", "b1", 3 * SECOND, 6 * SECOND, effective=True, skipped=False, probe={"running": False}),
    Injected("cut-link", "b1-b2", 7 * SECOND, None, effective=False, skipped=False, probe={}),
]
BATCH = {
    "broker": 1, "segment": 0, "position": 10, "base_offset": 4, "next_offset": 8, "leader_epoch": 2,
    "producer_id": 1001, "producer_epoch": 0, "base_sequence": 4, "record_count": 4,
}  # fmt: skip


def series(seconds: int, process: str = "producer-1") -> list[SeriesPoint]:
    return [
        SeriesPoint(process, n * SECOND, SECOND, acked=100 + n, latency_p50_ms=2.0, latency_p99_ms=20.0 + n)
        for n in range(1, seconds + 1)
    ]


def page(run: RunModel, verdict: Verdict, seconds: int = 10) -> str:
    return report_html(run, FAULTS, verdict, series(seconds))


@pytest.fixture
def bad() -> Verdict:
    """A verdict with a cause, a consequence and something allowed."""
    neighbour = {**BATCH, "first_sequence": 0, "last_sequence": 3, "first_offset": 0, "last_offset": 3}
    context = {"stream_before": neighbour, "acknowledged": [{"offset": 7, "process": "p<1>", "complete_ns": SECOND}]}
    copies = {"copies": [{**BATCH, "offset": 5}, {**BATCH, "offset": 50}]}
    anomalies = [
        replace(found("lost-write", count=12), context=context),
        replace(found("inconsistent-offsets", "read"), context={"batch_at": [BATCH]}),
        replace(found("duplicate", "unidentified", count=3), context=copies),
    ]
    return decide(a_run(settings=run_settings(idempotence=False, rate=0.0)), audit(*anomalies), closing(*FAULTS))


class Links(HTMLParser):
    """Collects everything that a page could load, and the elements that run code."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]


def test_the_page_needs_nothing_but_itself(bad: Verdict) -> None:
    """No script, no reference, no inline style: its policy forbids everything but its own style sheet, by hash."""
    html = page(a_run(), bad)
    links = Links()
    links.feed(html)
    assert links.references == []
    assert not links.tags & {"script", "img", "link", "iframe", "object", "embed", "form"}
    assert not {name for name in links.attributes if name.startswith("on") or name == "style"}
    assert "http://" not in html
    assert "https://" not in html
    assert "url(" not in html
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert style is not None
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy[1].replace("&#39;", "'") == f"default-src 'none'; style-src 'sha256-{digest}'"


def test_the_page_leads_with_the_verdict_and_the_cause(bad: Verdict) -> None:
    """Verdict and reasons come first, the cause before its consequence, what is allowed apart from both."""
    html = page(a_run(settings=run_settings(idempotence=False)), bad)
    order = [
        "<h1>invalid</h1>", "<li>lost-write:", 'id="lost-write"', "a consequence of lost-write",
        "allowed by the settings", "idempotence is off", "Faults as they happened", "gapless run --seed 1",
    ]  # fmt: skip
    positions = [html.index(each) for each in order]
    assert positions == sorted(positions)


def test_deliberate_deletion_stands_beside_the_acknowledged(bad: Verdict) -> None:
    """In the page and the summary, and in neither of them where nothing was deleted."""
    told = "1,234 deleted by retention or DeleteRecords"
    some = replace(bad, stats={**bad.stats, "deleted": 1234})
    assert told in page(a_run(), some) and told not in page(a_run(), bad)
    assert "deleted by retention or DeleteRecords | 1,234" in summary_md(a_run(), FAULTS, some)
    assert "DeleteRecords" not in summary_md(a_run(), FAULTS, bad)


def test_an_example_shows_the_gap_between_its_neighbours(bad: Verdict) -> None:
    """Stream, sequence, offsets, producer id and base sequence of what stands before; who was told what."""
    html = page(a_run(), bad)
    card = html[html.index('id="lost-write"') : html.index("a consequence of")]
    for text in ("s1/3", "1001 / 0", "missing", "s1/4", "acknowledged", "offset 7", "p&lt;1&gt;"):
        assert text in card, text


def test_what_comes_from_outside_is_escaped(bad: Verdict) -> None:
    """Names, reasons and probes are text, never markup."""
    run = a_run(name="<script>alert(1)</script>", defects=[DefectSetting("<b>", 0.5)], problems=["</style><i>"])
    verdict = bad.doubted("<img src=x>")
    html = page(run, verdict)
    assert "<script>" not in html
    assert "<img" not in html
    assert "</style><i>" not in html


def test_a_long_run_is_drawn_within_bounds(bad: Verdict) -> None:
    """An hour of load makes wider bins, says so, and keeps the page small."""
    html = page(a_run(), bad, seconds=3600)
    assert len(html) < 1 << 20
    assert "Each point covers 6 s." in html
    drawn = timeline(a_run(), FAULTS, series(3600), bad.availability)
    assert all(len(line.path.split()) <= MAX_BINS + 1 for chart in drawn.charts for line in chart.lines)


def test_the_time_line_lies_within_its_frame(bad: Verdict) -> None:
    """Bars, phases and curves keep to the axis, whatever their times; each kind of fault has a lane."""
    phases = [PhaseSpan("warm up", -5 * SECOND, 3 * SECOND), PhaseSpan("chaos", 3 * SECOND, None)]
    drawn = timeline(a_run(phases=phases), FAULTS, series(10), bad.availability)
    assert [lane.label for lane in drawn.lanes][:2] == ["kill-leader", "cut-link"]
    for bar in [*drawn.phases, *(bar for lane in drawn.lanes for bar in lane.bars)]:
        assert bar.x >= LEFT
        assert bar.x + bar.width <= WIDTH - RIGHT + 3
    assert [bar.kind for lane in drawn.lanes[:2] for bar in lane.bars] == ["bit", "missed"]
    assert [len(chart.lines) for chart in drawn.charts] == [2, 2]
    for chart in drawn.charts:
        for line in chart.lines:
            for _, y in re.findall(r"[ML]([\d.]+),([\d.]+)", line.path):
                assert chart.y - 0.1 <= float(y) <= chart.y + chart.height + 0.1


def test_a_run_without_load_still_has_a_page() -> None:
    """Nothing to draw is said in words."""
    html = report_html(a_run(final=[]), [], undecidable("the run left nothing"), [])
    assert "The load left no series" in html
    assert "the run left nothing" in html


def test_junit_tells_ci_what_is_what(bad: Verdict) -> None:
    """Anomalies are failures, unknown checks are errors, allowed ones pass and say why; so does the evidence."""
    verdict = replace(bad, doubts=("the run was interrupted",))
    unknown = replace(verdict.checks["unseen"], state="unknown", failure="no memory")
    verdict = replace(verdict, checks={**verdict.checks, "unseen": unknown})
    suite = ET.fromstring(junit_xml(Path("/runs/1"), a_run(faults_requested=["kill-leader"]), verdict))
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert suite.get("tests") == str(len(cases)) == "12"
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
    """What a probe or an error brought along never breaks the document."""
    suite = ET.fromstring(junit_xml(Path("x"), a_run(repro="a\x00b\x1bc"), undecidable("bad \x07 bell")))
    assert suite.get("errors") == str(len(NAMES) + 1)


def test_the_summary_fits_a_page_and_is_markdown(bad: Verdict) -> None:
    """Verdict, numbers, anomalies, faults and the way to repeat it; text is escaped, length is bounded."""
    run = a_run(name="a|b*c")
    text = summary_md(run, FAULTS, bad)
    assert text.startswith("# invalid: a\\|b\\*c, seed 1\n")
    for part in ("- **lost-write** (12)", "## Allowed by the settings", "| kill-leader | b1 | yes |", "`gapless run"):
        assert part in text, part
    many = replace(bad, doubts=tuple(f"reason {n} {'x' * 100}" for n in range(2000)))
    assert len(summary_md(run, FAULTS, many)) < LONGEST + 100
