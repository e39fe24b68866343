"""The load against librdkafka's mock cluster, through real Locust processes and real signals."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from cluster.seams.clock import SystemClock
from loadgen.command import LOCUSTFILE, Command, final_read_command, locust_commands, sentinel_command
from loadgen.settings import LoadSettings
from tests.loadgen.conftest import CHECKOUT, TOPIC, MockCluster
from tests.support.histories import read_histories
from tests.support.ports import fixed_port
from verifier.evidence.history import history_file, read_history
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.evidence.sequenced_value import SENTINEL_STREAM
from verifier.evidence.series import read_series
from verifier.operations.options import JudgeOptions
from verifier.verify_standalone import judge_load

pytestmark = pytest.mark.integration

RUN_ID = 4711


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Command], subprocess.Popen[str]]]:
    """Starts load processes, their output in a file; ends what a failed test left."""
    started: list[subprocess.Popen[str]] = []

    def run(command: Command) -> subprocess.Popen[str]:
        with (tmp_path / f"{command.name}.log").open("w") as log:
            process = subprocess.Popen(
                command.argv, env=command.env, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True
            )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def load_settings(cluster: MockCluster, **changes: Any) -> LoadSettings:
    return LoadSettings(
        run_id=RUN_ID,
        producers_bootstrap=cluster.bootstrap,
        readers_bootstrap=cluster.bootstrap,
        topic=TOPIC,
        partitions=4,
        producers=5,
        rate=1500.0,
        value_bytes=100,
        flush_timeout_s=3.0,
    ).with_changes(changes)


def wait_until(run: RunDirectory, process: str, field: str, number: int) -> None:
    """Until the status of a load process says so."""
    path = run.status_json(process)
    eventually(lambda: path.exists() and read_json(path)[field] >= number, f"{process}: {field} {number}")


def eventually(condition: Callable[[], object], what: str, timeout_s: float = 45.0) -> None:
    clock = SystemClock()
    end_ns = clock.monotonic_ns() + int(timeout_s * 1e9)
    pause = Event()
    while not condition():
        assert clock.monotonic_ns() < end_ns, f"not within {timeout_s} s: {what}"
        pause.wait(0.05)


def expand(rows: list[dict[str, Any]]) -> dict[tuple[int, int], int]:
    """(stream, sequence) -> offset, of rows with known offsets."""
    return {
        (row["stream"], row["first_sequence"] + i): row["first_offset"] + i
        for row in rows
        if row["stream"] >= 0 and row["first_offset"] >= 0
        for i in range(row["last_sequence"] - row["first_sequence"] + 1)
    }


def rows_of(run: RunDirectory, function: str, **equal: Any) -> list[dict[str, Any]]:
    rows = read_histories(run.history_dir).table.to_pylist()
    return [row for row in rows if row["f"] == function and all(row[key] == value for key, value in equal.items())]


def tool(argv: list[str]) -> dict[str, Any]:
    done = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, timeout=40)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_whole_load(cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path) -> None:
    """Producers and readers, SIGINT, sentinels, two final reads: every acknowledged record is read where it was put."""
    run = RunDirectory(tmp_path / "run").prepare()
    processes = [start(command) for command in locust_commands(load_settings(cluster), run)]
    wait_until(run, "producers", "total_acked", 2000)
    for client in ("confluent", "native"):
        wait_until(run, f"readers-{client}", "total_read", 1000)
    for process in processes:
        process.send_signal(signal.SIGINT)
    assert [process.wait(40) for process in processes] == [0, 0, 0]

    acknowledged = expand(rows_of(run, "send", type="ok"))
    assert len(acknowledged) >= 2000 and len(set(acknowledged)) == len(acknowledged)
    assert {row["type"] for row in rows_of(run, "send")} == {"ok"}
    assert {row["type"] for row in rows_of(run, "unsent")} == {"fail"}
    assert {stream for stream, _ in acknowledged} == set(range(5))
    assert all(row["partition"] == row["stream"] % 4 for row in rows_of(run, "send"))
    assert {row["producer_id"] > 0 for row in rows_of(run, "incarnation", type="ok")} == {True}
    read = expand(rows_of(run, "poll", phase="load"))
    assert len(read) >= 1000 and read.items() <= acknowledged.items()
    for name in ("producers", "readers-confluent", "readers-native"):
        assert history_file(read_history(run.history(name))).closed
        for suffix in ("_stats.csv", "_stats_history.csv", ".html", ".json"):
            assert (run.loadgen_dir / f"{name}{suffix}").stat().st_size > 0
    entries = json.loads((run.loadgen_dir / "producers.json").read_text())
    counts = {entry["method"]: entry["num_requests"] for entry in entries}
    assert counts["RECORD"] == len(acknowledged) > counts["KAFKA"] == len(rows_of(run, "send", type="ok"))
    assert _counted(run.loadgen_dir / "producers_stats.csv") == counts
    points = list(read_series(run.series_jsonl("producers")))
    assert sum(point.acked for point in points) == points[-1].total_acked == len(acknowledged)
    assert all(point.latency_p50_ms for point in points if point.acked)

    offsets = tool(sentinel_command(run, cluster.bootstrap, 20))
    assert sorted(offsets) == ["0", "1", "2", "3"]
    result = tool(final_read_command(run, cluster.bootstrap, json.dumps(offsets), 20))
    assert result["complete"] and result["errors"] == 0
    final = expand(rows_of(run, "poll", phase="final"))
    values = {key: offset for key, offset in final.items() if key[0] < SENTINEL_STREAM}
    assert values == acknowledged
    assert {str(key[0] - SENTINEL_STREAM): offset for (key, offset) in final.items() - values.items()} == offsets


def test_what_nobody_answers_has_time_to_arrive(
    cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """acks=0: a producer that ended with its last record would lose what is under way, and no history would say so."""
    run = RunDirectory(tmp_path / "run").prepare()
    given = {"acks": "0", "enable.idempotence": "false"}
    (command,) = locust_commands(load_settings(cluster, readers=(), producer_config=given), run)
    process = start(command)
    wait_until(run, "producers", "total_acked", 500)
    process.send_signal(signal.SIGINT)
    assert process.wait(40) == 0
    ended = {row["stream"]: row["complete_ns"] for row in rows_of(run, "unsent")}
    assert set(ended) == set(range(5))
    assert all(ended[row["stream"]] - row["complete_ns"] >= 900_000_000 for row in rows_of(run, "send"))


def test_a_second_signal_loses_nothing(
    cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """A cluster that stands still, SIGINT, and impatience: the flush is bounded, the rest is info, the file closed."""
    run = RunDirectory(tmp_path / "run").prepare()
    (command,) = locust_commands(load_settings(cluster, readers=(), flush_timeout_s=1.0), run)
    process = start(command)
    wait_until(run, "producers", "total_acked", 500)
    cluster.freeze()
    Event().wait(0.3)
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        process.send_signal(number)
        Event().wait(0.2)
    assert process.wait(30) == 0
    assert history_file(read_history(run.history("producers"))).closed
    unknown = rows_of(run, "send", type="info")
    assert unknown and all(row["error"] for row in unknown)
    reserved = sum(row["last_sequence"] - row["first_sequence"] + 1 for row in rows_of(run, "reserve"))
    accounted = sum(
        row["last_sequence"] - row["first_sequence"] + 1 for row in (*rows_of(run, "send"), *rows_of(run, "unsent"))
    )
    assert accounted == reserved


def test_a_killed_process_leaves_no_phantom(
    cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """SIGKILL: the history reads, is not closed, and every value in the log was reserved beforehand.

    Asked before, it says in its log what it is doing.
    """
    run = RunDirectory(tmp_path / "run").prepare()
    settings = load_settings(cluster, readers=(), reserve_sequences=100)
    (command,) = locust_commands(settings, run)
    process = start(command)
    wait_until(run, "producers", "total_acked", 1000)
    process.send_signal(signal.SIGUSR2)
    eventually(lambda: "(most recent call first):" in (tmp_path / f"{command.name}.log").read_text(), "its stacks")
    process.kill()
    assert process.wait(5) == -signal.SIGKILL
    assert not history_file(read_history(run.history("producers"))).closed
    offsets = tool(sentinel_command(run, cluster.bootstrap, 20))
    tool(final_read_command(run, cluster.bootstrap, json.dumps(offsets), 20))
    reserved = {
        (row["stream"], sequence)
        for row in rows_of(run, "reserve")
        for sequence in range(row["first_sequence"], row["last_sequence"] + 1)
    }
    final = expand(rows_of(run, "poll", phase="final"))
    assert set(final) <= reserved
    assert expand(rows_of(run, "send", type="ok")).items() <= final.items()


@pytest.mark.parametrize(
    "from_file",
    [pytest.param(False, id="options", marks=pytest.mark.full), pytest.param(True, id="a settings file")],
)
def test_locust_by_itself(
    cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path, from_file: bool
) -> None:
    """``locust -f loadgen/locustfile.py --host BOOTSTRAP`` writes, reads, and records under ./results/locust.

    At the end it reads back what it wrote, and is judged. The verdict counts what Locust's CSV counts.
    """
    LoadSettings(run_id=RUN_ID, topic=TOPIC, rate=400.0).write(tmp_path / "given.json")
    settings = ("--kafka-settings", str(tmp_path / "given.json")) if from_file else ("--kafka-rate", "400")
    options = ("--headless", "--host", cluster.bootstrap, *settings, "--csv", str(tmp_path / "of-locust"))
    argv = _by_hand(tmp_path / "results", *options)
    process = start(Command("load", argv, dict(os.environ), 30.0))
    path = _status_of_load(tmp_path / "results")
    wait_until(RunDirectory(path), "load", "total_read", 100)
    process.send_signal(signal.SIGINT)
    assert process.wait(40) == 0
    log = (tmp_path / "load.log").read_text()
    assert f"records into {path}" in log and log.rstrip().endswith(f"verify {path}")
    judged = judge_load(RunDirectory(path), JudgeOptions()).to_json()
    assert (judged["verdict"], judged["reasons"]) == ("valid", [])
    counted = _counted(tmp_path / "of-locust_stats.csv")["RECORD"]
    assert judged["stats"]["acked"] == judged["stats"]["acked_and_read"] == counted
    table = read_history(RunDirectory(path).history("load"))
    assert history_file(table).closed
    assert {"reserve", "send", "poll"} <= set(table.column("f").to_pylist())


def _counted(table: Path) -> dict[str, int]:
    """Locust's CSV: how many requests of each type to write."""
    with table.open() as file:
        rows = list(csv.DictReader(file))
    return {row["Type"]: int(row["Request Count"]) for row in rows if row["Name"].startswith("produce:")}


def _by_hand(results: Path, *arguments: str) -> list[str]:
    argv = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--only-summary", "--kafka-results", str(results)]
    return [*argv, *arguments]


def _status_of_load(results: Path) -> Path:
    """The run directory of the one load, as soon as it has a status."""
    eventually(lambda: list(results.glob("locust/*/loadgen/load.status.json")), "a status file")
    (path,) = (results / "locust").iterdir()
    return path


def _unreachable(cluster: MockCluster) -> tuple[str, ...]:
    """Options of a load by hand whose users, unlike whoever looks for its topic, do not find the cluster."""
    options = ("--headless", "--host", cluster.bootstrap, "--kafka-rate", "50", "--kafka-flush-timeout", "0.2")
    nowhere = "broker.address.family=v6"
    return (*options, "--kafka-producer-config", nowhere, "--kafka-consumer-config", nowhere)


def _with_errors(results: Path) -> list[Path]:
    """The statuses of the workers that told of errors."""
    return [path for path in results.glob("*/loadgen/load-w*.status.json") if read_json(path)["total_errors"]]


def test_locust_that_wrote_nothing_says_so(
    cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """Producers that reach no broker, so that nothing is acknowledged: status 1, and one line with the likely cause."""
    argv = _by_hand(tmp_path / "results", *_unreachable(cluster), "ProducerUser")
    process = start(Command("load", argv, dict(os.environ), 30.0))
    path = _status_of_load(tmp_path / "results")
    wait_until(RunDirectory(path), "load", "total_errors", 1)
    process.send_signal(signal.SIGINT)
    assert process.wait(40) == 1
    (line,) = [line for line in (tmp_path / "load.log").read_text().splitlines() if "CRITICAL" in line]
    assert f"nothing was written to topic {TOPIC} at {cluster.bootstrap}: brokers are not reachable" in line


@pytest.mark.full
def test_a_master_whose_workers_wrote_nothing_says_so(
    cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """Status 1 for the master and the worker with the producer, with the cause; 0 for the one that only read."""
    port = str(fixed_port())
    by_hand = _by_hand(tmp_path / "results")
    binding = ["--master-bind-host", "127.0.0.1", "--master-bind-port", port, "--expect-workers", "2"]
    options = [*_unreachable(cluster), "--users", "2", "--spawn-rate", "2"]
    master = start(Command("master", [*by_hand, "--master", *binding, *options], dict(os.environ), 30.0))
    joined = ["--worker", "--master-host", "127.0.0.1", "--master-port", port]
    workers = [start(Command(f"worker-{number}", [*by_hand, *joined], dict(os.environ), 30.0)) for number in (0, 1)]
    results = tmp_path / "results" / "locust"
    eventually(lambda: len(_with_errors(results)) == 2, "errors of both workers")
    master.send_signal(signal.SIGINT)
    assert master.wait(40) == 1
    assert sorted(process.wait(40) for process in workers) == [0, 1]
    said = f"nothing was written to {cluster.bootstrap}, as far as the workers reported: brokers are not reachable"
    assert said in (tmp_path / "master.log").read_text()


@pytest.mark.full
def test_locust_without_readers(
    cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """``--kafka-readers 0`` is none, and all users write."""
    options = ["--headless", "--host", cluster.bootstrap, "--users", "4", "--spawn-rate", "4", "--kafka-readers", "0"]
    process = start(Command("load", _by_hand(tmp_path / "results", *options), dict(os.environ), 30.0))
    path = _status_of_load(tmp_path / "results")
    wait_until(RunDirectory(path), "load", "total_acked", 100)
    process.send_signal(signal.SIGINT)
    assert process.wait(40) == 0
    assert '"ProducerUser": 4' in (tmp_path / "load.log").read_text()
    assert "poll" not in read_history(RunDirectory(path).history("load")).column("f").to_pylist()


@pytest.mark.full
def test_locust_distributed(
    cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """A master and two workers: one run id and one directory, a history and streams of its own for each worker."""
    locust = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE)]
    options = [
        "--users",
        "9",
        "--spawn-rate",
        "9",
        "--host",
        cluster.bootstrap,
        "--only-summary",
        "--expect-workers",
        "2",
    ]
    options += ["--kafka-results", str(tmp_path / "results"), "--kafka-workload", "mixed", "--stop-timeout", "30"]
    port = str(fixed_port())
    binding = ["--master-bind-host", "127.0.0.1", "--master-bind-port", port]
    master = start(Command("master", [*locust, "--master", "--headless", *binding, *options], dict(os.environ), 30.0))
    where = ["--worker", "--master-host", "127.0.0.1", "--master-port", port]
    workers = [start(Command(f"worker-{number}", [*locust, *where], dict(os.environ), 30.0)) for number in (0, 1)]
    results = tmp_path / "results" / "locust"
    eventually(lambda: len(list(results.glob("*/loadgen/load-w*.status.json"))) == 2, "both workers' status")
    (path,) = results.iterdir()
    run = RunDirectory(path)
    for number in (0, 1):
        wait_until(run, f"load-w{number}", "total_acked", 100)
    master.send_signal(signal.SIGINT)
    assert [process.wait(40) for process in (master, *workers)] == [0, 0, 0]
    histories = read_histories(run.history_dir)
    assert [(file.process, file.closed) for file in histories.files] == [("load-w0", True), ("load-w1", True)]
    sent = rows_of(run, "send", type="ok")
    assert {row["stream"] >> 16 for row in sent} == {0, 1}
    assert {row["process"] for row in sent} == {"load-w0", "load-w1"}
    assert expand(rows_of(run, "poll")).items() <= expand(sent).items()
    # each of eight has its share of the workload's 500 records a second, as they were due
    for stream in {row["stream"] for row in sent}:
        first, *_, last = [row for row in sent if row["stream"] == stream]
        seconds = (last["invoke_ns"] - first["invoke_ns"]) / 1e9
        assert last["first_sequence"] - first["first_sequence"] == pytest.approx(500 / 8 * seconds, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "pass --host HOST:PORT"),
        pytest.param(
            ("--host", "http://127.0.0.1:1/"),
            "takes bootstrap servers, HOST:PORT[,HOST:PORT], not a URL; here: --host 127.0.0.1:1",
            marks=pytest.mark.full,  # the gate has it in tests/loadgen/test_standalone_load.py
        ),
        (
            ("--host", "127.0.0.1:1", "--kafka-value-bytes", "2000000"),
            "--kafka-value-bytes 2000000: a value of 2000000",
        ),
    ],
    ids=["no-cluster", "a-url", "too-large-records"],
)
def test_what_cannot_be_loaded_is_said(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """No address, a URL, or records that no client takes: one clear line and status 254."""
    argv = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary", *arguments]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=40)
    assert done.returncode == 254
    assert done.stderr.count(said) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("run_time_s", "said"),
    [
        (2, "the load never began: no cluster responded at 127.0.0.1:1 before it ended"),
        pytest.param(60, "no Kafka cluster answers at 127.0.0.1:1", marks=pytest.mark.full),
    ],
    ids=["limit", "patience"],
)
def test_a_load_without_a_cluster_ends_with_the_line_that_says_so(tmp_path: Path, run_time_s: int, said: str) -> None:
    """Status 254 whether the time limit or our patience ends it, the line once and last, and no empty tables.

    The limit counts from the start of the load: what loading Locust takes is not part of it.
    """
    argv = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--host", "127.0.0.1:1"]
    done = subprocess.run(
        [*argv, "--run-time", str(run_time_s)], cwd=tmp_path, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 254
    lines = done.stderr.splitlines()
    assert said in lines[-1] and sum("CRITICAL" in line for line in lines) == 1
    assert "Aggregated" not in done.stdout + done.stderr
    if "limit" in done.stderr.partition("limit set")[2]:
        begun, ended = (next(each for each in lines if what in each) for what in ("limit set", "limit reached"))
        assert _time_of(ended) - _time_of(begun) >= timedelta(seconds=run_time_s - 0.1)


def _time_of(line: str) -> datetime:
    return datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f")


def test_a_history_that_cannot_be_written_ends_the_load(
    cluster: MockCluster, start: Callable[[Command], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """A full disk (here: a limit on a file's size): the load ends by itself, status 255, its history not closed."""
    argv = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--host", cluster.bootstrap]
    options = ["--only-summary", "--kafka-rate", "1000", "--kafka-results", str(tmp_path / "results"), "ProducerUser"]
    limited = ["sh", "-c", 'ulimit -f 60; exec "$0" "$@"', *argv, *options]
    process = start(Command("load", limited, dict(os.environ), 30.0))
    assert process.wait(60) == 255
    assert "its history is incomplete" in (tmp_path / "load.log").read_text()
    (path,) = (tmp_path / "results" / "locust").iterdir()
    table = read_history(RunDirectory(path).history("load"))
    assert table.num_rows > 0 and not history_file(table).closed
