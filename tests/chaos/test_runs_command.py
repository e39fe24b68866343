"""``gapless runs``: what is listed, what differs between two runs, and that pruning removes finished runs alone."""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path

import pytest

from chaos.commands.main import run_command
from chaos.commands.runs.comparison import compared
from chaos.commands.runs.found import size
from chaos.commands.runs.pruning import OF_A_RUN
from chaos.commands.runs.wording import figure_words, option_words
from chaos.commands.serve.listed import entries_below
from chaos.commands.verifier_process import write_unjudged
from cluster.seams.clock import SystemClock
from tests.support.settings import run_model
from verifier.evidence.run_directory import RunDirectory
from verifier.facts import Audit, Facts, ReadLag
from verifier.figures.stats import stats

ROOT = Path(__file__).resolve().parents[2]
CHECKS = {"lost-write": {"count": 3, "allowed": True, "allowed_count": 1}}


def made(results: Path, place: str, day: int, verdict: str | None = "valid", *, ended: bool = True) -> Path:
    """A stored run of that day; the verdict ``invalid`` has two lost writes."""
    path = results / place
    (path / "history").mkdir(parents=True)
    seed = int(path.name.rpartition("-s")[2].partition("-")[0]) if "-s" in path.name else 1
    started = f"2026-01-{day:02}T10:20:30+00:00"
    run = run_model(seed=seed, started=started, ended=started if ended else None).to_json()
    (path / "run.json").write_text(json.dumps(run))
    if verdict is not None:
        stats = {"acked": 5, "read": 5, "memory_mb": {"broker": day}}
        checks = CHECKS if verdict == "invalid" else {}
        (path / "verdict.json").write_text(json.dumps({"verdict": verdict, "checks": checks, "stats": stats}))
    return path


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five runs, three of which are finished and ours, and what is none of them."""
    monkeypatch.chdir(tmp_path)
    made(Path("results"), "run/20260101T102030Z-s7", 1)
    made(Path("results"), "night/20260102T102030Z-s8-2", 2, "invalid")
    made(Path("results"), "run/20260103T102030Z-s9", 3)
    made(Path("results"), "run/20260104T102030Z-s10", 4, None, ended=False)
    made(Path("results"), "delivery/20260105T102030Z/cells/one", 5)
    (Path("results") / "delivery" / "20260105T102030Z" / "sweep.json").write_text("{}")
    (Path("results") / "up" / "nodes").mkdir(parents=True)
    (Path("results") / "README.md").write_text("kept")
    (Path("results") / "latest").symlink_to("run/20260104T102030Z-s10")
    return Path("results")


def test_runs_are_listed_newest_first(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Name, seed, verdict, anomalies, time and size; a run that is not over says so; cells are a sweep's."""
    assert run_command(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        *("run/20260104T102030Z-s10", "run/20260103T102030Z-s9", "night/20260102T102030Z-s8-2"),
        "run/20260101T102030Z-s7",
    ]
    assert re.fullmatch(r"run/\S+-s10 +10 +live +2026-01-04 10:20 +\S+ KB", lines[1])
    assert re.fullmatch(
        r"night/\S+ +8 +invalid +2026-01-02 10:20 +\S+ KB +lost-write:2 \(allowed: lost-write:1\)", lines[3]
    )
    assert run_command(["runs", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert (rows[2]["seed"], rows[2]["verdict"], rows[2]["anomalies"]) == (8, "invalid", "lost-write:2")


def test_a_run_that_is_being_written_is_live(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As 'gapless serve' calls it, by the same decision: one that was left alone is unfinished. Neither is pruned."""
    path = results / "run" / "20260104T102030Z-s10"
    for place in (path, *path.iterdir()):
        os.utime(place, (0, 0))
    for now, word in ((False, "unfinished"), (True, "live")):
        if now:
            (path / "history" / "p.arrow").touch()
        assert run_command(["runs", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["verdict"] == word
        (entry,) = (each for each in entries_below(results, SystemClock().wall_ms() / 1000) if each.seed == 10)
        assert entry.verdict == word
        assert run_command(["runs", "prune", "--keep", "0", "--dry-run"]) == 0
        assert path.name not in capsys.readouterr().out


def test_pruning_removes_finished_runs_beyond_those_to_keep(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what it removes, and a dry run removes nothing; the unfinished one, the sweep and all else stay."""
    before = sorted(results.rglob("*"))
    assert run_command(["runs", "prune", "--keep", "1", "--dry-run"]) == 0
    assert sorted(results.rglob("*")) == before
    assert capsys.readouterr().out.count("would remove ") == 2
    assert run_command(["runs", "prune", "--keep", "1"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^removed night/20260102T102030Z-s8-2  invalid  ", out, re.MULTILINE)
    assert "removed run/20260101T102030Z-s7  valid" in out
    gone = [results / "night", results / "run" / "20260101T102030Z-s7"]
    assert sorted(results.rglob("*")) == [
        path for path in before if not any(path.is_relative_to(each) for each in gone)
    ]


def test_a_run_that_no_one_judged_has_no_verdict_and_is_not_pruned(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--no-verify`` and an interrupt leave a page that says unknown, and evidence that nothing else has. A run that
    was judged, and is unknown, goes as all others do."""
    path = made(results, "run/20260102T102030Z-s11", 2, None)
    write_unjudged(RunDirectory(path), "not judged yet")
    assert run_command(["runs", "--json"]) == 0
    assert {each["seed"]: each["verdict"] for each in json.loads(capsys.readouterr().out)}[11] == "no verdict"
    judged = made(results, "run/20260102T102030Z-s12", 2, "unknown")
    assert run_command(["runs", "prune", "--keep", "0"]) == 0
    assert path.is_dir() and not judged.exists()


@pytest.mark.parametrize("what", ["latest", "strange", "named", "judged", "deep", "link"])
def test_pruning_keeps(what: str, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What latest points to, what has a file of somebody's or a name of its own, and what is being judged."""
    run = results / "run" / "20260101T102030Z-s7"
    why = {"latest": "latest points to it", "strange": "notes.txt", "named": "not named", "judged": "a verifier judges"}
    if what == "latest":
        (results / "latest").unlink()
        (results / "latest").symlink_to("run/20260101T102030Z-s7")
    elif what == "strange":
        (run / "notes.txt").write_text("mine")
    elif what == "named":
        run = run.rename(run.with_name("20260101T102030Z-s8"))
    elif what == "deep":
        run = run.rename(results / run.name)
        why["deep"] = "not named"
    elif what == "link":
        away = run.rename(results.parent / "away")
        run.symlink_to(away.resolve())
    descriptor = os.open(run, os.O_RDONLY)
    if what == "judged":
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert run_command(["runs", "prune", "--keep", "0"]) == (255 if what == "judged" else 0)
    os.close(descriptor)
    assert (run / "run.json").exists()
    said = capsys.readouterr()
    assert why.get(what, "") in said.err
    assert "removed night/20260102T102030Z-s8-2" in said.out
    assert "removed run/20260103T102030Z-s9" in said.out


def test_what_a_run_leaves_is_what_pruning_knows() -> None:
    """The table of results/README.md, whose rows another test compares with a real run."""
    page = (ROOT / "results" / "README.md").read_text().partition("\n## ")[0]
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    names = {name.split("/")[0] for cell in cells for name in re.findall("`([^`]+)`", cell)}
    assert names == {name for name in OF_A_RUN if not name.startswith(".")}


def test_two_runs_are_compared_where_they_differ(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdicts, seeds and counts always; figures that agree are left out."""
    one, other = results / "run" / "20260101T102030Z-s7", results / "night" / "20260102T102030Z-s8-2"
    assert run_command(["runs", "compare", str(one), str(other), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == ["valid", "invalid"]
    assert found["anomalies"] == ["none", "lost-write:2"]
    assert found["acked"] == ["5", "5"]
    assert found["memory_mb.broker"] == ["1", "2"]
    assert "read" in found and "stats.read" not in found
    assert run_command(["runs", "compare", str(one), str(results / "run" / "20260103T102030Z-s9")]) == 0
    whats = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()[1:]]
    said = ["verdict", "seed", "acknowledged", "read at the end", "anomalies", "allowed", "memory (MB): broker"]
    assert whats == said
    assert run_command(["runs", "compare", str(one), str(results / "latest")]) == 0
    assert re.search(r"^verdict +valid +-$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "value", "typed"),
    [
        ("time_limit_s", 60.0, ("--time-limit", "60s")),
        ("stalled_after_s", 2.5, ("--stalled-after", "2.5s")),
        ("defects", [], ("--defect", "none")),
        ("defects", ["lose-acked:0.05", "early-watermark"], ("--defect", "lose-acked:0.05, early-watermark")),
        ("readers", ["confluent", "native"], ("--readers", "confluent,native")),
        ("overlap", True, ("--overlap", "yes")),
        ("idempotence", False, ("--idempotence", "false")),
        ("rate", 1000, ("--rate", "1000")),
        (
            "schedule",
            {"path": "s.yaml", "seed": 1, "injections": [{"at_s": 4.0, "fault": "kill-leader", "duration_s": 2.0}]},
            ("--schedule", "s.yaml (1 fault)"),
        ),
        ("of_another_version", {"a": 1}, ("--of-another-version", "{'a': 1}")),
        ("schedule", {"path": "s.yaml"}, ("--schedule", "{'path': 's.yaml'}")),
    ],
)
def test_an_option_is_compared_as_it_is_typed(name: str, value: object, typed: tuple[str, str]) -> None:
    """Its name and its value are those of the command line; what cannot be read is shown as it is recorded."""
    assert option_words(name, value) == typed


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("acked_and_read", 137746, ("acknowledged and read at the end", "137,746")),
        ("acked", "137746", ("acknowledged", "137,746")),
        ("acked", "?", ("acknowledged", "?")),
        ("anomalies", "lost-write:1200,duplicate:3", ("anomalies", "lost-write 1,200, duplicate 3")),
        ("anomalies", "none", ("anomalies", "none")),
        ("read_lag.worst_ms", 1204.5, ("longest read lag (ms)", "1,204.5")),
        ("transactions.committed", 1200, ("transactions: committed", "1,200")),
    ],
)
def test_a_figure_is_compared_in_the_words_of_reports(name: str, value: object, words: tuple[str, str]) -> None:
    """With its thousands separated; one that is not known has its own name, spelled."""
    assert figure_words(name, value) == words


def test_every_figure_of_a_verdict_has_words() -> None:
    """No name of a field is shown: of those that are counted for every run, each is known or no figure."""
    whole = stats([], Audit(Facts(), lags=(ReadLag(None, None, 1, 2, 3, 4, 5, 0),)))
    told = {line.name: line.label for line in compared([({}, {"stats": whole}), ({}, {})])}
    assert "read_lag.worst_ms" in told and not [each for each in told.values() if re.search("[._]", each)]
    assert not [name for name in told if "stream" in name or "sequence" in name]


def test_runs_are_compared_for_people_and_for_programs(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table has words; the object has the names and values of the files."""
    one, other = results / "run" / "20260101T102030Z-s7", results / "night" / "20260102T102030Z-s8-2"
    for path, defects in ((one, []), (other, ["lose-acked:0.05"])):
        whole = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps({**whole, "experiment": {"asked": {"defects": defects}}}))
    assert run_command(["runs", "compare", str(one), str(other)]) == 0
    assert re.search(r"^--defect +none +lose-acked:0.05$", capsys.readouterr().out, re.MULTILINE)
    assert run_command(["runs", "compare", str(one), str(other), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["--defects"] == ["[]", "['lose-acked:0.05']"]


def test_a_verdict_on_other_evidence_is_not_compared(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the seal of the evidence that it was made of: this run has no verdict, as in the list."""
    one, other = results / "run" / "20260101T102030Z-s7", results / "run" / "20260103T102030Z-s9"
    recorded = json.loads((one / "verdict.json").read_text())
    (one / "verdict.json").write_text(json.dumps({**recorded, "stats": {"acked": 5, "seal": "another"}}))
    assert run_command(["runs", "compare", str(one), str(other), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == ["no verdict", "valid"]


def test_a_page_lists_all_with_links(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Relative links that lead somewhere, to the report where there is one; no script and no network."""
    (results / "run" / "20260103T102030Z-s9" / "report.html").touch()
    assert run_command(["runs", "index"]) == 0
    page = results / "index.html"
    assert capsys.readouterr().out.strip() == str(page.resolve())
    text = page.read_text()
    links = re.findall(r'href="([^"]+)"', text)
    assert len(links) == 4 and all((results / link).exists() for link in links)
    assert [link for link in links if link.endswith(".html")] == ["run/20260103T102030Z-s9/report.html"]
    assert not re.search(r"<script|https?:|\bstyle=", text)


def test_results_may_be_named_before_a_command_of_runs(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``gapless runs --results DIR index`` looked in ./results."""
    monkeypatch.chdir(tmp_path)
    elsewhere = results.resolve().rename(tmp_path / "elsewhere")
    assert run_command(["runs", "--results", str(elsewhere), "index"]) == 0
    assert capsys.readouterr().out.strip() == str(elsewhere / "index.html")
    assert run_command(["runs", "--results", "nowhere", "prune", "--keep", "9", "--results", str(elsewhere)]) == 0


def test_sizes_are_short() -> None:
    """Three digits at most, in powers of a thousand."""
    assert [size(each) for each in (0, 999, 1000, 9949, 9950, 41_234_567, 2.5e9)] == [
        *("0 B", "999 B", "1.0 KB", "9.9 KB", "10 KB", "41 MB", "2.5 GB")
    ]


def test_the_latest_run_is_meant_if_none_is_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """report and dump say which run they took."""
    latest = results / "run" / "20260103T102030Z-s9"
    (results / "latest").unlink()
    (results / "latest").symlink_to("run/20260103T102030Z-s9")
    (latest / "report.html").touch()
    assert run_command(["report"]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == str((latest / "report.html").resolve())
    assert said.err == f"gapless: results/latest is {latest}\n"
    segment = latest / "nodes" / "1" / "data" / "t-0" / "00000000000000000000.log"
    segment.parent.mkdir(parents=True)
    segment.touch()
    assert run_command(["dump"]) == 0
    assert "broker=1  partition=t-0" in capsys.readouterr().out
