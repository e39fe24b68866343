"""The Chaos tab and the page beside it: what they show, and that nothing they meet is more than an answer."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from loadgen.web import pages, view
from verifier.evidence.live import ActiveFault, LiveState, PastFault
from verifier.evidence.run_directory import RunDirectory

SECOND = 1_000_000_000
NOW_NS = 100 * SECOND
STATE = LiveState(
    name="run",
    seed=9,
    started_ns=50 * SECOND,
    time_ns=NOW_NS - SECOND // 2,
    time_limit_s=60.0,
    phase="chaos",
    phase_since_ns=70 * SECOND,
    load_since_ns=65 * SECOND,
    report="results/run/x/report.html",
    planned=5,
    done=2,
    effective=1,
    active=(ActiveFault("cut-link", "b1-b2", 97 * SECOND), ActiveFault("kill-leader", "broker 1", 90 * SECOND, True)),
    past=(
        PastFault("pause-leader", "broker 3", 71 * SECOND, 75 * SECOND, "bit", "healed: every replica was in its ISR"),
        PastFault("drop-response", "<b>none</b>", 80 * SECOND, 81 * SECOND, "skipped", "no leader"),
    ),
    load={"acked": 123456, "acked_per_s": 1500.4, "unknown": 3, "failed": 1, "read": 120000, "errors": 7},
)


class Clock:
    """Stands still."""

    def monotonic_ns(self) -> int:
        return NOW_NS


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


@pytest.fixture
def client(run: RunDirectory) -> FlaskClient:
    app = Flask(__name__)
    app.register_blueprint(pages.blueprint(pages.Watched(run.live_json, Clock())))  # type: ignore[arg-type]
    return app.test_client()


def test_the_page_has_times_in_seconds_and_the_newest_past_fault_first() -> None:
    """Times since the run's start, as on stderr; how long each lasts; how old all of it is."""
    shown = view.page(STATE, NOW_NS)
    assert shown["at_s"] == 50.0
    assert (shown["phase"], shown["phase_for_s"], shown["load_for_s"], shown["age_s"]) == ("chaos", 30.0, 35.0, 0.5)
    assert [(each["fault"], each["began_at_s"], each["active_for_s"], each["healed"]) for each in shown["active"]] == [
        ("cut-link", 47.0, 3.0, False),
        ("kill-leader", 40.0, 10.0, True),
    ]
    assert [(each["fault"], each["began_at_s"], each["lasted_for_s"], each["effect"]) for each in shown["past"]] == [
        ("drop-response", 30.0, 1.0, "skipped"),
        ("pause-leader", 21.0, 4.0, "bit"),
    ]
    assert shown["load"]["unknown"] == 3 and (shown["planned"], shown["done"], shown["effective"]) == (5, 2, 1)


def test_a_run_that_has_said_nothing_is_shown_as_such(client: FlaskClient) -> None:
    """No file yet: a page, a sentence, and no error."""
    assert client.get("/gapless/", buffered=True).status_code == 200
    assert client.get("/gapless/chaos").get_json() == {"phase": None, "message": view.NOTHING_YET}


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"phase": "chaos"}', "\x00"])
def test_a_state_that_cannot_be_read_is_no_error(client: FlaskClient, run: RunDirectory, text: str) -> None:
    """Whatever lies there: the same as nothing."""
    run.live_json.write_text(text)
    answer = client.get("/gapless/chaos")
    assert answer.status_code == 200
    assert answer.get_json()["phase"] is None


def test_the_data_is_the_newest_that_was_written(client: FlaskClient, run: RunDirectory) -> None:
    """Read at each request; nobody may keep it."""
    STATE.write(run.live_json)
    answer = client.get("/gapless/chaos")
    assert answer.get_json() == view.page(STATE, NOW_NS)
    assert answer.headers["Cache-Control"] == "no-store"


#: What the pages load, with its type.
FILES = {f"{name}.css": "text/css" for name in ("chaos", "locust")} | {
    f"{name}.js": "text/javascript" for name in ("chaos", "locust", "theme")
}


class References(HTMLParser):
    """Everything a document refers to, and every element that holds code of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [value for key in ("src", "href") if (value := given.get(key))]
        if tag == "style" or (tag == "script" and "src" not in given) or any(key.startswith("on") for key in given):
            self.inline.append(tag)


def test_the_page_needs_nothing_but_its_own_files(client: FlaskClient) -> None:
    """No address of another host in any of its files, nothing that its own policy would refuse."""
    page = client.get("/gapless/", buffered=True)
    found = References()
    found.feed(page.text)
    assert {"chaos.css", "chaos.js", "theme.js"} <= set(found.links)
    assert not [link for link in found.links if "//" in link] and found.inline == []
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    for name, kind in FILES.items():
        file = client.get(f"/gapless/{name}", buffered=True)
        assert file.status_code == 200 and file.mimetype == kind
        assert re.findall(r"https?:|//[a-z]+\.|@import|url\(|innerHTML", file.text) == []
    assert client.get("/gapless/absent").status_code == 404


def test_locusts_page_gets_what_is_ours_and_nothing_else_changes() -> None:
    """Once, at the end of its head; a page without a head stays as it is."""
    page = "<head><title>Locust</title></head><body></head></body>"
    found = References()
    found.feed(pages.joined(page))
    assert found.links == ["./gapless/locust.css", "./gapless/theme.js", "./gapless/locust.js"] and found.inline == []
    assert pages.joined(page).replace(pages._JOINED, "") == page
    assert pages.joined("{}") == "{}"


def test_until_the_load_has_started_a_page_waits() -> None:
    """It asks again by itself and needs nothing but our files; then Locust's page comes, with ours in its head."""
    app, started = Flask(__name__), False
    pages.join(app, lambda: started)
    app.add_url_rule("/", "index", view_func=lambda: "<head></head>")
    app.add_url_rule("/other", "other", view_func=lambda: "<head></head>")
    client = app.test_client()
    with client.get("/") as answer:
        status, page = answer.status_code, answer.text
    found = References()
    found.feed(page)
    assert status == 503
    assert {link.removeprefix("gapless/") for link in found.links} - {"assets/favicon-light.png"} <= set(FILES)
    assert found.inline == [] and 'http-equiv="refresh" content="1"' in page and "has not started yet" in page
    started = True
    assert client.get("/").text == pages.joined("<head></head>") != client.get("/other").text == "<head></head>"
