"""``report.html``: one page that needs no network and no script. Owns its contents, their order, and its size.

Does not own the words and the markup, which are in the template, or the parts: other modules of this package make the
cards, pictures, tables and the time line. If the page would be larger than ``LARGEST``, it is rendered again with less
content, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verifier.anomalies import ANOMALIES, BY_NAME
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import SeriesPoint
from verifier.excuses.expectation import EVENTS, Expectation
from verifier.report import tables
from verifier.report.drawing import NARROW, WIDTH
from verifier.report.dumps import program
from verifier.report.groups import Cards, evidence_rows, told_rows
from verifier.report.html import self_contained
from verifier.report.lanes import leader_lanes
from verifier.report.occasions import Occasions
from verifier.report.summary import stood_still_text
from verifier.report.tiles import tiles
from verifier.report.timeline import axis_of, timeline
from verifier.report.words import headline
from verifier.surroundings.model import Surroundings
from verifier.telling.markdown import IN_DOUBT, NARROWED
from verifier.verdict import Verdict
from verifier.witness.effectiveness import Injected

__all__ = ["LARGEST", "evidence_rows", "report_html", "told_rows"]

_HERE = Path(__file__).parent

#: The most bytes of a page.
LARGEST = 5_000_000


@dataclass(frozen=True, slots=True)
class Amount:
    """The limits of the page's content: ``rows`` of each table, ``text`` characters of each text."""

    rows: int
    text: int
    pictures: bool
    leaders: bool


#: The limits that are tried in this order, until the page is small enough.
AMOUNTS = (
    Amount(rows=200, text=2_000, pictures=True, leaders=True),
    Amount(rows=50, text=500, pictures=True, leaders=False),
    Amount(rows=20, text=200, pictures=False, leaders=False),
)


def report_html(
    run: RunModel,
    injected: Sequence[Injected],
    verdict: Verdict,
    series: Sequence[SeriesPoint],
    around: Surroundings | None = None,
) -> str:
    """The page as text, at most ``LARGEST`` bytes. Raises ``ValueError`` if it cannot be made that small."""
    html = ""
    for amount in AMOUNTS:
        html = _page(run, injected, verdict, series, around or Surroundings(), amount)
        if len(html.encode()) <= LARGEST:
            return html
    raise ValueError(f"the page would have {len(html.encode()):,} bytes, more than {LARGEST:,}")


def _page(
    run: RunModel,
    injected: Sequence[Injected],
    verdict: Verdict,
    series: Sequence[SeriesPoint],
    around: Surroundings,
    amount: Amount,
) -> str:
    occasions = Occasions.of(run, injected, series, around)
    cards = Cards(verdict, around, occasions, pictures=amount.pictures, called=program(run.repro))
    axis = axis_of(injected, series)
    factor = max((topic.replication_factor for topic in run.topics), default=0)
    expectation = Expectation.of(run).allowances
    # forbidden anomalies come first, so that they have the picture of a place that both share
    groups = cards.groups()
    allowed, more_allowed = cards.allowed()
    return self_contained(
        _HERE,
        "report.html.j2",
        longest=amount.text,
        run=run,
        verdict=verdict,
        reasons=verdict.reasons[: amount.rows],
        accused=len(verdict.accusations),
        in_doubt=IN_DOUBT,
        narrowed=verdict.narrowed,
        narrowed_head=NARROWED,
        more_reasons=max(0, len(verdict.reasons) - amount.rows),
        words=headline(verdict),
        stood_still=stood_still_text(run),
        tiles=tiles(run, verdict, injected, series, around.outcomes, occasions.first_ack_ms),
        locust=[link for link in around.links if link.text.startswith("loadgen/") and link.text.endswith(".html")],
        histories=[link for link in around.links if link.text.startswith("history/")],
        logs=[link for link in around.links if link.text.endswith(".log")],
        sources=_sources(run),
        timelines=[
            timeline(run, injected, series, verdict.availability, around.moments, width) for width in (WIDTH, NARROW)
        ],
        leaders=[
            lanes
            for width in (WIDTH, NARROW)
            if axis is not None
            and amount.leaders
            and (lanes := leader_lanes(around.changes, replace(axis, width=width), factor)) is not None
        ],
        leaders_from=around.leaders_from,
        groups=groups,
        allowed=allowed,
        more_allowed=more_allowed,
        checks=[(BY_NAME[name], check) for name, check in verdict.checks.items()],
        faults=tables.faults(injected, amount.rows),
        unavailability=tables.unavailability(verdict, amount.rows),
        read_lag=tables.read_lag(verdict, amount.rows),
        regions=tables.regions(verdict, around.outcomes),
        partitions=tables.partitions(run, verdict, amount.rows),
        around=around,
        less=amount is not AMOUNTS[0],
        begin_ns=occasions.begin_ns,
        zero=occasions.zero,
        started=_moment(run.started),
        expectation=expectation[: amount.rows],
        events=EVENTS,
        settings=_settings(run),
        causes={anomaly.name: anomaly.causes for anomaly in ANOMALIES},
    )


def _sources(run: RunModel) -> str:
    """The version and commit of gapless that made the run; empty if the run does not record them."""
    version, commit = run.versions.get("gapless", ""), run.versions.get("commit", "")
    return " ".join(part for part in (version and f"gapless {version}", commit and f"commit {commit}") if part)


def _settings(run: RunModel) -> dict[str, str]:
    """The settings and the versions of the run, by name."""
    settings = {name: _in_words(value) for name, value in asdict(run.settings).items()}
    return {**settings, **{f"version of {name}": version for name, version in run.versions.items()}}


def _in_words(value: Any) -> str:
    """A setting in the form of its command-line option, not of Python."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_in_words, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _moment(text: str) -> str:
    """An ISO 8601 time, shortened for people; anything else unchanged."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return text
