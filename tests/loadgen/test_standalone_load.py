"""A load by hand: where it goes, the page of its options, and the command line of ``gapless load``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import configargparse
import pytest

from chaos.commands.load import arguments
from chaos.commands.main import run_command
from chaos.exits import BadRequest
from cluster.process.invocation import command
from loadgen.command import LOCUST, LOCUSTFILE
from loadgen.hosts import checked_host
from loadgen.settings import LoadSettings, SettingsError
from loadgen.users.command_line import add_options, refuse_as_we_do
from loadgen.users.document import document
from loadgen.users.options import members_left_out, settle_options
from tests.verifier.test_verify_standalone import LAST, READ, SENT, load, row
from verifier.evidence.run_directory import RunDirectory, read_json

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("host", ["h", "h:9092", "h:1,i:2", "[::1]:9092", "PLAINTEXT://h:9092,i:1"])
def test_bootstrap_servers_are_taken_as_they_are(host: str) -> None:
    """Any address that librdkafka takes is taken unchanged."""
    assert checked_host(host) == host


@pytest.mark.parametrize(
    ("host", "meant"),
    [
        ("http://h:9092", "--host h:9092"),
        ("https://h", "--host h:9092"),
        ("http://h:9092/path", "--host h:9092"),
        ("kafka://h:1,kafka://i:2", "--host h:1,i:2"),
        ("h:9092/", "--host h:9092"),
        ("SASL_SSL://h:9093", "--host h:9093"),
    ],
)
def test_a_url_is_refused_with_the_form_that_is_meant(host: str, meant: str) -> None:
    """Locust's own word for it is a URL; here a client would fail for ever without saying why."""
    with pytest.raises(SettingsError, match="not a URL") as refusal:
        checked_host(host)
    assert str(refusal.value).endswith(f"here: {meant}")


def test_the_page_of_options_is_made_from_the_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/load-options.md is what ``python -m loadgen.users.document`` writes; run that after a change."""
    page = (ROOT / "docs" / "load-options.md").read_text()
    assert page == document()
    parser = configargparse.ArgParser(add_help=False)
    add_options(parser)
    options = [option for action in parser._actions for option in action.option_strings]
    assert len(options) == 18 and [option for option in options if page.count(f"| `{option} ") != 1] == []
    monkeypatch.setenv("COLUMNS", "200")
    assert run_command(["load", "--help"]) == 0
    assert set(options) <= set(re.findall(r"--kafka-[a-z-]+", capsys.readouterr().out)), "and so has the help"


@pytest.mark.parametrize(
    ("host", "others", "web", "words"),
    [
        ("h:1", [], False, ["--host", "h:1", "--headless"]),
        ("h:1", ["-t", "5s"], False, ["-t", "5s", "--host", "h:1", "--headless"]),
        ("h:1", ["--headless"], False, ["--headless", "--host", "h:1"]),
        ("h:1", [], True, ["--host", "h:1", "--web-host", "127.0.0.1"]),
        ("h:1", ["--web-port", "9"], False, ["--web-port", "9", "--host", "h:1", "--web-host", "127.0.0.1"]),
        ("h:1", ["--web-host=::1"], False, ["--web-host=::1", "--host", "h:1"]),
        (None, ["--worker", "--master-host", "m"], False, ["--worker", "--master-host", "m"]),
    ],
)
def test_what_becomes_of_a_command_line(host: str | None, others: list[str], web: bool, words: list[str]) -> None:
    """Without a page unless one is asked for, and then a page for this machine alone; the rest is Locust's."""
    assert arguments(host, others, web=web) == words


def test_a_load_without_a_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Locust is loaded; a variable of Locust's counts."""
    monkeypatch.delenv("LOCUST_HOST", raising=False)
    with pytest.raises(BadRequest, match="no cluster given: pass --host"):
        arguments(None, [], web=False)
    monkeypatch.setenv("LOCUST_HOST", "h:1")
    assert arguments(None, [], web=False) == ["--headless"]


def test_the_command_becomes_locust(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same interpreter, the locustfile of this package, what follows passed on, and no module from here."""
    seen: list[Any] = []
    monkeypatch.setattr("os.execve", lambda *given: seen.extend(given))
    run_command(["load", "--host", "h:1", "--run-time", "60s", "--users", "9", "--kafka-rate", "5"])
    program, argv, environment = seen
    assert program == sys.executable
    assert argv[:5] == [sys.executable, "-m", LOCUST, "--locustfile", str(LOCUSTFILE)]
    assert argv[5:11] == ["--run-time", "60s", "--users", "9", "--kafka-rate", "5"]
    assert environment["PYTHONSAFEPATH"] == "1" and environment["MALLOC_ARENA_MAX"]


def test_a_former_load_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command becomes the program that does it, which needs no Locust."""
    seen: list[Any] = []
    monkeypatch.setattr("os.execve", lambda *given: seen.extend(given))
    directory = str(load(tmp_path, SENT, READ).path)
    run_command(["load", "--read-back", directory])
    assert seen[1] == [sys.executable, "-m", "loadgen.read_back", directory]
    run_command(["load", "--read-back", directory, "--host", "h:1"])
    assert seen[4][3:] == [directory, "--host", "h:1"]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["{load}", "--users", "3"], "only reads back a previous load: leave out --users"),
        (["{load}", "--web"], "only reads back a previous load: leave out --web"),
        (["{load}", "--host", "http://h:1"], "not a URL"),
        (["{load}/history"], "not the directory of a standalone load"),
        (["/nowhere"], "--read-back /nowhere: not the directory of a standalone load"),
    ],
)
def test_reading_back_starts_no_load(
    argv: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And is for loads by hand alone."""
    directory = str(load(tmp_path, SENT, READ).path)
    assert run_command(["load", "--read-back", *(word.format(load=directory) for word in argv)]) == 254
    out, err = capsys.readouterr()
    assert out == "" and why in err and err.count("\n") == 1


def test_a_load_is_judged_in_its_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lines of a run, the reports beside the histories, and how it was judged before leaves nothing there."""
    run = load(tmp_path, SENT, READ[:0])
    assert run_command(["verify", str(run.path)]) == 2
    run = load(tmp_path, SENT, [*READ, row("poll", "ok", 3, 3, LAST + 1, at=5, session=1)])
    assert run_command(["verify", str(run.path)]) == 1
    assert (run.anomalies_dir / "duplicate.csv").exists()
    run = load(tmp_path, SENT, READ)
    capsys.readouterr()
    assert run_command(["verify", str(run.path)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == [
        f"RESULT valid acked={LAST} read={LAST} anomalies=none allowed=none", f"report: {run.summary_md}",
    ]  # fmt: skip
    assert "note: a client-only verdict cannot see what the brokers stored" in err
    assert not any(run.anomalies_dir.iterdir()) and read_json(run.verdict_json)["kind"] == "operations"


def test_a_load_that_never_began_is_unknown_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a list, as ``results/locust/*`` is one, and alone; nothing is written where nothing began."""
    run = load(tmp_path, SENT, READ)
    nothing = RunDirectory(tmp_path / "a").prepare()
    assert run_command(["verify", str(nothing.path), str(run.path)]) == 2
    out, err = capsys.readouterr()
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("RESULT")] == [
        ["RESULT", "unknown"], ["RESULT", "valid"],
    ]  # fmt: skip
    assert "the load never began, so that there is nothing to judge: no cluster had responded" in err
    assert run_command(["verify", str(nothing.path)]) == 2
    assert not any(path.is_file() for path in nothing.path.rglob("*"))


def test_a_directory_that_is_no_load_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Empty, or with a history that no load began: who named it meant another."""
    run = RunDirectory(tmp_path / "a").prepare()
    run.history("load").touch()
    (tmp_path / "empty").mkdir()
    for path in (run.path, tmp_path / "empty"):
        assert run_command(["verify", str(path)]) == 254
        assert "never began" not in capsys.readouterr().err


def test_a_load_is_exported_without_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is judged: the numbers of operations in a verdict are those of its lines."""
    foreign = row("poll", "ok", -1, -1, 20, at=5, session=1, stream=-1, error="foreign: run 8")
    run = load(tmp_path, SENT, [*READ, foreign])
    assert run_command(["export", str(run.path), "--jsonl"]) == 0
    out = capsys.readouterr().out
    assert "t-0" in out and "foreign" not in out and "sentinel" not in out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--kafka-rtae", "3"], "unknown option --kafka-rtae 3; did you mean --kafka-rate?"),
        (["--kafka-rat", "3"], "unknown option --kafka-rat 3; did you mean --kafka-rate?"),
        (["--kafka-rat=3"], "unknown option --kafka-rat=3; did you mean --kafka-rate?"),
        (["--kafka-read-back", "maybe"], "argument --kafka-read-back: invalid choice: 'maybe'"),
        (["--kafka-partitions", "x"], "argument --kafka-partitions: invalid int value: 'x'"),
        (["--kafka-flush-timeout", "soon"], "argument --kafka-flush-timeout: "),
    ],
)
def test_a_bad_option_is_one_line(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With our status: Locust's own for it reads as unknown."""
    parser = configargparse.ArgParser(add_help=False)
    add_options(parser)
    refuse_as_we_do(parser)
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(argv)
    err = capsys.readouterr().err
    assert ended.value.code == 254 and err.count("\n") == 1
    assert err.startswith(f"gapless load: {says}") and err.endswith(f"(see '{command(['load', '--options'])}')\n")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--kafka-rate", "0"], "--kafka-rate 0: rate is 0.0; it must be above 0"),
        (["--kafka-value-bytes", "9"], "--kafka-value-bytes 9: values have at least 48 bytes"),
        (["--kafka-client", "java"], "--kafka-client java: client is 'java'; use one of native, confluent"),
        (["--kafka-partitions", "0"], "--kafka-partitions 0: partitions is 0; it must be at least 1"),
    ],
)
def test_what_cannot_be_names_its_option(argv: list[str], says: str, tmp_path: Path) -> None:
    """Not only the field that it fills, and no directory is made."""
    parser = configargparse.ArgParser(add_help=False)
    add_options(parser)
    options = parser.parse_args([*argv, "--kafka-results", str(tmp_path / "results")])
    with pytest.raises(SettingsError) as refusal:
        settle_options(options)
    assert str(refusal.value).startswith(says) and not (tmp_path / "results").exists()


def test_members_are_not_left_out_in_silence(tmp_path: Path) -> None:
    """A standalone load has none: its workload is named, with what has them; a run's own processes are told nothing."""
    parser = configargparse.ArgParser(add_help=False)
    add_options(parser)

    def told(*argv: str, classes: tuple[str, ...] = ()) -> str | None:
        options = parser.parse_args([*argv, "--kafka-results", str(tmp_path / "results")])
        settle_options(options)
        return members_left_out(options, classes)

    assert told("--kafka-workload", "groups") == (
        "workload groups has members of a consumer group, and standalone Locust starts none: they are left out; "
        "'gapless run --workload groups' has them"
    )
    assert told("--kafka-workload", "mixed") is None and told(classes=("ProducerUser", "ReaderUser")) is None
    for name in ("MemberUser", "TransformerUser"):
        with pytest.raises(SettingsError, match=f"^{name}: standalone Locust starts no members of consumer groups; "):
            told(classes=("ProducerUser", name))
    run = RunDirectory(tmp_path / "run").prepare()
    LoadSettings(run_id=9, members={"native": 1}).write(run.load_settings_json)
    own = ("--kafka-settings", str(run.load_settings_json), "--kafka-run-directory", str(run.path))
    assert told(*own, "--kafka-process", "members-native", classes=("MemberUser",)) is None
    assert told("--kafka-settings", str(run.load_settings_json)) == (
        f"{run.load_settings_json} has members of a consumer group, and standalone Locust starts none: they are left "
        "out; 'gapless run --workload groups' has them"
    )
