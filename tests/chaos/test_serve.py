"""``gapless serve``: what is listed, chosen and compared, what is served to whom, and what is refused."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import pytest

from chaos.commands.main import run_command
from chaos.commands.runs.found import QUIET_S
from chaos.commands.serve import serve_pages
from chaos.commands.serve.application import ServeApplication
from chaos.commands.serve.choice import MOST_SHOWN, Choice, chosen, verdicts_of
from chaos.commands.serve.listed import Listed, cells_of, entries_below
from chaos.commands.serve.served_files import MOST_BYTES, inside
from chaos.commands.serve.side_by_side import CannotCompare, compared
from cluster.hosts import GuardedWsgi
from cluster.seams.clock import SystemClock
from cluster.seams.http_port import HttpPort
from tests.chaos.test_runs_command import made
from verifier.evidence import seal
from verifier.evidence.run_directory import RunDirectory

VALID, INVALID = "run/20260101T102030Z-s7", "night/20260102T102030Z-s8"
OPEN, SWEEP = "run/20260104T102030Z-s10", "delivery/20260105T102030Z"
EVIL = "<script>alert(1)</script>"
LATER_S = QUIET_S + 3600


def sweep_at(
    results: Path, place: str, counts: dict[str, int], *, ended: str | None = "2026-01-05T11:00:00+00:00"
) -> Path:
    """A stored sweep; each count is also a setting."""
    path = results / place
    path.mkdir(parents=True)
    rows = [
        {"labels": {"fault": name}, "verdict": name, "verdicts": [name] * count, "forbidden": {}}
        for name, count in counts.items()
    ]
    whole = {
        "sweep": "delivery",
        "started": "2026-01-05T10:20:30+00:00",
        "ended": ended,
        "counts": counts,
        "rows": rows,
    }
    (path / "sweep.json").write_text(json.dumps(whole))
    return path


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two runs that are over, one that is not, a sweep with a cell; beside them a file that is no one's business."""
    base = tmp_path / "results"
    (made(base, VALID, 1) / "report.html").write_text(f"<p>{EVIL}</p>")
    made(base, INVALID, 2, "invalid")
    made(base, OPEN, 4, None, ended=False)
    sweep = sweep_at(base, SWEEP, {"valid": 2, "invalid": 1})
    made(base, f"{SWEEP}/cells/one", 5)
    (sweep / "sweep.html").write_text("<p>the sweep</p>")
    (base / "latest").symlink_to(VALID)
    (base / "out").symlink_to(tmp_path)
    (tmp_path / "secret.txt").write_text("a secret")
    return base


def now_s() -> float:
    return SystemClock().wall_ms() / 1000


# What is there


def test_runs_and_sweeps_are_entries(results: Path) -> None:
    """Each with its state, details and page; a sweep's cells are its own; links lead to no second entry."""
    entries = {entry.place: entry for entry in entries_below(results, now_s() + LATER_S)}
    assert entries.keys() == {VALID, INVALID, OPEN, SWEEP}
    told = [
        (entries[place].kind, entries[place].verdict, entries[place].page) for place in (VALID, INVALID, OPEN, SWEEP)
    ]
    assert told == [
        ("run", "valid", "report.html"), ("run", "invalid", ""), ("run", "unfinished", ""),
        ("sweep", "invalid", "sweep.html"),
    ]  # fmt: skip
    assert (entries[INVALID].details, entries[SWEEP].details) == ("lost-write:2", "2 valid, 1 invalid")
    assert [cell.place for cell in cells_of(results, results / SWEEP, now_s())] == [f"{SWEEP}/cells/one"]


def test_what_is_written_now_is_live(results: Path) -> None:
    """A run or sweep that has not ended, and has a file that is younger than a minute; the run tells how far it is."""
    state = {
        "name": "run", "seed": 10, "started_ns": 0, "time_ns": 9, "time_limit_s": 60.0, "phase": "chaos",
        "phase_since_ns": 1, "load_since_ns": 1, "report": "", "planned": 5, "done": 2, "active": [], "past": [],
        "load": {"acked": 12345.0},
    }  # fmt: skip
    (results / OPEN / "live.json").write_text(json.dumps(state))
    sweep_at(results, "delivery/20260106T102030Z", {"valid": 1, "not run": 3}, ended=None)
    young = {entry.place: entry for entry in entries_below(results, now_s())}
    assert young[OPEN].verdict == young["delivery/20260106T102030Z"].verdict == "live"
    assert young[OPEN].details == "chaos, 2 of 5 faults, 12,345 records acknowledged"
    assert (young[VALID].verdict, young[SWEEP].verdict) == ("valid", "invalid")
    old = {entry.place: entry.verdict for entry in entries_below(results, now_s() + LATER_S)}
    assert old[OPEN] == old["delivery/20260106T102030Z"] == "unfinished"


@pytest.mark.parametrize("load", [[], None, {"acked": "many"}, {"acked": None}])
def test_a_run_that_tells_nonsense_hides_no_other(results: Path, load: object) -> None:
    """How far it says to be is left out; it is listed, and so are the others."""
    state = {
        "name": "run", "seed": 10, "started_ns": 0, "time_ns": 9, "time_limit_s": 60.0, "phase": "chaos",
        "phase_since_ns": 1, "load_since_ns": 1, "report": "", "active": [], "past": [], "load": load,
    }  # fmt: skip
    (results / OPEN / "live.json").write_text(json.dumps(state))
    entries = {entry.place: (entry.verdict, entry.details) for entry in entries_below(results, now_s())}
    assert entries.keys() == {VALID, INVALID, OPEN, SWEEP} and entries[OPEN] == ("live", "")


def test_a_name_that_is_no_text_hides_no_other(results: Path) -> None:
    """Names are bytes: one that is not UTF-8 is listed, and leads to its files."""
    odd = os.fsdecode(b"run/\xff")
    made(results, odd, 7)
    answers: list[str] = []

    def ask(path: str) -> str:
        application = ServeApplication(results, SystemClock())
        body = application({"PATH_INFO": path}, lambda status, _headers: answers.append(status))
        return b"".join(body).decode()

    assert 'href="/files/run/%FF/"' in ask("/")
    assert "run.json" in ask("/files/run/\xff")
    assert "history" in ask("/files/run/\xff/history")
    assert answers == ["200 OK"] * 3


@pytest.mark.parametrize(("counts", "state"), [({"valid": 3, "unjudged": 1}, "unjudged"), ({"valid": 4}, "valid")])
def test_a_sweep_with_a_run_that_is_not_judged_is_not_valid(results: Path, counts: dict[str, int], state: str) -> None:
    """It has run, and what it would show is not known."""
    sweep_at(results, "defects/now", counts)
    assert {entry.place: entry.verdict for entry in entries_below(results, now_s())}["defects/now"] == state


def test_a_sweep_says_what_it_comes_to(results: Path) -> None:
    """Not its verdicts, where those of runs with a defect are to be invalid; it is listed also at the top."""
    for place, counts, state in (("missed", {"valid": 1}, "invalid"), ("defects/found", {"invalid": 1}, "valid")):
        path = sweep_at(results, place, counts)
        whole = json.loads((path / "sweep.json").read_text())
        (path / "sweep.json").write_text(json.dumps({**whole, "state": state}))
        entries = {entry.place: entry.verdict for entry in entries_below(results, now_s() + LATER_S)}
        assert entries[place] == state


def test_a_verdict_on_other_evidence_is_not_shown(results: Path) -> None:
    """It names the seal of the evidence that it was made of, and another one lies there."""
    run = RunDirectory(results / VALID)
    own = seal.take(run).digest
    verdict = json.loads(run.verdict_json.read_text())
    for named, state in ((own, "valid"), ("0" * 64, "no verdict")):
        run.verdict_json.write_text(json.dumps({**verdict, "stats": {**verdict["stats"], "seal": named}}))
        assert {entry.place: entry.verdict for entry in entries_below(results, now_s() + LATER_S)}[VALID] == state


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"sweep": "x", "counts": 3}', "no JSON", '{"sweep": "x", "counts": {"a": "b"}}']
)
def test_what_is_no_sweep_is_left_out(results: Path, text: str) -> None:
    """A damaged file takes no page away."""
    (results / SWEEP / "sweep.json").write_text(text)
    assert SWEEP not in {entry.place for entry in entries_below(results, now_s())}


# What is chosen


def entry(place: str, **fields: object) -> Listed:
    plain = Listed("run", place, "", "run", 1, "valid", "", "2026-01-01", 10)
    return replace(plain, **fields)  # type: ignore[arg-type]


ENTRIES = [
    entry("b", seed=2, started="2026-01-02"),
    entry("a", verdict="invalid", details="lost-write:3", size_bytes=99),
    entry("c", kind="sweep", seed=None, name="Delivery", started="2026-01-03"),
]


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ({}, ["c", "b", "a"]),
        ({"kind": ["run"]}, ["b", "a"]),
        ({"verdict": ["invalid"]}, ["a"]),
        ({"state": ["invalid"]}, ["a"]),  # as it was called once
        ({"text": [" DELIV "]}, ["c"]),
        ({"text": ["lost-write"]}, ["a"]),
        ({"order": ["seed"], "direction": ["ascending"]}, ["c", "a", "b"]),
        ({"order": ["size"]}, ["a", "b", "c"]),
        ({"order": ["name"], "direction": ["ascending"]}, ["c", "a", "b"]),
        ({"kind": ["nonsense"], "order": ["rm"], "direction": ["sideways"]}, ["c", "b", "a"]),
        ({"verdict": ["never"]}, []),
    ],
)
def test_what_a_form_asks_for(query: dict[str, list[str]], places: list[str]) -> None:
    """By kind, state and text, in an order and its reverse; what no form sends is as if it was not said."""
    assert [each.place for each in chosen(ENTRIES, Choice.of(query))] == places


def test_the_states_that_occur_can_be_chosen() -> None:
    """The form offers each of them, once."""
    assert verdicts_of([*ENTRIES, *ENTRIES]) == ["invalid", "valid"]


def test_a_page_has_so_many_at_most() -> None:
    """It says how many more there are."""
    many = [entry(f"run/{number:05}") for number in range(MOST_SHOWN + 7)]
    page = serve_pages.listing("all", "/", many, Choice())
    assert page.count('type="checkbox"') == MOST_SHOWN
    assert "7 are not shown" in page


# What is compared


def test_runs_side_by_side(results: Path) -> None:
    """Verdict and counts of all, options and figures where they differ; one without a verdict has dashes."""
    rows = {row[0]: row[1:] for row in compared([results / VALID, results / INVALID, results / OPEN])}
    assert rows["verdict"] == ("valid", "invalid", "-")
    assert rows["seed"] == ("7", "8", "10")
    assert rows["memory (MB): broker"] == ("1", "2", "-")


def test_a_verdict_on_other_evidence_is_not_compared(results: Path) -> None:
    """As in the list: the run has no verdict, and no figures of one."""
    run = RunDirectory(results / VALID)
    recorded = json.loads(run.verdict_json.read_text())
    for digest, told in ((seal.take(run).digest, "valid"), ("of other evidence", "no verdict")):
        stats = {**recorded["stats"], "seal": digest}
        run.verdict_json.write_text(json.dumps({**recorded, "stats": stats}))
        rows = {row[0]: row[1:] for row in compared([results / VALID, results / INVALID])}
        assert rows["verdict"] == (told, "invalid")
        assert rows["memory (MB): broker"] == (("1" if told == "valid" else "-"), "2")


def test_sweeps_side_by_side(results: Path) -> None:
    """How their cells ended, and each setting that one of them has."""
    other = sweep_at(results, "delivery/other", {"valid": 1, "unknown": 1})
    rows = {row[0]: row[1:] for row in compared([results / SWEEP, other])}
    assert rows["cells: valid"] == ("2", "1")
    assert (rows["valid"], rows["unknown"]) == (("valid 2/2", "valid"), ("-", "unknown"))


def test_a_run_and_a_sweep_cannot_be_compared(results: Path) -> None:
    """Nor can what is neither of the two."""
    with pytest.raises(CannotCompare, match="A run cannot be compared with a sweep"):
        compared([results / VALID, results / SWEEP])
    with pytest.raises(CannotCompare, match="cannot be read"):
        compared([results / VALID, results / "run"])


# Which files


@pytest.mark.parametrize(
    "place",
    [
        *(
            "",
            "/",
            "..",
            "../secret.txt",
            "run/../../secret.txt",
            "/etc/passwd",
            "//etc/passwd",
            "out/secret.txt",
            "out",
        ),
        *("absent", "run\\..\\..\\secret.txt", "run/\0", "."),
    ],
)
def test_no_path_leads_out(results: Path, place: str) -> None:
    """Neither by dots, nor by links, nor by an absolute one; nor to the directory itself."""
    assert inside(results, place) is None


def test_links_within_are_followed(results: Path) -> None:
    """``latest`` leads to a run, which is shown."""
    assert inside(results, "latest/run.json") == (results / VALID / "run.json").resolve()


# Who is answered


@pytest.fixture
def port(results: Path) -> Iterator[int]:
    served = HttpPort(GuardedWsgi(ServeApplication(results, SystemClock())), 0, "127.0.0.1")
    yield served.port
    served.close()


def ask(port: int, path: str, method: str = "GET", host: str = "") -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{port}")
    connection.endheaders()
    with connection.getresponse() as answer:
        told = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    connection.close()
    return told


def test_the_pages_lead_to_each_other(port: int) -> None:
    """From the list to reports, cells, comparisons and files; every link of every page is answered."""
    seen, open_links = set(), ["/"]
    while open_links:
        link = open_links.pop()
        if link in seen or len(seen) > 150:
            continue
        seen.add(link)
        status, headers, text = ask(port, link)
        assert status == HTTPStatus.OK, link
        if headers["content-type"].startswith("text/html") and not link.endswith(".html"):
            open_links += [each.replace("&amp;", "&") for each in re.findall(r'href="([^"]+)"', text)]
    assert {f"/files/{VALID}/report.html", f"/sweep/{SWEEP}", f"/files/{SWEEP}/cells/one/run.json"} <= seen
    status, _, text = ask(port, f"/compare?place={quote(VALID)}&place={quote(INVALID)}")
    assert status == HTTPStatus.OK and '<tr class="differs"><td class="lead">verdict</td>' in text


def test_the_list_is_what_was_asked_for(port: int) -> None:
    """The form's fields choose, and stand in the form again."""
    _, _, text = ask(port, "/?kind=run&verdict=invalid&text=night&order=seed&direction=ascending")
    assert re.findall(r'name="place" value="([^"]+)"', text) == [INVALID]
    assert 'value="night"' in text and "<option selected>run</option>" in text
    assert "<option selected>invalid</option>" in text


@pytest.mark.parametrize("query", ["verdict=invalid&order=verdict", "state=invalid&order=state"])
def test_a_verdict_is_called_so(query: str, port: int) -> None:
    """By the form, the heading and the address; an address that was kept from before still works."""
    _, _, text = ask(port, f"/?{query}")
    assert re.findall(r'name="place" value="([^"]+)"', text) == sorted((INVALID, SWEEP))
    assert re.search(r'aria-sort="descending"><a href="[^"]*order=verdict[^"]*">verdict</a>', text)
    assert '<select name="verdict">' in text and "state" not in text.partition("</style>")[2]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/sweep/absent", 404),
        (f"/sweep/{VALID}", 404),
        ("/compare", 400),
        (f"/compare?place={VALID}", 400),
        (f"/compare?place={VALID}&place={SWEEP}", 400),
        (f"/compare?place={VALID}&place=..%2F..%2Fetc", 404),
        ("/compare?" + "&".join(f"place={number}" for number in range(9)), 400),
        ("/files/", 404),
        ("/files/../secret.txt", 404),
        ("/files/%2e%2e/secret.txt", 404),
        ("/files/..%2fsecret.txt", 404),
        ("/files/out/secret.txt", 404),
        ("/files//etc/passwd", 404),
        ("/files/run%00", 404),
        ("/sweep/..", 404),
        (f"/files/{VALID}/pipe", 403),
        (f"/files/{VALID}/large", 403),
    ],
)
def test_what_is_refused(port: int, results: Path, path: str, status: int) -> None:
    """With a page that says why, and nothing of what lies outside."""
    os.mkfifo(results / VALID / "pipe")
    with (results / VALID / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    got, headers, text = ask(port, path)
    assert got == status and headers["content-type"].startswith("text/html")
    assert "a secret" not in text and "root:" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(port: int, method: str) -> None:
    """Only GET and HEAD are answered; the latter without a body."""
    status, headers, _ = ask(port, "/", method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    assert ask(port, "/", "HEAD")[::2] == (200, "")


def test_a_rebound_name_is_not_answered(port: int) -> None:
    """A page of the web whose name points here reads nothing; this machine's names are served."""
    assert [ask(port, "/", host=host)[0] for host in ("rebound.example.org", "localhost", "[::1]")] == [403, 200, 200]


def test_what_others_wrote_is_shown_and_not_run(port: int, results: Path) -> None:
    """Names, verdicts and queries are escaped; a report comes without scripts; what is no text is saved."""
    evil = made(results, f"run/{EVIL.replace('/', '')}-s3", 6)
    for name, key in (("run.json", "name"), ("verdict.json", "verdict")):
        told = json.loads((evil / name).read_text())
        (evil / name).write_text(json.dumps({**told, key: EVIL}))
    (results / VALID / "x.bin").write_bytes(b"\x00")
    where = quote(evil.name)
    for path in (f"/?text={quote(EVIL)}", "/", f"/compare?place=run/{where}&place={VALID}", f"/files/run/{where}"):
        status, headers, text = ask(port, path)
        assert status == 200 and "<script" not in text
        policy = re.search('Content-Security-Policy" content="([^"]+)"', text)
        assert policy is not None and unescape(policy[1]).startswith("default-src 'none'; style-src 'sha256-")
        assert "script" not in policy[1]
        assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")
    _, headers, text = ask(port, f"/files/{VALID}/report.html")
    assert EVIL in text and headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert ask(port, f"/files/{VALID}/run.json")[1]["content-type"] == "text/plain; charset=utf-8"
    assert ask(port, f"/files/{VALID}/x.bin")[1]["content-disposition"] == "attachment"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org", "localhost", ""])
def test_only_this_machine_can_ask(host: str, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other addresses are refused, and names: they could become others."""
    assert run_command(["serve", "--results", str(results), "--host", host]) == 254
    assert "--host" in capsys.readouterr().err


def test_a_directory_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says how to get one."""
    assert run_command(["serve", "--results", str(tmp_path / "absent")]) == 254
    assert "gapless run" in capsys.readouterr().err


@pytest.mark.integration
def test_it_serves_until_it_is_told_to_end(results: Path) -> None:
    """It says where, answers there, and ends well by SIGINT."""
    argv = [sys.executable, "-m", "chaos.commands.main", "serve", "--results", str(results), "--port", "0"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found is not None, line
        assert ask(int(found[1]), "/")[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
