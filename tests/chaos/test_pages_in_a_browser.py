"""The page of a sweep and the index of runs in a real browser: nothing is cut, at 1280 px and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.commands.runs.found import RunRow
from chaos.commands.runs.page import index_page
from chaos.sweeps.catalogue import find_sweep
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Wanted
from chaos.sweeps.outcome import CellOutcome, outcome_of
from chaos.sweeps.report import write_reports
from tests.chaos.sweeps.finished import finish
from tests.support.browser import Browser, Page
from tests.verifier.test_report_in_a_browser import CONTRAST, CUT

pytestmark = [pytest.mark.full, pytest.mark.integration, pytest.mark.timeout(300)]

NOW = "2026-01-01T00:00:00"
#: Of the page, what is wider than the window, but for the matrix, which scrolls and shows it.
OUTSIDE = """[...document.querySelectorAll('main *')].filter((each) => !each.closest('.plot')
  && each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.outerHTML.slice(0, 80))"""
#: Texts of the matrix that reach out of their boxes.
SPILLED = """[...document.querySelectorAll('.plot text.mark')].filter((text) => {
  const box = [...document.querySelectorAll('rect.box')].map((each) => each.getBBox())
    .find((each) => text.getBBox().x >= each.x && text.getBBox().x < each.x + each.width
      && text.getBBox().y >= each.y && text.getBBox().y < each.y + each.height);
  return text.getBBox().x + text.getBBox().width > box.x + box.width;
}).map((text) => text.textContent)"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A sweep, two of whose settings are not as documented, and an index of four runs."""
    directory = SweepDirectory(tmp_path_factory.mktemp("sweep")).prepare()
    sweep = find_sweep("delivery")(Wanted(seeds=(1,)))
    wanted = [cell for cell in sweep.cells if not cell.inapplicable]
    for cell in wanted:
        finish(directory, cell, allowed={"lost-write": 1_234_567} if cell.labels["fault"] == "refuse" else {})
    outcomes = {cell.name: outcome_of(directory.run(cell)) if cell in wanted else CellOutcome("inapplicable")
                for cell in sweep.cells}  # fmt: skip
    write_reports(directory, sweep, outcomes)
    base = tmp_path_factory.mktemp("results")
    many = "lost-write:98,inconsistent-offsets:93,log-gap:93,producer-epoch-regression:12"
    told = [("valid", "none"), ("unknown", "?"), ("no verdict", ""), ("invalid", many)]
    rows = [
        RunRow(
            base / "a-rather-long-name" / f"20260101T00000{n}Z-s{n}", "run", n, NOW, NOW, verdict, found, "none", 10**8
        )
        for n, (verdict, found) in enumerate(told)
    ]
    (base / "index.html").write_text(index_page(rows, base), encoding="utf-8")
    return {"sweep": directory.sweep_html, "index": base / "index.html"}


def shown(browser: Browser, path: Path, width: int) -> Page:
    page = browser.open(path.as_uri())
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    assert page.until("document.readyState === 'complete'", 60)
    return page


@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize("name", ["sweep", "index"])
def test_nothing_is_cut(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    """No table is wider than its box, and nothing than the window: the sweep's was at 1280 px, the index at 420."""
    page = shown(browser, pages[name], width)
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.ask("document.querySelectorAll('table.stack').length") >= 1
    assert page.ask(CUT) == [] and page.ask(OUTSIDE) == []
    assert page.complaints == []


def test_nothing_scrolls_sideways_on_a_phone(browser: Browser, pages: dict[str, Path]) -> None:
    """The matrix did. Its figures are in the table, which a line says in its place."""
    scrolled = """[...document.querySelectorAll('main *')].filter((each) => each.scrollWidth > each.clientWidth + 1
      && ['auto', 'scroll'].includes(getComputedStyle(each).overflowX)).map((each) => each.outerHTML.slice(0, 60))"""
    shows = "['section.plot', '.narrow'].map((each) => document.querySelector(each).checkVisibility())"
    page = shown(browser, pages["sweep"], 420)
    assert page.ask(scrolled) == [] and page.ask(shows) == [False, True]
    page = shown(browser, pages["sweep"], 1280)
    assert page.ask(scrolled) == [] and page.ask(shows) == [True, False]


def test_what_differs_from_the_documentation_stands_in_its_box(browser: Browser, pages: dict[str, Path]) -> None:
    """``not shown: nothing`` was cut at the edge of the drawing."""
    page = shown(browser, pages["sweep"], 1280)
    assert page.ask("document.querySelectorAll('.plot text.mark').length") >= 4
    assert page.ask(SPILLED) == []


@pytest.mark.parametrize("width", [420, 1280])
def test_throughput_is_whole(browser: Browser, pages: dict[str, Path], width: int) -> None:
    """Name, bar and figure of each setting are within the card; on a phone the bar has a line of its own."""
    page = shown(browser, pages["sweep"], width)
    of = "[...document.querySelectorAll('.speed')].map((each) => each.querySelector('{}').getBoundingClientRect().{})"
    tops = zip(page.ask(of.format("svg", "top")), page.ask(of.format(".name", "bottom")), strict=True)
    assert all((bar >= name - 1) == (width == 420) for bar, name in tops)
    assert max(page.ask(of.format(".figure", "right"))) < width


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["sweep", "index"])
def test_text_can_be_read(browser: Browser, pages: dict[str, Path], name: str, dark: bool) -> None:
    """In both color schemes, with a contrast of 4.5 to 1."""
    page = shown(browser, pages[name], 1280)
    page.dark(dark)
    assert page.ask(CONTRAST) == []
