"""The report in a real browser: nothing is refused, nothing is fetched, and it looks as it is meant to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.require import require
from tests.verifier.test_report import FAULTS, series
from tests.verifier.test_verdict import a_run, audit, found
from verifier.report.page import report_html
from verifier.verdict import decide

pytestmark = [pytest.mark.full, pytest.mark.integration, pytest.mark.timeout(180)]

STYLE = "<style>"


@pytest.fixture
def html() -> str:
    """The page of an invalid run."""
    return report_html(a_run(), FAULTS, decide(a_run(), FAULTS, audit(found("lost-write", count=12))), series(10))


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


def test_a_browser_shows_the_page_and_refuses_nothing(html: str, tmp_path: Path) -> None:
    """Verdict, anomaly and time line are in the document, and the page's own policy lets all of it through."""
    outcome = browse(tmp_path, html, "--dump-dom")
    assert refusals(outcome) == []
    for text in ("<h1>invalid</h1>", 'id="lost-write"', "Faults as they happened", "<svg"):
        assert text in outcome.stdout, text


def test_a_browser_refuses_what_is_not_the_pages_own(html: str, tmp_path: Path) -> None:
    """A changed style sheet is not applied, and the console says so: the test above would see it."""
    assert refusals(browse(tmp_path, html.replace(STYLE, f"{STYLE} "), "--dump-dom"))


def test_the_style_is_applied(html: str, tmp_path: Path) -> None:
    """With its style the page looks different from without."""
    pictures = []
    for name, page in (("styled", html), ("plain", html.replace(STYLE, f"{STYLE} "))):
        picture = tmp_path / f"{name}.png"
        browse(tmp_path, page, "--window-size=1200,1600", f"--screenshot={picture}")
        pictures.append(picture.read_bytes())
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert pictures[0] != pictures[1]
