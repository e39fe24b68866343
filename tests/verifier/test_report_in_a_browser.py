"""The report in a real browser: nothing is refused, nothing is fetched, it fits, and it looks as it is meant to."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.browser import Browser, Page
from tests.support.require import require
from tests.support.stories import clean
from tests.verifier.reported import FAULTS, SECOND, series
from tests.verifier.test_verdict import a_run, audit, closing, decide, found
from verifier.report.page import report_html
from verifier.surroundings import gather
from verifier.surroundings.model import LeaderChange

pytestmark = [pytest.mark.full, pytest.mark.integration, pytest.mark.timeout(300)]

STYLE = "<style>"
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of an invalid run with everything on it: a picture, differing bytes, log lines, leaders, wide tables."""
    story = clean(streams=1)
    batches = story.partitions[0].replicas[2]
    batches[1] = replace(batches[1], values=((1, 9), (1, 4), (1, 5)))
    directory = story.write(tmp_path_factory.mktemp("run") / "run")
    lines = "".join(f"2026-01-01 00:00:01,{n:03d} INFO cluster.broker: t-0 {'long line ' * 30}\n" for n in range(30))
    (directory.node(1) / "broker.log").write_text(lines, encoding="utf-8")
    run = replace(story.model(), started="2026-01-01T00:00:00", name="a-name-without-a-break-" * 8)
    example = replace(found("lost-write", count=12), offset=3, sequence=3)
    judged = a_run(faults_requested=["kill-leader", "cut-link"])
    verdict = decide(judged, audit(example), closing(*FAULTS))
    around = gather(directory, run, verdict)
    changes = tuple(LeaderChange(n * SECOND, ("t", n % 3), n % 4 - 1, n, (1, 2)) for n in range(10))
    gaps = {f"topic-{n}": {"longest_gap_ms": 99.0 * n, "ended": True, "ever_acknowledged": True} for n in range(30)}
    faults = [{"fault": "kill-leader", "target": "b1", "start_ns": 0, "partitions": gaps}]
    verdict = verdict.with_figures(recoveries={}, memory_mb={}, faults=faults)
    return report_html(run, FAULTS, verdict, series(10), replace(around, changes=changes))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


def shown(browser: Browser, directory: Path, html: str) -> Page:
    path = directory / "report.html"
    path.write_text(html, encoding="utf-8")
    page = browser.open(path.as_uri())
    assert page.until("document.readyState === 'complete'", 60)
    return page


def browse(directory: Path, html: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Open the page without a window; what the console said is in ``stderr``."""
    chromium = require("chromium")
    page = directory / "report.html"
    page.write_text(html, encoding="utf-8")
    own = [f"--user-data-dir={directory / 'profile'}", "--headless", "--no-sandbox", "--disable-gpu"]
    quiet = ["--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking"]
    command = [chromium, *own, *quiet, "--enable-logging=stderr", *arguments, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def refusals(outcome: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in outcome.stderr.splitlines() if "CONSOLE" in line]


#: Drawings that are shown: of the wide and the narrow one of each it is one.
DRAWN = "[...document.querySelectorAll('svg')].filter((each) => each.getBoundingClientRect().width).length"


def test_a_browser_shows_the_page_and_refuses_nothing(browser: Browser, html: str, tmp_path: Path) -> None:
    """Everything is in the document, nothing is asked of the network but the page, and nothing is complained of."""
    page = shown(browser, tmp_path, html)
    page.ask(OPEN_ALL)
    for text in ("invalid", "lost-write", "Faults as they happened", "broker 2", "bytes that differ", "long line"):
        assert text in page.text(), text
    assert page.ask(DRAWN) == 2
    assert page.complaints == []
    assert page.urls == [(tmp_path / "report.html").as_uri()]


def test_a_browser_refuses_what_is_not_the_pages_own(html: str, tmp_path: Path) -> None:
    """A changed style sheet is not applied, and the console says so: the test above would see it."""
    assert refusals(browse(tmp_path, html.replace(STYLE, f"{STYLE} "), "--dump-dom"))
    assert not refusals(browse(tmp_path, html, "--dump-dom"))


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_its_window(browser: Browser, html: str, tmp_path: Path, width: int) -> None:
    """Nothing but what scrolls within its own box is wider than the window, with all that folds unfolded."""
    page = shown(browser, tmp_path, html)
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    page.ask(OPEN_ALL)
    assert page.ask("document.documentElement.scrollWidth") <= width
    outside = page.ask(
        "[...document.querySelectorAll('main *')].filter((each) => !each.closest('.scroll, pre') "
        "&& each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.outerHTML.slice(0, 80))"
    )
    assert outside == []


ROWS = """(() => {
  const rows = {};
  for (const each of document.querySelectorAll('.tile')) {
    const top = Math.round(each.getBoundingClientRect().top);
    rows[top] = (rows[top] || 0) + 1;
  }
  return Object.values(rows);
})()"""


@pytest.mark.parametrize(("width", "in_a_row"), [(1280, 4), (760, 2), (420, 2)])
def test_no_tile_stands_alone(browser: Browser, html: str, tmp_path: Path, width: int, in_a_row: int) -> None:
    """Every row of tiles is full, at any width."""
    page = shown(browser, tmp_path, html)
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    assert page.ask(ROWS) == [in_a_row] * (8 // in_a_row)


CUT = """[...document.querySelectorAll('table.stack')].filter((each) => {
  const box = each.closest('.scroll');
  return box.scrollWidth > box.clientWidth + 1;
}).map((each) => each.outerHTML.slice(0, 80))"""


def test_tables_are_whole_on_a_narrow_page(browser: Browser, html: str, tmp_path: Path) -> None:
    """At 420 px the rows of tables of words stand below each other, each cell with its heading; none is cut."""
    page = shown(browser, tmp_path, html)
    page.call("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=False)
    page.ask(OPEN_ALL)
    assert page.ask("document.querySelectorAll('table.stack').length") >= 4
    assert page.ask(CUT) == []
    label = "getComputedStyle(document.querySelector('[data-label=injected]'), '::before').content"
    assert "injected" in page.ask(label)
    page.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
    assert page.ask(label) == "none"


SCROLLED = """[...document.querySelectorAll('.timeline .scroll')]
  .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("width", [360, 420, 860, 900, 1280])
def test_the_time_line_is_whole_at_any_width(browser: Browser, html: str, tmp_path: Path, width: int) -> None:
    """One drawing each, and nothing of it to be scrolled to, with text of 8 px at least."""
    page = shown(browser, tmp_path, html)
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    page.ask(OPEN_ALL)
    assert page.ask(DRAWN) == 2
    assert page.ask(SCROLLED) == []
    size = "11 * document.querySelector('.timeline .{}').getBoundingClientRect().width / {}"
    assert page.ask(size.format("narrow", 400) if width <= 860 else size.format("wide", 1000)) >= 8


def test_faults_and_anomalies_differ_in_color(browser: Browser, html: str, tmp_path: Path) -> None:
    """Their bars, by day and by night."""
    page = shown(browser, tmp_path, html)
    for dark in (False, True):
        page.dark(dark)
        colors = page.ask(
            "['bit', 'recovering', 'found'].map((kind) => { const each = document.createElementNS("
            "'http://www.w3.org/2000/svg', 'rect'); each.setAttribute('class', kind); "
            "document.querySelector('svg').append(each); return getComputedStyle(each).fill; })"
        )
        assert len(set(colors)) == 3


def test_wide_tables_can_be_scrolled_by_keyboard(browser: Browser, html: str, tmp_path: Path) -> None:
    """A box that scrolls can have the focus and has a name; the large tables have headers for columns and rows."""
    page = shown(browser, tmp_path, html)
    assert page.ask("[...document.querySelectorAll('.scroll')].every((each) => each.tabIndex === 0 && each.ariaLabel)")
    assert page.ask(
        "[...document.querySelectorAll('table.offsets, table.headers, table.heat')]"
        ".every((each) => each.querySelector('th[scope=col]') && each.querySelector('th[scope=row]'))"
    )
    assert page.ask("[...document.querySelectorAll('svg')].every((each) => each.querySelector(':scope > title'))")


CONTRAST = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = (each) => {
    for (; each; each = each.parentElement) {
      const color = parse(getComputedStyle(each).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const each of document.querySelectorAll('main *')) {
    if (each.closest('svg') || ![...each.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(parse(getComputedStyle(each).color)), light(behind(each))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(each.outerHTML.slice(0, 120));
  }
  return poor;
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_both_color_schemes(browser: Browser, html: str, tmp_path: Path, dark: bool) -> None:
    """Every text has a contrast of 4.5 to 1 with what is behind it, and dark is dark."""
    page = shown(browser, tmp_path, html)
    page.dark(dark)
    page.ask(OPEN_ALL)
    assert page.ask(CONTRAST) == []
    background = page.ask("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, background.strip("rgb()").split(","))) < 64) == dark


def test_the_style_is_applied(browser: Browser, html: str, tmp_path: Path) -> None:
    """With its style the page looks different from without, and so does dark from light."""
    styled = shown(browser, tmp_path, html)
    styled.dark(False)
    light = styled.picture()
    styled.dark(True)
    dark = styled.picture()
    plain = shown(browser, tmp_path, html.replace(STYLE, f"{STYLE} ")).picture()
    assert all(picture.startswith(b"\x89PNG") for picture in (light, dark, plain))
    assert len({light, dark, plain}) == 3


def test_a_page_of_a_run_without_anything_fits_too(browser: Browser, tmp_path: Path) -> None:
    """Nothing to draw, one long reason: no overflow."""
    verdict = decide(a_run(problems=["x" * 5000]), audit(), closing())
    page = shown(browser, tmp_path, report_html(a_run(), [], verdict, []))
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=False)
    assert page.ask("document.documentElement.scrollWidth") <= 360
