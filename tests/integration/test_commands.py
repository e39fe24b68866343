"""``gapless up`` and the commands around it, and one broker and one proxy alone, as real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.commands.main import run_command
from chaos.links import Links
from cluster.client import AsyncAdmin
from cluster.process.java import find_java
from cluster.process.processes import until
from cluster.process.supervisor import Supervisor
from cluster.process.zookeeper import start_zookeeper
from cluster.protocol.apis import INTER_BROKER, ApiKey
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from tests.support.leftovers import GAPLESS, Place
from tests.support.ports import fixed_port
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

#: On a machine that does much else; a quiet one needs a tenth.
LONG_S = 120.0
RECORDS = 300
TOPIC = "dumped"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as made:
        yield made


def _line(place: Place) -> dict[str, Any]:
    """The first line of the last command's output, once it is there."""
    place.wait_for("\n", LONG_S, lambda each: each.out)
    found: dict[str, Any] = json.loads(place.out.splitlines()[0])
    return found


def _api_versions(address: str) -> Mapping[int, tuple[int, int]]:
    async def ask() -> Mapping[int, tuple[int, int]]:
        admin = AsyncAdmin([address], AsyncioTransport(), SystemClock(), 20_000)
        try:
            return await admin.api_versions(address)
        finally:
            await admin.close()

    return asyncio.run(ask())


def _produce(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "log_level": 2}
    # Two entries of the offset index need more than 4096 bytes between them.
    topic = NewTopic(TOPIC, 1, 3, config={"index.interval.bytes": "100"})
    admin = AdminClient(settings)
    for future in admin.create_topics([topic]).values():
        future.result(30)
    producer = Producer({**settings, "enable.idempotence": True, "batch.num.messages": 50, "linger.ms": 50})
    for number in range(RECORDS):
        producer.produce(TOPIC, value=b"value %d" % number, partition=0)
    assert producer.flush(30) == 0


def _dump(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[dict[str, Any]]:
    """The lines of ``gapless dump --json``; in this process, since each start of another costs seconds."""
    capsys.readouterr()
    assert run_command(["dump", str(path), "--json", *options]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_detached_cluster_from_up_to_down(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """up --detach announces and returns, status repeats it, clients write, dump reads the files, down ends it all."""
    require("java")
    assert place.run("up", "--detach", "--json", timeout_s=LONG_S) == 0, place.err
    announced = json.loads(place.out)
    addresses = announced["bootstrap.servers"].split(",")
    assert len(addresses) == 3
    assert place.run("status", "--json", timeout_s=LONG_S) == 0
    state = json.loads(place.out)
    assert len(announced["metrics"]) == 3
    assert state == {**announced, "under_replicated_partitions": dict.fromkeys(announced["metrics"], 0)}
    assert place.run("up", timeout_s=LONG_S) == 254
    assert "gapless down" in place.err and place.err.count("\n") == 1
    _produce(announced["bootstrap.servers"])
    assert {process.pid for process in place.processes()} > {announced["pid"]}

    data = place.directory / "results" / "up" / "nodes" / "1" / "data"
    log = data / f"{TOPIC}-0"
    segment = log / "00000000000000000000.log"
    assert until(lambda: sum(each["count"] for each in _dump(capsys, segment)) == RECORDS, 20.0)
    batches = _dump(capsys, segment)
    assert all(each["crc_ok"] and each["producer_id"] >= 0 for each in batches)
    assert [each["base_offset"] for each in batches[1:]] == [each["last_offset"] + 1 for each in batches[:-1]]
    offsets = [each["offset"] for each in _dump(capsys, segment, "--records") if "offset" in each]
    assert offsets == list(range(RECORDS))

    assert place.run("down", timeout_s=LONG_S) == 0, place.err
    place.assert_nothing_left(within_s=1.0)
    assert place.run("status", timeout_s=LONG_S) == 1

    # Only a broker that has ended has written all of its files.
    positions = {each["base_offset"]: each["position"] for each in batches}
    entries = _dump(capsys, segment.with_suffix(".index"))
    assert entries and {each["position"] for each in entries} <= set(positions.values())
    ends = _dump(capsys, data / "recovery-point-offset-checkpoint")
    assert {"topic": TOPIC, "partition": 0, "offset": RECORDS} in ends
    assert run_command(["dump", str(data)]) == 0
    assert f"partition={TOPIC}-0" in capsys.readouterr().out


def test_a_cluster_in_the_foreground_at_chosen_ports(place: Place) -> None:
    """up --port: the first broker is there; SIGINT ends it with 0 and leaves nothing."""
    require("java")
    port = fixed_port()
    up = place.start("up", "--brokers", "1", "--port", str(port), "--json")
    announced = _line(place)
    assert announced["bootstrap.servers"] == f"127.0.0.1:{port}"
    assert ApiKey.PRODUCE in _api_versions(announced["bootstrap.servers"])
    assert place.ports or place.processes()
    up.send_signal(signal.SIGINT)
    assert up.wait(LONG_S) == 0, place.err
    place.assert_nothing_left(within_s=1.0)
    assert not (place.directory / "results" / "up" / "up.json").exists()


def test_an_interrupt_while_a_cluster_starts_is_one(place: Place) -> None:
    """Not a verdict of unknown; and nothing is left."""
    require("java")
    up = place.start("up", "--brokers", "1")
    assert until(lambda: any(Path(each.exe()).name == "java" for each in place.processes()), 30.0)
    up.send_signal(signal.SIGINT)
    assert up.wait(LONG_S) == 130, place.err
    assert place.err.splitlines()[-1] in ("gapless: interrupted before the cluster was up", "gapless: interrupted")
    place.assert_nothing_left(within_s=1.0)


@pytest.mark.full
def test_faults_by_hand_hit_clients_behind_links(place: Place) -> None:
    """up --proxy: clients reach the links, faults by hand bite and are healed, and status names who died."""
    require("java")
    asked = ("up", "--proxy", "--profile", "chaos", "--detach", "--json")
    assert place.run(*asked, timeout_s=LONG_S) == 0, place.err
    announced = json.loads(place.out)
    assert announced["bootstrap.servers"].split(",") == [each["address"] for each in announced["brokers"]]
    assert place.run("fault", "kill-leader", timeout_s=LONG_S) == 254
    assert "has no topic yet" in place.err and place.err.count("\n") == 1
    _produce(announced["bootstrap.servers"])
    producer = Producer({"bootstrap.servers": announced["bootstrap.servers"], "log_level": 2, "linger.ms": 5})
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.01):
            # a retry is known by the first 64 bytes of a batch, and small batches are sent again as one
            producer.produce(TOPIC, value=b"more" * 50, partition=0)
            producer.poll(0)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert place.run("fault", "drop-response", f"{TOPIC}-0", timeout_s=LONG_S) == 0, place.out + place.err
        assert "drop-response bit; healed" in place.out
    finally:
        stop.set()
        writer.join()
    assert producer.flush(60) == 0
    assert place.run("fault", "kill-leader", "--duration", "1", timeout_s=LONG_S) == 0, place.out + place.err
    assert "it bites" in place.out and "another broker led the partition" in place.out
    assert place.run("fault", "kill-leader", "nowhere-0", timeout_s=LONG_S) == 254
    recorded = (place.directory / "results" / "up" / "faults.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in recorded] == [0, 0, 1, 1]

    assert place.run("status", timeout_s=LONG_S) == 0, place.out
    assert announced["bootstrap.servers"] in place.out and "3 of 3 brokers run" in place.out
    assert place.run("status", "--json", timeout_s=LONG_S) == 0
    os.kill(json.loads(place.out)["brokers"][1]["pid"], signal.SIGKILL)
    assert place.run("status", timeout_s=LONG_S) == 1
    assert "dead; its log: results/up/nodes/2/broker.log" in place.out
    log = place.directory / "results" / "up" / "up.log"
    assert until(lambda: "broker 2 was killed by SIGKILL; its log: " in log.read_text(), 20.0), log.read_text()
    assert place.run("down", timeout_s=LONG_S) == 0, place.err
    assert "its data is in results/up" in place.err
    place.assert_nothing_left(within_s=1.0)


@pytest.mark.full
def test_a_killed_broker_comes_back_where_it_was(place: Place) -> None:
    """A client's bootstrap list, and a scraper's targets, stay true after ``gapless fault kill-leader``."""
    require("java")
    assert place.run("up", "--profile", "chaos", "--detach", "--json", timeout_s=LONG_S) == 0, place.err
    announced = json.loads(place.out)
    _produce(announced["bootstrap.servers"])
    assert place.run("fault", "kill-leader", "--duration", "1", timeout_s=LONG_S) == 0, place.out + place.err
    assert place.run("status", "--json", timeout_s=LONG_S) == 0
    state = json.loads(place.out)
    assert [each["pid"] for each in state["brokers"]] != [each["pid"] for each in announced["brokers"]]
    assert state["bootstrap.servers"] == announced["bootstrap.servers"]
    assert state["metrics"] == announced["metrics"]
    assert all(ApiKey.PRODUCE in _api_versions(address) for address in state["bootstrap.servers"].split(","))
    assert place.run("down", timeout_s=LONG_S) == 0, place.err
    place.assert_nothing_left(within_s=1.0)


def test_data_of_more_brokers_and_fixed_metrics_ports(place: Place) -> None:
    """up --detach in words: how to try it, where data lies; a warning when it is of more brokers than are started."""
    require("java")
    for broker_id in (1, 2, 3):
        (place.directory / "kept" / "nodes" / str(broker_id)).mkdir(parents=True)
    port = fixed_port()
    words = ("--brokers", "1", "--data", "kept", "--metrics-port", str(port), "--detach")
    assert place.run("up", *words, timeout_s=LONG_S) == 0, place.err
    servers, attempt, metrics, judging, data = place.out.splitlines()
    assert attempt.startswith(f"try: echo hello | kcat -b {servers.removeprefix('bootstrap.servers=')} -P")
    assert metrics == f"metrics: http://127.0.0.1:{port}/metrics" and data.startswith("data: kept, kept when")
    target = servers.replace("bootstrap.servers=", "kafka://")
    assert judging.endswith(f"run --target {target} --nodes kept/nodes.yaml")
    assert "warning: kept holds the data of 3 brokers and 1 is started" in place.err
    assert "status --data kept' and '" in place.err and "down --data kept'" in place.err
    assert place.run("status", "--data", "kept", timeout_s=LONG_S) == 0
    assert place.out.startswith("1 of 1 brokers run")
    (place.directory / "kept" / "up.json").unlink()
    assert place.run("down", "--data", "kept", timeout_s=LONG_S) == 0, "its socket names its process"
    assert "stopped; its data is in kept" in place.err
    place.assert_nothing_left(within_s=1.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "-t", "30"), "unknown option -t; did you mean --time-limit? (see 'gapless run --help')"),
        (("run", "--time-limit", "soon"), "--time-limit must be a time such as 90s, 5m or 1h30m"),
        (("up", "--detach", "--brokers", "0"), "--brokers must be at least 1, not 0"),
        (("browse",), "unknown command 'browse'; use 'gapless serve' to show stored runs"),
    ],
)
def test_bad_input_to_a_process(arguments: tuple[str, ...], says: str, place: Place) -> None:
    """As in the table of tests/chaos/test_commands.py: one line, 254, no file and no process left."""
    path = f"{GAPLESS.parent}{os.pathsep}{os.environ['PATH']}"
    assert place.run(*arguments, timeout_s=LONG_S, PATH=path) == 254
    assert says in place.err and place.err.count("\n") == 1 and place.out == ""
    assert not (place.directory / "results").exists()
    place.assert_nothing_left(within_s=1.0)


@pytest.mark.parametrize("option", ["--port", "--metrics-port"])
def test_a_port_in_use(place: Place, option: str) -> None:
    """up --port where somebody listens: one line that names it and the option, 254, nothing left."""
    require("java")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert place.run("up", "--brokers", "1", option, str(port), timeout_s=LONG_S) == 254
        place.assert_nothing_left(within_s=1.0)
    assert place.out == "" and not (place.directory / "results").exists()
    assert place.err.count("\n") == 1, place.err
    assert str(port) in place.err and "address already in use" in place.err and option in place.err


def test_a_proxy_alone(place: Place) -> None:
    """gapless proxy says where it listens, answers Toxiproxy's API, and ends by SIGTERM with 0."""
    proxy = place.start("proxy", "--port", "0")
    place.wait_for("listening on 127.0.0.1:", LONG_S)
    links = Links(f"http://127.0.0.1:{place.err.split('127.0.0.1:')[1].split()[0]}")
    assert links.version()
    host, _, port = links.create("there", "127.0.0.1:1").rpartition(":")
    socket.create_connection((host, int(port)), timeout=5).close()
    assert len(place.processes()) == 1 and len(place.ports) == 2
    proxy.send_signal(signal.SIGTERM)
    assert proxy.wait(LONG_S) == 0, place.err
    place.assert_nothing_left(within_s=1.0)


def test_a_broker_alone(place: Place, tmp_path: Path) -> None:
    """gapless broker --config FILE registers with a ZooKeeper, answers clients, and ends by SIGTERM with 0.

    On the addresses that clients reach it obeys no one who says that he is a broker.
    """
    require("java")
    with Supervisor(str(tmp_path)) as supervisor:
        zookeeper = start_zookeeper(supervisor, str(tmp_path / "zookeeper"), find_java())
        (tmp_path / "server.properties").write_text(
            "# as Kafka has it\n"
            "broker.id=7\n"
            "listeners=PLAINTEXT://:0\n"
            f"zookeeper.connect={zookeeper.address}\n"
            f"log.dirs={tmp_path / 'data'}\n"
        )
        broker = place.start("broker", "--config", "server.properties", "--node-directory", "node")
        place.wait_for('"started"', LONG_S, lambda each: each.out)
        bound = _line(place)
        versions = _api_versions(f"127.0.0.1:{bound['ports']['PLAINTEXT']}")
        assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA} <= versions.keys()
        assert not INTER_BROKER.keys() & versions.keys()
        own = bound["ports"]["BROKERS"]
        assert INTER_BROKER.keys() <= _api_versions(f"127.0.0.1:{own}").keys()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", own), timeout=5)
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(LONG_S) == 0, place.err
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    place.assert_nothing_left(within_s=1.0)
