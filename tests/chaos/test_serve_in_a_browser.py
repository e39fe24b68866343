"""The pages of ``gapless serve`` in a real browser: they can be used without scripts, and nothing is cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.commands.serve.application import ServeApplication
from cluster.hosts import GuardedWsgi
from cluster.seams.clock import SystemClock
from cluster.seams.http_port import HttpPort
from tests.chaos.test_runs_command import made
from tests.chaos.test_serve import EVIL, sweep_at
from tests.support.browser import Browser, Page
from tests.verifier.test_report_in_a_browser import CONTRAST, CUT

pytestmark = [pytest.mark.full, pytest.mark.integration, pytest.mark.timeout(300)]

VALID, INVALID, NIGHT = (
    "a-rather-long-name/20260101T102030Z-s7",
    "night/20260102T102030Z-s8",
    "nightly/20260103T102030Z",
)
OUTSIDE = """[...document.querySelectorAll('main *')].filter((each) => !each.closest('.unseen')
  && each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.outerHTML.slice(0, 80))"""
READY = "document.readyState === 'complete'"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two runs, one of whose reports tries to run a script, and a sweep."""
    base: Path = tmp_path_factory.mktemp("served") / "results"
    script = "<script>document.title = 'run'</script>"
    (made(base, VALID, 1) / "report.html").write_text(f"<title>report</title><p>a report</p>{script}")
    made(base, INVALID, 2, "invalid")
    made(base, f"run/{EVIL.replace('/', '')}-s3", 3)
    sweep_at(base, NIGHT, {"valid": 2, "invalid": 1})
    served = HttpPort(GuardedWsgi(ServeApplication(base, SystemClock())), 0, "127.0.0.1")
    yield f"http://127.0.0.1:{served.port}"
    served.close()


def shown(browser: Browser, url: str, width: int = 1280) -> Page:
    page = browser.open(url)
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    assert page.until(f"location.href !== 'about:blank' && {READY}", 60)
    return page


def test_runs_are_chosen_and_compared(browser: Browser, address: str) -> None:
    """By the form, by headings and by boxes that are checked; nothing is asked of anyone else."""
    page = shown(browser, f"{address}/")
    places = "[...document.querySelectorAll('tbody td.lead a:first-child')].map((each) => each.textContent)"
    assert len(page.ask(places)) == 4
    page.ask("document.querySelector('[name=text]').value = 'night/'; document.querySelector('form.choice').submit()")
    assert page.until(f"location.search.includes('text=night') && {READY}", 60)
    assert page.ask(places) == [INVALID]
    page.call("Page.navigate", url=f"{address}/")
    assert page.until(f"location.search === '' && {READY}", 60)
    page.ask("[...document.querySelectorAll('th a')].find((each) => each.textContent === 'name').click()")
    assert page.until(f"location.search.includes('order=name') && {READY}", 60)
    check = "document.querySelector(`[value='{}']`).checked = true"
    page.ask(";".join(check.format(place) for place in (VALID, INVALID)))
    page.ask("document.querySelector('form[action=\"/compare\"]').submit()")
    assert page.until(f"location.pathname === '/compare' && {READY}", 60)
    assert page.ask("document.querySelectorAll('thead th a').length") == 2
    assert page.ask("document.querySelectorAll('tr.differs').length") >= 2
    assert VALID in page.text() and "invalid" in page.text()
    assert all(url.startswith(address) for url in page.urls if not url.startswith(("about:", "data:")))


def test_a_report_cannot_run_scripts(browser: Browser, address: str) -> None:
    """It is shown, and its title stays."""
    page = browser.open(f"{address}/files/{VALID}/report.html")
    # No timer runs there either, so the page cannot be told to wait.
    assert any("a report" in page.text() for _ in range(5000))
    assert page.ask("document.title") == "report"


@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize("path", ["/", f"/compare?place={VALID}&place={INVALID}", f"/files/{VALID}"])
def test_nothing_is_cut(browser: Browser, address: str, path: str, width: int) -> None:
    """No table is wider than its box, and nothing than the window."""
    page = shown(browser, f"{address}{path}", width)
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.ask(CUT) == [] and page.ask(OUTSIDE) == []
    assert [each for each in page.complaints if "favicon" not in each] == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read(browser: Browser, address: str, dark: bool) -> None:
    """In both color schemes, with a contrast of 4.5 to 1."""
    page = shown(browser, f"{address}/")
    page.dark(dark)
    assert page.ask(CONTRAST) == []
