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
#: The rows of the tab's table that begin with these two cells.
ROWS = """[...document.querySelectorAll("tbody tr")].filter(
  (row) => row.cells[0].textContent === {what!r} && row.cells[1].textContent === {value!r}).length"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def _sees(page: Page, expected: str, timeout_s: float = 90.0) -> None:
    """Wait until an expression of ``s``, what the page shows, is true."""
    assert page.until(f"((s) => {expected})({SHOWN})", timeout_s), f"not seen: {expected}\n{page.ask(SHOWN)}"


def _tab_sees(tab: Page, what: str, value: str) -> None:
    """Wait until the tab's table has such a row; Locust asks for it every two seconds."""
    assert tab.until(ROWS.format(what=what, value=value), 10), f"not seen: {what}, {value}\n{tab.text()}"


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

        _sees(page, 's.phase === "warm up" && !s.active && !s.past')
        assert "No fault is active." in page.text() and "No fault is over yet." in page.text()
        for dark, background in ((True, "rgb(18, 18, 18)"), (False, "rgb(255, 255, 255)")):
            page.dark(dark)
            assert page.until(f"{BACKGROUND} === {background!r}", 10), page.ask(BACKGROUND)
        acked = page.ask(SHOWN)["acked"]

        _sees(page, 's.phase === "chaos" && s.active === "kill-leader"')
        _tab_sees(tab, "active fault", "kill-leader")
        _tab_sees(tab, "phase", "chaos")
        _sees(page, 's.past === "kill-leader" && s.effects === "bit"')
        _tab_sees(tab, "past fault", "kill-leader")
        assert page.ask(SHOWN)["acked"] > acked > 0
        _sees(page, f"s.acked > {page.ask(SHOWN)['acked']}", 5.0)
        assert (tab.complaints, page.complaints) == ([], [])

        _sees(page, 's.notice.startsWith("The load has ended")')
        assert "report.html" in page.ask(SHOWN)["notice"] and not page.ask(SHOWN)["active"]
        assert {url for url in (*tab.urls, *page.urls) if not url.startswith(f"{address}/")} == set()
        assert owner.wait(RUN_S) == 0, place.out + place.err
        assert "the web interface has ended with the load; the report will be " in place.err
        assert place.out.startswith("RESULT valid seed=11 "), place.out
        place.assert_nothing_left(within_s=5.0)
