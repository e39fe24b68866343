"""Locust's page of a conducted load in a real browser: no refused button, the Chaos tab, faults behind the charts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from cluster.seams.clock import SystemClock
from loadgen.command import locust_commands
from loadgen.settings import LoadSettings
from tests.loadgen.conftest import CHECKOUT, TOPIC, MockCluster
from tests.loadgen.test_live import eventually, wait_until
from tests.loadgen.test_web import NOW_NS, SECOND, STATE
from tests.support.browser import Browser, Page
from verifier.evidence.live import ActiveFault, PastFault
from verifier.evidence.run_directory import RunDirectory, read_json

pytestmark = [pytest.mark.full, pytest.mark.integration, pytest.mark.timeout(300)]

#: Buttons of Locust's that can be seen.
BUTTONS = """[...document.querySelectorAll("button")].filter((each) => each.getBoundingClientRect().width)
  .map((each) => each.textContent).filter((each) => /edit|stop|loading|reset|new|start/i.test(each)).join()"""
WITHIN = "document.getElementById('gapless-chaos').contentDocument"
#: Of each chart: the bands behind it, with the left and right end as parts of the plot's width.
BANDS = """[...document.querySelectorAll(".gapless-faults")].map((plot) => [...plot.children].map((band) =>
  ({ name: band.textContent, missed: band.classList.contains("missed"),
     from: band.offsetLeft / plot.offsetWidth, to: (band.offsetLeft + band.offsetWidth) / plot.offsetWidth })))"""
TILES = """(() => { const rows = {};
  for (const each of document.querySelectorAll(".tile")) {
    const box = each.getBoundingClientRect();
    rows[Math.round(box.top)] = Math.max(rows[Math.round(box.top)] || 0, box.right);
  }
  return Object.values(rows).map((right) => Math.round(right)); })()"""
CUT = """[...document.querySelectorAll("main *")].filter((each) => each.getBoundingClientRect().width
  && each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.outerHTML.slice(0, 80))"""


@dataclass
class Conducted:
    """A load as ``gapless run --web`` has it; what the conductor would write is written by the test."""

    url: str
    run: RunDirectory
    process: subprocess.Popen[bytes]

    def says(self) -> None:
        """Two faults past, one of which did nothing, and one that lasts; all within the last three seconds."""
        shift_ns = SystemClock().monotonic_ns() - NOW_NS
        past = (
            PastFault("pause-leader", "broker 3", NOW_NS - 3 * SECOND, NOW_NS - 2 * SECOND, "bit", "healed"),
            PastFault("drop-response", "none", NOW_NS - 2 * SECOND, NOW_NS - 1 * SECOND, "skipped", "no leader"),
        )
        state = replace(STATE, active=(ActiveFault("cut-link", "b1-b2", NOW_NS - SECOND),), past=past)
        moved = replace(state, started_ns=state.started_ns + shift_ns, time_ns=state.time_ns + shift_ns,
                        phase_since_ns=state.phase_since_ns + shift_ns, load_since_ns=None,
                        active=tuple(replace(each, since_ns=each.since_ns + shift_ns) for each in state.active),
                        past=tuple(replace(each, start_ns=each.start_ns + shift_ns, end_ns=each.end_ns + shift_ns)
                                   for each in state.past))  # fmt: skip
        moved.write(self.run.live_json)


@pytest.fixture(scope="module")
def conducted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conducted]:
    directory, cluster = tmp_path_factory.mktemp("conducted"), MockCluster()
    run = RunDirectory(directory / "run").prepare()
    settings = LoadSettings(
        run_id=1, producers_bootstrap=cluster.bootstrap, topic=TOPIC, partitions=4, producers=2, readers=(), rate=200.0,
        flush_timeout_s=3.0,
    )  # fmt: skip
    (command,) = locust_commands(settings, run, web_port=0)
    with (directory / "locust.log").open("w") as log:
        process = subprocess.Popen(
            command.argv, env=command.env, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_until(run, "producers", "total_acked", 50)
        eventually(run.web_json.exists, "the address")
        yield Conducted(read_json(run.web_json)["url"], run, process)
    finally:
        process.kill()
        process.wait()
        cluster.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


def opened(browser: Browser, conducted: Conducted, place: str, seen: str, width: int = 1280) -> Page:
    """A page of the load's interface once it shows something."""
    conducted.says()
    page = browser.open(f"{conducted.url}{place}")
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    assert page.until(seen, 60), page.text()
    return page


@pytest.mark.parametrize("width", [1280, 420])
def test_no_button_is_offered_that_would_be_refused(browser: Browser, conducted: Conducted, width: int) -> None:
    """Edit, Stop and Reset: STOP said LOADING forever. Also in the drawer, where they are on a narrow page."""
    page = opened(browser, conducted, "/", "document.querySelector('[role=tab]')", width)
    if width < 600:
        page.ask("document.querySelector('[aria-label=menu]').click()")
        assert page.until("document.querySelector('.MuiDrawer-root')", 10)
    assert page.ask("document.querySelectorAll('.MuiButton-contained').length") >= 3
    assert page.ask(BUTTONS) == ""


def test_the_chaos_tab_is_the_page_within_locusts(browser: Browser, conducted: Conducted) -> None:
    """Whole, without a bar of its own, as high as it needs; its link leads to the page; other tabs are Locust's."""
    page = opened(browser, conducted, "/?tab=chaos", f"document.getElementById('gapless-chaos') && {WITHIN}.body")
    assert page.until(f"{WITHIN}.querySelectorAll('#past tbody tr').length === 2", 20)
    assert page.ask(f"{WITHIN}.querySelector('header').offsetParent") is None
    (link,) = page.ask(f"[...{WITHIN}.querySelectorAll('.alone a')].map((each) => each.href)")
    assert link == f"{conducted.url}/gapless/"
    scrolls = f"{WITHIN}.documentElement.scrollHeight - document.getElementById('gapless-chaos').clientHeight"
    assert page.until(f"{scrolls} <= 0", 10), page.ask(scrolls)
    page.ask("document.querySelectorAll('[role=tab]')[0].click()")
    assert page.until("!document.getElementById('gapless-chaos')", 10)
    page.ask("[...document.querySelectorAll('[role=tab]')].at(-1).click()")
    assert page.until("document.getElementById('gapless-chaos')", 10)
    assert page.complaints == []


def test_faults_stand_behind_locusts_charts(browser: Browser, conducted: Conducted) -> None:
    """In all three, where they were; one that did nothing looks otherwise, and what lasts reaches the right end.

    Locust's charts reach from its first answer, or the history that the page came with, until its last one.
    """
    page = opened(browser, conducted, "/?tab=charts", "document.querySelectorAll('[_echarts_instance_]').length === 3")
    assert page.until("performance.now() > 6000", 10)
    conducted.says()

    names = ["pause-leader broker 3", "drop-response none", "cut-link b1-b2"]
    eventually(
        lambda: [[each["name"] for each in chart] for chart in page.ask(BANDS)] == [names] * 3,
        "three bands behind each of three charts",
        20,
    )
    for paused, dropped, cut in page.ask(BANDS):
        assert [paused["missed"], dropped["missed"], cut["missed"]] == [False, True, False]
        assert 0 <= paused["from"] < paused["to"] <= dropped["from"] + 0.02 < dropped["to"] <= cut["from"] + 0.02
        assert cut["from"] < cut["to"] == pytest.approx(1, abs=0.02)
    assert page.complaints == []


@pytest.mark.parametrize("width", [1280, 900, 420])
def test_the_page_fills_its_rows_and_cuts_nothing(browser: Browser, conducted: Conducted, width: int) -> None:
    """Every row of tiles ends where the others do; at 420 px the table's rows stand below each other."""
    page = opened(browser, conducted, "/gapless/", "document.querySelectorAll('#past tbody tr').length === 2", width)
    assert len(set(page.ask(TILES))) == 1
    assert page.ask(CUT) == []
    label = page.ask("getComputedStyle(document.querySelector('[data-label=lasted]'), '::before').content")
    assert ("lasted" in label) == (width < 600)
    color = "getComputedStyle(document.querySelector('.active li')).borderLeftColor"
    red = "getComputedStyle(document.documentElement).getPropertyValue('--red')"
    assert page.ask(color) not in ("", "rgb(198, 40, 40)", "rgb(255, 138, 128)") and page.ask(red)
