"""Events in words: what excused an anomaly, where and when, who led, which fault came before; each reason once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from tests.support.settings import settings as run_settings
from tests.verifier.reported import FAULTS, SECOND, series
from tests.verifier.test_verdict import a_run, audit, closing, decide, found
from verifier.evidence.run_model import RunModel
from verifier.excuses.expectation import ELECTION
from verifier.report.groups import MOST_ALLOWED
from verifier.report.junit import junit_xml
from verifier.report.occasions import Occasions
from verifier.report.page import report_html
from verifier.report.summary import MOST_EVENTS, summary_md
from verifier.report.tables import regions
from verifier.surroundings.model import LeaderChange, Outcomes, Surroundings
from verifier.verdict import Verdict, undecidable


def two_elections() -> tuple[RunModel, Verdict]:
    """acks=1: what two elections of one partition cut off, most by the second."""
    run = a_run(settings=run_settings(acks="1", idempotence=False, rate=0.0))
    losses = [
        replace(
            found("lost-write", count=count, excuse=ELECTION),
            event=f"election of epoch {epoch} at offset {epoch * 10}, about 12:00:01.0",
            event_ns=run.started_ns + at_s * SECOND, epoch=epoch,
        )
        for epoch, count, at_s in ((1, 2, 5), (3, 4, 12))
    ]  # fmt: skip
    return run, decide(run, audit(*losses), closing())


def occasions_of(run: RunModel) -> Occasions:
    """Its load began 1 s after the run; it had two faults, and the second began after a look that saw no leader."""
    begin = run.started_ns
    faults = [replace(FAULTS[0], start_ns=begin + 4 * SECOND, end_ns=begin + 6 * SECOND)]
    seen = [(2, 1, 0), (5, 2, 1), (8, -1, 2), (12, 3, 4)]
    changes = [LeaderChange(begin + at * SECOND, ("t", 0), leader, epoch, (1,)) for at, leader, epoch in seen]
    changes.insert(1, LeaderChange(begin, ("t", 1), 9, 9, (9,)))
    return Occasions(run, begin + SECOND, "the start of the load", faults, changes)


def test_an_event_says_where_when_who_led_and_after_which_fault() -> None:
    """Only what is known: the second election is far from any fault, and its epoch was never seen."""
    run, verdict = two_elections()
    first, second = (occasions_of(run).words(each.found) for each in verdict.checks["lost-write"].examples)
    assert first == (
        "t-0: election of epoch 1 at offset 10, about 4.0 s after the start of the load "
        "(22:13:05.0 UTC); led by broker 1 (epoch 0) before, by "
        "broker 2 (epoch 1) after; kill-leader (b1) began 1.0 s earlier"
    )
    assert second == (
        "t-0: election of epoch 3 at offset 30, about 11.0 s after the start of the load "
        "(22:13:12.0 UTC); led by no broker (epoch 2) before, by "
        "broker 3 (epoch 4) after"
    )
    healed = [replace(each, healed_ns=run.started_ns + 9 * SECOND // 2) for each in occasions_of(run).injected]
    again = replace(occasions_of(run), injected=healed).words(verdict.checks["lost-write"].examples[0].found)
    assert again == f"{first}, its healing 0.5 s earlier"
    assert occasions_of(run).zero == "Seconds count from the start of the load, 22:13:01.0 UTC."
    lost = verdict.checks["lost-write"].examples[0].found
    assert Occasions.of(run, ()).words(replace(lost, event_ns=None, epoch=None)) == f"t-0: {lost.event}"
    unknown = Occasions.of(replace(run, started="yesterday"), ())
    assert unknown.words(lost) == "t-0: election of epoch 1 at offset 10, about 5.0 s after the start of the run"
    assert unknown.zero == "Seconds count from the start of the run."


def test_a_reason_is_given_once_and_then_its_events() -> None:
    """In the summary, those that excuse most first, and in JUnit's output; the page has one card for each event."""
    run, verdict = two_elections()
    reason = "acks=1: a batch is acknowledged when the leader alone has it"
    told = occasions_of(run)
    summary = summary_md(run, FAULTS, verdict, told)
    assert summary.count(reason) == 1
    listed = summary[summary.index("- **lost-write** (6): acks=1") :].splitlines()
    assert listed[1].startswith(
        "  - 4: t-0: election of epoch 3 at offset 30, about 11.0 s after the start of the load"
    )
    assert listed[2].startswith("  - 2: t-0: election of epoch 1 at offset 10, about 4.0 s after the start")
    suite = ET.fromstring(junit_xml(Path("/runs/1"), run, verdict, told))
    output = next(each.text or "" for each in suite.iter("system-out"))
    assert output.count(reason) == 1
    assert output.startswith("6 allowed: acks=1")
    assert "\n- 2: t-0: election of epoch 1 at offset 10, about 4.0 s after the start of the load" in output
    html = report_html(run, FAULTS, verdict, series(5), Surroundings(changes=tuple(told.changes)))
    assert html.count("The event: t-0: election of epoch") == 2
    assert "Seconds count from the start of the load" in html


def test_too_many_events_are_counted() -> None:
    """The summary lists those that excuse most, the page as many cards; both say how many more there are."""
    run, verdict = two_elections()
    check = verdict.checks["lost-write"]
    many = replace(check, examples=check.examples[:1] * (MOST_EVENTS + 2))
    summary = summary_md(run, FAULTS, replace(verdict, checks={**verdict.checks, "lost-write": many}))
    assert summary.count("  - 2: t-0") == MOST_EVENTS
    assert "  - and 2 more events: see verdict.json" in summary
    first = check.examples[0]
    examples = tuple(replace(first, found=replace(first.found, partition=n)) for n in range(MOST_ALLOWED + 3))
    many = replace(check, examples=examples)
    html = report_html(run, [], replace(verdict, checks={**verdict.checks, "lost-write": many}), [])
    assert html.count("The event: ") == MOST_ALLOWED
    assert "3 more events that excuse something are in" in html


def test_the_longest_gap_says_from_when_it_counts() -> None:
    """What came before the load's first acknowledgement is no part of it, and is told beside it."""
    run = a_run()
    gap = {"longest_gap_ms": 783.0, "start_ns": 42 * SECOND, "end_ns": 43 * SECOND}
    verdict = replace(
        decide(run, audit(), closing()), availability={"longest_gap_ms": 783.0, "partitions": {"t-0": gap}}
    )
    acks = {("t", 0): np.array([41 * SECOND, 42 * SECOND]), ("t", 1): np.array([], dtype=np.int64)}
    around = Surroundings(acks=acks)
    html = report_html(run, [], verdict, series(50), around)
    assert "in t-0; counted from the load&#39;s first acknowledgement, which came after 41.0 s" in html
    summary = summary_md(run, [], verdict, Occasions.of(run, [], series(50), around))
    assert "| first acknowledgement | 41,000 ms after the start of the load |" in summary
    assert "| longest time without an acknowledgement since the first | 783 ms |" in summary
    assert "first acknowledgement |" not in summary_md(run, [], verdict)


def test_the_acknowledged_are_listed_where_nothing_could_be_compared() -> None:
    """In the table of values, and once only."""
    outcomes = Outcomes(reserved=24_576, never_sent=23_375)
    rows = regions(replace(undecidable("x"), stats={"acked": 1201, "regions": []}), outcomes)
    assert [(row["told"], row["values"]) for row in rows] == [("acknowledged", 1201), ("never sent", 23_375)]
    compared = regions(decide(a_run(), audit(), closing()), outcomes)
    assert [row["told"] for row in compared].count("acknowledged") == 1
