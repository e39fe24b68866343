"""``gapless run --web`` in a real browser: the run is seen as it goes on, and comes to its verdict all the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.browser import Browser, Page
from tests.support.leftovers import Place
from tests.support.require import require

pytestmark = [pytest.mark.full, pytest.mark.integration, pytest.mark.timeout(600)]

RUN_S = 480.0
ADDRESS = re.compile(r"web interface: (http://127\.0\.0\.1:\d+)/\?tab=chaos")
#: Time to see the warm-up before, and the fault past before the load ends, on a slow machine too.
SCHEDULE = "{seed: 11, injections: [{at_s: 8.0, fault: kill-leader, duration_s: 4.0, target: {partition: 1}}]}"
#: What the page shows now.
SHOWN = """({
  phase: document.getElementById("phase").textContent,
  acked: Number(document.getElementById("acked").textContent.replaceAll(",", "")) || 0,
  active: [...document.querySelectorAll("#active .name")].map((each) => each.textContent).join(),
  past: [...document.querySelectorAll("#past tbody tr")].map((each) => each.cells[0].textContent).join(),
  effects: [...document.querySelectorAll("#past tbody .effect")].map((each) => each.textContent).join(),
  notice: document.getElementById("notice").textContent,
})"""
#: What a document of the tab, which holds the page, sees of it; and the faults behind Locust's charts.
WITHIN = "document.getElementById('gapless-chaos')?.contentDocument.body.innerText.replaceAll('\\n', ' ')"
MARKED = """[...document.querySelectorAll("main .gapless-faults")].map(
  (each) => [...each.children].map((band) => band.textContent).join()).join("|")"""
#: Buttons of Locust's that can be seen.
BUTTONS = """[...document.querySelectorAll("button")].filter((each) => each.offsetParent)
  .map((each) => each.textContent).filter((each) => /edit|stop|reset|new|start/i.test(each)).join()"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def _sees(page: Page, expected: str, timeout_s: float = 90.0) -> None:
    """Wait until an expression of ``s``, what the page shows, is true."""
    page.call("Page.bringToFront")  # one that nobody sees asks for nothing
    assert page.until(f"((s) => {expected})({SHOWN})", timeout_s), f"not seen: {expected}\n{page.ask(SHOWN)}"


def _tab_sees(tab: Page, text: str) -> None:
    """Wait until the page within Locust's has such a text."""
    tab.call("Page.bringToFront")
    assert tab.until(f"({WITHIN} ?? '').includes({text!r})", 15), f"not seen: {text}\n{tab.ask(WITHIN)}"


def test_a_run_is_watched_from_its_warm_up_to_its_end(tmp_path: Path) -> None:
    """Warm-up, then chaos; the fault becomes active, then past, with its effect; acknowledged grows; light and dark;
    nothing from anywhere else; the end is said; the verdict is valid and nothing is left running."""
    require("chromium")
    require("java")
    with Place(tmp_path) as place, Browser(tmp_path / "browser") as browser:
        schedule = tmp_path / "schedule.yaml"
        schedule.write_text(SCHEDULE)
        owner = place.start("run", "--web", "--time-limit", "28", "--schedule", str(schedule), "--seed", "11")
        place.wait_for("/gapless/", RUN_S)
        found = ADDRESS.search(place.err)
        assert found is not None, place.err
        address = found[1]
        tab, page = browser.open(f"{address}/?tab=chaos"), browser.open(f"{address}/gapless/")
        charts = browser.open(f"{address}/?tab=charts")

        _sees(page, 's.phase === "warm up" && !s.active && !s.past')
        assert "No fault is active." in page.text() and "No fault is over yet." in page.text()
        for dark, background in ((True, "rgb(18, 18, 18)"), (False, "rgb(255, 255, 255)")):
            page.dark(dark)
            assert page.until(f"{BACKGROUND} === {background!r}", 10), page.ask(BACKGROUND)
        acked = page.ask(SHOWN)["acked"]

        _sees(page, 's.phase === "chaos" && s.active === "kill-leader"')
        _tab_sees(tab, "kill-leader")
        _tab_sees(tab, "Chaos")
        _sees(page, 's.past === "kill-leader" && s.effects === "bit"')
        _tab_sees(tab, "healed: ")
        charts.call("Page.bringToFront")
        behind_each = f"/^([|]?kill-leader broker \\d, leader of [^|]*){{3}}$/.test({MARKED})"
        assert charts.until(behind_each, 15), charts.ask(MARKED)
        assert [each.ask(BUTTONS) for each in (tab, charts)] == ["", ""]
        assert page.ask(SHOWN)["acked"] > acked > 0
        _sees(page, f"s.acked > {page.ask(SHOWN)['acked']}", 5.0)
        assert (tab.complaints, page.complaints, charts.complaints) == ([], [], [])

        _sees(page, 's.notice.startsWith("The load has ended")')
        assert charts.until("document.getElementById('gapless-notice')?.textContent.includes('report.html')", 15)
        assert "report.html" in page.ask(SHOWN)["notice"] and not page.ask(SHOWN)["active"]
        assert {url for url in (*tab.urls, *page.urls, *charts.urls) if not url.startswith(f"{address}/")} == set()
        assert owner.wait(RUN_S) == 0, place.out + place.err
        assert "the web interface has ended with the load; the report will be " in place.err
        assert place.out.startswith("RESULT valid seed=11 "), place.out
        place.assert_nothing_left(within_s=5.0)
