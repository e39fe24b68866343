"""The report's pictures: the time line, lanes and tiles."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import verifier.report
from tests.verifier.reported import FAULTS, SECOND, bad_verdict, page, series
from tests.verifier.test_verdict import a_run, audit, closing, decide
from verifier.evidence.run_model import HarnessHealth, PhaseSpan
from verifier.facts import Found
from verifier.report.drawing import NARROW, Axis
from verifier.report.lanes import leader_lanes
from verifier.report.page import report_html
from verifier.report.summary import summary_md
from verifier.report.tables import faults
from verifier.report.tiles import tiles
from verifier.report.timeline import LEFT, MAX_BINS, RIGHT, WIDTH, timeline
from verifier.surroundings.model import (
    LeaderChange,
    Moments,
    Outcomes,
    Spot,
    SpotView,
    Surroundings,
    ToldSpan,
    example_key,
)
from verifier.verdict import Verdict


@pytest.fixture
def bad() -> Verdict:
    return bad_verdict()


def test_a_long_run_is_drawn_within_bounds(bad: Verdict) -> None:
    """An hour of load makes wider bins, says so, and keeps the page small."""
    html = page(a_run(), bad, seconds=3600)
    assert len(html) < 1 << 20
    assert "Each point covers 6 s." in html
    drawn = timeline(a_run(), FAULTS, series(3600), bad.availability)
    assert all(len(line.path.split()) <= MAX_BINS + 1 for chart in drawn.charts for line in chart.lines)


@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_the_time_line_lies_within_its_frame(bad: Verdict, width: float) -> None:
    """Bars, phases and curves keep to the axis, whatever their times; each kind of fault has a lane."""
    phases = [PhaseSpan("warm up", -5 * SECOND, 3 * SECOND), PhaseSpan("chaos", 3 * SECOND, None)]
    drawn = timeline(a_run(phases=phases), FAULTS, series(10), bad.availability, width=width)
    assert (drawn.width, drawn.right) == (width, width - RIGHT)
    assert [lane.label for lane in drawn.lanes][:2] == ["kill-leader", "cut-link"]
    for bar in [*drawn.phases, *(bar for lane in drawn.lanes for bar in lane.bars)]:
        assert bar.x >= LEFT
        assert bar.x + bar.width <= width - RIGHT + 3
    assert [bar.kind for lane in drawn.lanes[:2] for bar in lane.bars] == ["bit", "missed"]
    assert [len(chart.lines) for chart in drawn.charts] == [2, 2]
    for chart in drawn.charts:
        for line in chart.lines:
            for x, y in re.findall(r"[ML]([\d.]+),([\d.]+)", line.path):
                assert LEFT <= float(x) <= width - RIGHT
                assert chart.y - 0.1 <= float(y) <= chart.y + chart.height + 0.1


def test_a_fault_shows_when_it_was_healed_and_when_it_was_over() -> None:
    """Both times stand in the table, and the bar of the time line is in two parts."""
    each = replace(FAULTS[0], healed_ns=5 * SECOND)
    (row,) = faults([each], 10)["rows"]
    assert (row["healed_ns"], row["over_ns"], row["took"]) == (5 * SECOND, 6 * SECOND, "1,000 ms")
    drawn = timeline(a_run(), [each], series(10), {})
    assert [bar.kind for bar in drawn.lanes[0].bars] == ["bit", "recovering"]
    assert "healed from 5.0 s, over at 6.0 s" in drawn.lanes[0].bars[0].title
    assert faults([each] * 5, 2)["more"] == 3


def test_anomalies_and_open_outcomes_are_on_the_time_line(bad: Verdict) -> None:
    """A lane for each check, allowed ones in another kind; a chart of what got no answer, only where there was any."""
    moments = [Moments("lost-write", False, (SECOND, SECOND + 1, 9 * SECOND), (5, 2, 1)),
               Moments("duplicate", True, (2 * SECOND,), (4,))]  # fmt: skip
    points = [replace(point, unknown=7) for point in series(10)]
    drawn = timeline(a_run(), FAULTS, points, bad.availability, moments)
    lanes = {lane.label: lane.bars for lane in drawn.lanes}
    assert [bar.kind for bar in lanes["lost-write"]] == ["found", "found"]
    assert lanes["lost-write"][0].title.startswith("lost-write: 7 acknowledged at about")
    assert [bar.kind for bar in lanes["duplicate"]] == ["let"]
    assert [line.name for line in drawn.charts[-1].lines] == ["unknown outcome"]
    assert len(timeline(a_run(), FAULTS, series(10), bad.availability).charts) == 2
    assert {kind for kind, _ in drawn.kinds} >= {"found", "let", "bit"}


def test_leaders_have_lanes(bad: Verdict) -> None:
    """Leader and epoch as text where there is room, a smaller ISR as a lower bar, no leader as a color of its own."""
    changes = [
        LeaderChange(0, ("t", 0), 1, 0, (1, 2, 3), "new partition"), LeaderChange(4 * SECOND, ("t", 0), -1, 1, ()),
        LeaderChange(5 * SECOND, ("t", 0), 2, 2, (2, 3)), LeaderChange(6 * SECOND, ("t", 0), 2, 2, (2, 3, 1)),
    ]  # fmt: skip
    drawn = leader_lanes(changes, Axis(0, 10 * SECOND), 3)
    assert drawn is not None
    (lane,) = drawn.lanes
    assert [(bar.kind, bar.text) for bar in lane.bars] == [
        ("b0", "1, e0"), ("none", ""), ("b1 short", "2, e2"), ("b1", ""),
    ]  # fmt: skip
    assert "leader 1, epoch 0, ISR 1,2,3, from 0.0 s (new partition)" in lane.bars[0].title
    assert leader_lanes([], Axis(0, SECOND), 3) is None
    html = report_html(a_run(), FAULTS, bad, series(10), Surroundings(changes=tuple(changes), leaders_from="here"))
    assert "leader, leader epoch and ISR" in html


def test_pictures_are_bounded_too() -> None:
    """A place that reaches over thousands of offsets is cut."""
    wide = Found("log-gap", "offsets", "t", 0, 1, 90_000, None, None, 5, 90_000, {"hole_start": 5, "hole_end": 90_005})
    spot = Spot("t", 0, (5,), ((0, 90_010),), wide)
    told = ToldSpan(("t", 0), "read", "reader-1", False, 0, 90_000, 1, 0, SECOND)
    around = Surroundings(places={spot.key: SpotView(spot, (told,))}, spots={example_key(wide): spot.key})
    html = report_html(a_run(), [], decide(a_run(), audit(wide), closing()), series(5), around)
    assert "s1/5" in html
    assert len(html) < 200_000


def test_brokers_that_stood_still_are_named() -> None:
    """Above half a ZooKeeper session, on the page and in the summary; other processes and shorter turns are not."""
    quick, slow = ({"broker-1": lag_s, "broker-2": 0.1, "proxy": 9.0} for lag_s in (0.2, 1.25))
    for lags, is_named in ((quick, False), (slow, True)):
        run = a_run(harness=HarnessHealth(event_loop_lag_s=lags))
        assert run.settings.session_timeout_ms == 2000
        verdict = decide(run, audit(), closing())
        for text in (page(run, verdict), summary_md(run, [], verdict)):
            assert ("broker-1 for 1.25 s (half a ZooKeeper session is 1.00 s)" in text) == is_named
            assert "broker-2 for" not in text


def test_faults_have_a_color_of_their_own() -> None:
    """Neither by day nor by night that of anomalies, nor that of any curve."""
    style = (Path(verifier.report.__file__).parent / "report.css").read_text(encoding="utf-8")
    for name in ("bit", "recovering"):
        for number, value in enumerate(re.findall(rf"--{name}: (#\w+)", style)):
            others = [
                re.findall(rf"--{other}: (#\w+)", style)[number]
                for other in ("found", "invalid", "unknown", "gap", "acked", "read", "p99", "p50")
            ]
            assert value not in others
    assert "svg .found { fill: var(--found); }" in style and "svg .bit { fill: var(--bit); }" in style


def test_tiles_fill_their_rows(bad: Verdict) -> None:
    """Eight, whatever was measured: rows of four and of two have none alone."""
    lag = replace(bad, stats={**bad.stats, "read_lag": {"worst_ms": 3.0, "partitions": {}}})
    for verdict, run in ((bad, a_run()), (lag, a_run(phases=[]))):
        assert page(run, verdict).count('class="card tile"') == 8
    spans = [
        PhaseSpan("start", 0, SECOND),
        PhaseSpan("chaos", SECOND, 61 * SECOND),
        PhaseSpan("stop", 61 * SECOND, None),
    ]
    told = tiles(a_run(phases=spans, started_ns=0), bad, [], [], None)
    assert ("60.0 s", "under load", "of 61.0 s that the run took") in told


def test_what_was_never_sent_is_called_no_loss(bad: Verdict) -> None:
    """In the tile of what was acknowledged, where losses are looked for; where nothing was reserved, not a word."""
    verdict = replace(bad, stats={"acked": 137_746, "unknown": 0})
    some, none = (tiles(a_run(), verdict, [], [], Outcomes(never_sent=count))[0] for count in (69_704, 0))
    assert some == ("137,746", "acknowledged", "0 of unknown outcome; 69,704 reserved, never sent: not losses")
    assert none[2] == "0 of unknown outcome"
