"""The report's page: what stands in it, and that it needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.settings import settings as run_settings
from tests.verifier.reported import FAULTS, SECOND, bad_verdict, page, series
from tests.verifier.test_verdict import a_run, audit, closing, decide, facts, found
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import DefectSetting
from verifier.excuses.expectation import ELECTION, EVENTS, RETRY, Expectation
from verifier.facts import Audit
from verifier.report.dumps import dump_commands, program
from verifier.report.page import LARGEST, report_html
from verifier.report.summary import summary_md
from verifier.report.tables import read_lag, regions, unavailability
from verifier.report.words import headline
from verifier.surroundings.model import (
    FileLink,
    LeaderChange,
    LogLines,
    Moments,
    Outcomes,
    Spot,
    SpotView,
    Stored,
    StoredBatch,
    Surroundings,
    ToldSpan,
    example_key,
)
from verifier.surroundings.reached import reached
from verifier.telling.markdown import IN_DOUBT
from verifier.verdict import Verdict, undecidable
from verifier.witness.effectiveness import Injected


@pytest.fixture
def bad() -> Verdict:
    return bad_verdict()


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
    """No script, nothing that is loaded, no inline style: its policy forbids all but its own style sheet, by hash.

    What it links to is in its own directory, or on the page.
    """
    html = page(a_run(), bad)
    links = Links()
    links.feed(html)
    assert all(each.startswith(("#", "./")) for each in links.references), links.references
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


def test_an_example_shows_the_gap_between_its_neighbors(bad: Verdict) -> None:
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


def test_a_run_without_load_still_has_a_page() -> None:
    """Nothing to draw is said in words."""
    html = report_html(a_run(final=[]), [], undecidable("the run left nothing"), [])
    assert "The load left no series" in html
    assert "the run left nothing" in html


def test_what_a_run_reached_is_shown_as_it_says(bad: Verdict, tmp_path: Path) -> None:
    """On the page and in the summary, escaped and bounded; a run that says nothing, or nonsense, has no such table."""
    directory = RunDirectory(tmp_path)
    assert reached(directory) == {}
    (tmp_path / "reached.json").write_text('{"figures": {"ISR | sizes": "1, 2 <b>", "long": "' + "x" * 9000 + '"}}')
    found = reached(directory)
    assert len(found["long"]) == 500
    html = report_html(a_run(), FAULTS, bad, series(3), Surroundings(reached=found))
    assert "<h2>Reached</h2>" in html and "1, 2 &lt;b&gt;" in html
    text = summary_md(a_run(), FAULTS, bad, reached=found)
    assert "## Reached" in text and "| ISR \\| sizes |" in text
    assert "Reached" not in report_html(a_run(), FAULTS, bad, series(3)) + summary_md(a_run(), FAULTS, bad)
    for damage in ("[]", "{}", '{"figures": 3}', '{"figures": [1]}', "no json"):
        (tmp_path / "reached.json").write_text(damage)
        assert reached(directory) == {}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_the_page_says_which_event_each_allowance_needs(acks: str) -> None:
    """One row for each, with the anomaly, the event without which nothing is allowed, and the reason."""
    run = a_run(settings=run_settings(acks=acks, idempotence=False, rate=0.0))
    html = page(run, decide(run, audit(), closing()))
    table = html.split("What these settings allow, and what must have happened", 1)[1].split("</table>", 1)[0]
    rows = re.findall(r'<td class="mono nowrap">([\w-]+).*?</td><td class="nowrap"[^>]*>(.*?)</td><td', table)
    allowances = Expectation(run.settings).allowances
    assert rows == [(each.check, EVENTS[each.excuse]) for each in allowances]
    assert len({event for _, event in rows}) == {"0": 4, "1": 4, "all": 3}[acks] + (run.settings.client == "confluent")


ACKS_1 = run_settings(acks="1", idempotence=False, rate=0.0)
OFF = run_settings(idempotence=False, rate=0.0)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (decide(a_run(), audit(), closing()), "Nothing acknowledged was lost, repeated, reordered or damaged"),
        (decide(a_run(settings=ACKS_1), audit(found("lost-write", count=889, excuse=ELECTION)), closing()),
         "889 acknowledged records lost, which acks=1 allows. Nothing that the settings forbid was found"),
        (decide(a_run(settings=OFF), audit(found("duplicate", "unidentified", excuse=RETRY)), closing()),
         "1 record read twice, which is allowed because idempotence is off and retries are on."),
        (decide(a_run(), audit(found("lost-write", count=12)), closing()), "12 acknowledged records lost."),
        (decide(a_run(interrupted=True), audit(), closing()), "the evidence is not sufficient."),
        (decide(a_run(interrupted=True, settings=ACKS_1), audit(found("lost-write", count=2, excuse=ELECTION)),
                closing()),
         "The evidence that there is shows 2 acknowledged records lost, which acks=1 allows."),
        (undecidable("nothing"), "the evidence is not sufficient."),
    ],
)  # fmt: skip
def test_the_sentence_comes_from_what_was_found(verdict: Verdict, expected: str) -> None:
    """It never says that nothing was lost where something was; page and summary say the same."""
    assert expected in headline(verdict)
    assert ("Nothing acknowledged was lost" in headline(verdict)) == (not any(c.count for c in verdict.checks.values())
                                                                      and verdict.verdict == "valid")  # fmt: skip
    assert headline(verdict) in report_html(a_run(), [], verdict, [])
    assert headline(verdict) in summary_md(a_run(), [], verdict).replace("\\", "")


def test_never_sent_is_no_loss(bad: Verdict) -> None:
    """What was reserved and not handed to a client is named so, apart from what failed and what is unknown."""
    stats = {**bad.stats, "unknown": 5, "regions": [
        {"acked": True, "in_log": True, "read": True, "values": 9},
        {"acked": False, "in_log": False, "read": False, "values": 6728},
    ]}  # fmt: skip
    verdict = replace(bad, stats=stats)
    rows = regions(verdict, Outcomes(reserved=7000, failed=2, never_sent=6726, unknown=5))
    assert [(row["told"], row["values"]) for row in rows] == [
        ("acknowledged", 9), ("never sent", 6726), ("failed", 2), ("outcome unknown", 5),
    ]  # fmt: skip
    html = report_html(a_run(), [], verdict, [], Surroundings(outcomes=Outcomes(never_sent=6726)))
    assert "never sent" in html
    assert "not acknowledged" not in html


def test_unavailability_is_a_table_of_faults_and_partitions(bad: Verdict) -> None:
    """The worst partitions in the order of their numbers; never acknowledged and never again are said."""
    gap = {"longest_gap_ms": 100.0, "ended": True, "ever_acknowledged": True}
    entry = {"fault": "kill-leader", "target": "b1", "start_ns": SECOND, "partitions": {
        "t-10": {**gap, "longest_gap_ms": 900.0}, "t-2": gap, "t-3": {**gap, "ended": False},
        "t-4": {**gap, "ever_acknowledged": False},
    }}  # fmt: skip
    verdict = replace(bad, availability={**bad.availability, "faults": [entry, entry]})
    table = unavailability(verdict, 1)
    assert table is not None
    assert table["names"] == ["t-2", "t-3", "t-4", "t-10"]
    assert [cell["text"] for cell in table["rows"][0]["cells"]] == [
        "100 ms", "100 ms, to the end", "never (100 ms)", "900 ms",
    ]  # fmt: skip
    assert table["more_rows"] == 1
    assert "Longest time without an acknowledgement" in page(a_run(), verdict)


def test_read_lag_is_shown_where_it_was_measured(bad: Verdict) -> None:
    """By partition; without the figures there is no table."""
    partitions = {"t-0": {"p50_ms": 3.0, "p99_ms": 40.0, "worst_ms": 12_000.0}, "t-1": {"p50_ms": None}}
    lag = {"worst_ms": 12_000.0, "partitions": partitions}
    verdict = replace(bad, stats={**bad.stats, "read_lag": lag})
    assert read_lag(verdict, 10) == [("t-0", ["3 ms", "40 ms", "12.0 s"]), ("t-1", ["-", "-", "-"])]
    assert "From acknowledgement to delivery" in page(a_run(), verdict)
    assert "From acknowledgement to delivery" not in page(a_run(), bad)


HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>"


def test_hostile_evidence_is_text_everywhere(bad: Verdict) -> None:
    """Topics, errors, log lines, probes, file names and statuses cannot become markup or leave their attribute."""
    hostile = f'"{HOSTILE}'
    example = replace(found("lost-write"), topic=hostile)
    spot = Spot(hostile, 0, (7,), ((2, 12),), example)
    told = ToldSpan((hostile, 0), "read", hostile, False, 7, 1, None, 0, SECOND, error=hostile)
    around = Surroundings(
        places={spot.key: SpotView(spot, (told,), (), SECOND, (LogLines(1, (hostile,), 0),), (hostile,))},
        spots={example_key(example): spot.key},
        moments=(Moments("lost-write", False, (SECOND,), (1,)),),
        changes=(LeaderChange(SECOND, (hostile, 0), 1, 0, (1,), hostile),),
        leaders_from=hostile,
        links=(FileLink("./x", hostile),),
        notes=(hostile,),
    )
    verdict = decide(a_run(), audit(example), closing())
    verdict = replace(verdict, stats={"read_lag": {"partitions": {hostile: {"worst_ms": 1}}}}).with_figures(
        recoveries={}, memory_mb={}, faults=[{"fault": hostile, "target": hostile, "start_ns": 0, "partitions": {
            hostile: {"longest_gap_ms": 1.0}}}],
    )  # fmt: skip
    final = replace(a_run().final[0], topic=hostile, status=hostile)
    injected = [Injected(hostile, hostile, 0, 1, True, False, {hostile: hostile}, 1)]
    links = Links()
    html = report_html(a_run(final=[final]), injected, verdict, series(3), around)
    links.feed(html)
    assert not links.tags & {"script", "img"}
    assert "onerror" not in links.attributes
    assert html.count("alert(1)") > 12


def test_a_hundred_thousand_anomalies_keep_the_page_small() -> None:
    """The page stays below a megabyte; with long texts in every field it says that it is a sample, below the cap."""
    many = [replace(found("lost-write", partition=n), topic=f"topic-{n % 50}") for n in range(100_000)]
    verdict = decide(a_run(), Audit(facts(), found=tuple(many)), closing())
    moments = (Moments("lost-write", False, tuple(range(0, 100_000_000_000, 1_000_000)), (1,) * 100_000),)
    html = report_html(a_run(), FAULTS, verdict, series(100), Surroundings(moments=moments))
    assert len(html) < 1_000_000
    assert "99,976 more partitions" in html
    assert "is a sample" not in html
    long = "&" * 40_000
    faulty = [Injected(f"{n}{long}", long, n, n + 1, True, False, {long: long}, n) for n in range(500)]
    html = report_html(a_run(), faulty, replace(verdict, doubts=(long,) * 3000), series(100), Surroundings())
    assert "is a sample" in html
    assert "100 more faults are not drawn." in report_html(a_run(), FAULTS[:1] * 500, verdict, series(5))
    assert len(html.encode()) <= LARGEST


def test_settings_are_written_as_people_write_them() -> None:
    """No list, truth value or number stands there as Python writes it."""
    settings = run_settings(idempotence=False, readers=("confluent", "native"), final_readers=(), rate=250.0)
    html = report_html(replace(a_run(), settings=settings), [], undecidable("nothing"), [])
    shown = dict(re.findall(r'<th scope="row" class="mono">(\w+)</th><td class="mono wrap">(.*?)</td>', html))
    assert (shown["idempotence"], shown["readers"], shown["final_readers"]) == ("off", "confluent, native", "none")
    assert shown["rate"] == "250"


def test_probes_are_told_in_words(bad: Verdict) -> None:
    """While the fault lasted and after it, not as code writes them."""
    fault = replace(FAULTS[0], probe={"dead": True, "leader_moved": True}, heal_probe={"isr_full": True})
    text = report_html(a_run(), [fault], bad, [])
    assert "its process was gone; another broker led the partition" in text
    assert "<b>After:</b> every replica was in its ISR" in text
    assert "leader_moved" not in text and "=True" not in text


def test_a_fault_that_was_not_seen_to_be_over_is_not_said_to_be(bad: Verdict) -> None:
    """The record says so: the probe gave up, and something of it may be left."""
    left, over = replace(FAULTS[0], healed=False, healed_ns=5 * SECOND), replace(FAULTS[0], healed_ns=5 * SECOND)
    for fault, is_told in ((left, True), (over, False), (FAULTS[1], False)):
        for text in (report_html(a_run(), [fault], bad, []), summary_md(a_run(), [fault], bad)):
            said = text.replace('("not seen to be over")', "")
            assert ("not seen to be over" in said) == is_told
    assert "over at" not in report_html(a_run(), [left], bad, [])
    assert "over at" in report_html(a_run(), [over], bad, [])
    late = replace(left, late=True)
    for text in (report_html(a_run(), [late], bad, []), summary_md(a_run(), [late], bad)):
        assert "seen to be over only when all was healed" in text


def test_the_page_links_locust_histories_and_logs(bad: Verdict) -> None:
    """Below the time line, each with what it is; a run that has none of them has no empty line."""
    names = ("loadgen/producers.html", "history/producers.arrow", "nodes/1/broker.log")
    around = Surroundings(links=tuple(FileLink(f"./{name}", name) for name in names))
    text = report_html(a_run(), FAULTS, bad, series(3), around)
    for words, name in zip(("What Locust counted", "What each client saw", "Logs"), names, strict=True):
        assert re.search(rf'{words}[^<]*: <a href="\./{re.escape(name)}">', text)
    assert "What Locust counted" not in page(a_run(), bad)


def test_a_place_comes_with_the_commands_that_show_it(bad: Verdict) -> None:
    """For each replica's file, with the offsets around it, in the words that the run was started with."""
    stored = tuple(
        Stored(broker, broker == 2, (StoredBatch(
            broker, f"nodes/{broker}/data/t-0/{0:020d}.log", 0, 100, {"base_offset": 5, "last_offset_delta": 3},
            True, None, (), b"",
        ),)) for broker in (2, 1)
    )  # fmt: skip
    place = SpotView(Spot("t", 0, (7,), ((2, 12),), found("lost-write")), (), (*stored, Stored(3, False, ())))
    assert dump_commands(place, "results/my run", program(".venv/bin/gapless run --seed 1")) == [
        f".venv/bin/gapless dump --records --offsets 2..12 'results/my run/nodes/{broker}/data/t-0/{0:020d}.log'"
        for broker in (2, 1)
    ]
    assert [program(repro) for repro in ("gapless run", "", "rm -rf")] == ["gapless"] * 3


def test_the_page_says_which_gapless_it_was(bad: Verdict) -> None:
    """Version and commit beside the seed, where the run has them."""
    text = page(a_run(versions={"gapless": "0.1.0", "commit": "0123456789ab-dirty"}), bad)
    assert "gapless 0.1.0 commit 0123456789ab-dirty" in text
    assert "commit" not in page(a_run(versions={}), bad).partition("</header>")[0].partition("<body>")[2]


def test_what_is_in_doubt_stands_apart_from_what_was_found(bad: Verdict) -> None:
    """An overloaded harness is no anomaly: it was listed beside the lost writes, as if it were one."""
    both = replace(bad, doubts=("harness overloaded: x",))
    text = summary_md(a_run(), [], both)
    found, _, doubted = text.partition(f"\n{IN_DOUBT}:\n\n- harness overloaded: x\n")
    assert doubted and f"- {both.accusations[0].partition(':')[0]}" in found and "overloaded" not in found + doubted
    html = page(a_run(), both)
    assert html.index(IN_DOUBT) < html.index("<li>harness overloaded: x</li>")
    assert html.count(IN_DOUBT) == 1
    alone = replace(bad, verdict="unknown", accusations=(), doubts=("harness overloaded: x",))
    assert IN_DOUBT not in summary_md(a_run(), [], alone) + page(a_run(), alone)
