"""``gapless up`` without a cluster: its ports, how it is found, and what it tells about its state."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shlex
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.commands import up, up_state
from chaos.commands.main import run_command
from chaos.commands.status import lines
from chaos.commands.up import _directory, check_ports
from chaos.commands.up_nodes import NODES, write_nodes
from chaos.commands.up_state import DATA, announcement, nothing_up, other_brokers, running
from chaos.commands.up_watch import StateWatch, how_ended, logs_of
from chaos.conductor.deployment import Deployment
from chaos.conductor.fixed_ports import FREE_PORTS, FixedPorts
from chaos.conductor.nodes_file import parse
from chaos.conductor.observer import Observer
from chaos.exits import BadRequest
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from cluster.process.local_socket import NAME, connect, listening, peer_pid
from cluster.process.supervisor import Supervisor
from cluster.process.topology import Topology
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from tests.chaos.fake_cluster import FakeProcess
from tests.chaos.test_manual_faults import LINKS
from verifier.evidence.run_directory import RunDirectory

STATE: dict[str, Any] = {
    "bootstrap.servers": "127.0.0.1:9092,127.0.0.1:9093",
    "metrics": ["http://127.0.0.1:1/metrics", "http://127.0.0.1:2/metrics"],
    "creates_topics": True,
    "brokers": [
        {"id": 1, "address": "127.0.0.1:9092", "metrics": "http://127.0.0.1:1/metrics", "pid": 11},
        {"id": 2, "address": "127.0.0.1:9093", "metrics": "http://127.0.0.1:2/metrics", "pid": 12},
    ],
    "pid": 10,
}


@pytest.mark.parametrize(
    ("ports", "free"),
    [(FREE_PORTS, 5), (FixedPorts(fault=0), 6), (FixedPorts(9092, 9192), 3)],
    ids=["free", "fault", "fixed"],
)
def test_a_broker_has_its_own_ports_also_while_it_is_dead(ports: FixedPorts, free: int, tmp_path: Path) -> None:
    """A dead broker's links lead to where it was: another cluster's broker there would acknowledge this run's writes.

    Its own process binds them by number, first and again; no one else is given them, and connections are refused.
    """
    settings, _ = resolve(Asked(seed=1, brokers=1, replication_factor=1, faults="none"))
    observer = Observer(AsyncioTransport(), SystemClock(), settings.topic)
    with Supervisor(str(tmp_path), lambda _: None) as supervisor:
        deployment = Deployment(settings, RunDirectory(tmp_path), supervisor, observer, ports)
        deployment.topology = Topology((1,), dict.fromkeys(deployment.link_names, "127.0.0.1:1"))
        first, again = deployment.properties(1), deployment.properties(1)
        assert again == first
        named = dict(each.split("://127.0.0.1:") for each in first["listeners"].split(","))
        named |= {each: first[f"gapless.{each}.port"] for each in ("metrics", "fault")}
        held = [int(port) for port in named.values() if port not in ("-1", "9092", "9192")]
        assert len(set(held)) == len(held) == free
        for port in held:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            with socket.create_server(("127.0.0.1", port)):  # what a broker does
                pass
        assert asyncio.run(deployment.stop()) == []


def test_ports_follow_each_other() -> None:
    """Broker by broker from the first; behind links they are the links', and all other proxies stay on free ports."""
    direct, linked = FixedPorts(9092, 9192), FixedPorts(9092, 9192, behind_links=True)
    assert [direct.control(each) for each in (1, 2, 3)] == [9092, 9093, 9094]
    assert [direct.metrics_of(each) for each in (1, 3)] == [9192, 9194]
    assert {direct.listen(link) for link in LINKS} == {"127.0.0.1:0"}
    assert linked.control(2) == 0
    fixed = {link: linked.listen(link) for link in LINKS if linked.listen(link) != "127.0.0.1:0"}
    assert fixed == {"producers-b1": "127.0.0.1:9092", "producers-b2": "127.0.0.1:9093"}
    assert (FREE_PORTS.control(3), FREE_PORTS.metrics_of(3)) == (0, 0)


def test_a_cluster_that_is_up_says_how_it_is_used_and_what_stays() -> None:
    """A line to paste, and where the data lies that the next one finds again."""
    said = list(announcement(STATE, DATA))
    assert said[0] == "bootstrap.servers=127.0.0.1:9092,127.0.0.1:9093"
    assert said[1].startswith("try: echo hello | kcat -b 127.0.0.1:9092 -P -t hello && kcat -b 127.0.0.1:9092 -C")
    assert said[-1].startswith("data: results/up, kept when the cluster stops")
    assert not any("auto.create" in line for line in said)
    without = list(announcement({**STATE, "creates_topics": False}, DATA))
    assert "try: kcat -b 127.0.0.1:9092 -L" in without
    assert any("--broker-config auto.create.topics.enable=true" in line for line in without)


@pytest.mark.parametrize(
    ("existing", "brokers", "said"),
    [
        ([], 3, None),
        ([1, 2, 3], 3, None),
        (
            [1, 2, 3],
            1,
            "of 3 brokers and 1 is started: the partitions on the others lack those replicas; use --brokers 3",
        ),
        ([1], 3, "of 1 brokers and 3 are started: the new ones are still empty"),
    ],
)
def test_data_of_another_number_of_brokers_is_warned_of(existing: list[int], brokers: int, said: str | None) -> None:
    """The cluster would come up, and its topics would not."""
    warning = other_brokers(existing, brokers, DATA)
    assert (warning is None) if said is None else (warning is not None and said in warning)


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def two_free_ports() -> Iterator[socket.socket]:
    """A listener on the second of them: next to a port that is free there may be one that another process has."""
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            taken = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            if _is_free(taken.getsockname()[1] - 1):
                break
        yield taken


def test_ports_are_checked_beforehand_by_number() -> None:
    """One of the following brokers' is named, and so are two options that take the same."""
    with two_free_ports() as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadRequest, match=f"--port {port - 1}: port {port}, of broker 2: address already in use"):
            check_ports(3, {"--port": port - 1, "--metrics-port": 0})
    with pytest.raises(BadRequest, match=f"--metrics-port {port - 1}: port {port}, of broker 2: --port {port} takes"):
        check_ports(2, {"--port": port, "--metrics-port": port - 1})


def test_a_cluster_is_found_by_the_socket_of_its_directory(tmp_path: Path) -> None:
    """The process that listens there; it is told by the kernel."""
    with listening(tmp_path) as made:
        made.listen()
        with connect(tmp_path) as ours:
            assert peer_pid(ours) == os.getpid()
        assert running(tmp_path) is None, "this process is no cluster"


def test_a_socket_whose_listener_takes_no_one_holds_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be anyone's, where others filled the directory."""
    monkeypatch.setattr(up_state, "LISTENER_TIMEOUT_S", 0.1)
    with listening(tmp_path) as made, contextlib.ExitStack() as taken:
        made.listen(0)
        with contextlib.suppress(OSError):
            for _ in range(10):
                taken.enter_context(connect(tmp_path, 0.1))
        assert running(tmp_path) is None


def test_a_directory_that_is_not_there_has_no_cluster_to_stop(capsys: pytest.CaptureFixture[str]) -> None:
    """The name is mistyped: "no cluster is running" would be taken for an end."""
    assert run_command(["down", "--data", "no such"]) == 254
    assert capsys.readouterr().err == "gapless: --data no such: there is no such directory\n"


def test_nothing_up_is_one_line_with_the_way_out() -> None:
    """With the directory that was asked about."""
    assert "gapless up --detach'" in nothing_up(DATA)
    assert """gapless up --detach --data 'my data''""" in nothing_up(Path("my data"))


def test_status_names_the_dead_with_pid_and_log() -> None:
    """A line for each broker in words; what does not run has its log beside it."""
    lacking = {"http://127.0.0.1:1/metrics": 1, "http://127.0.0.1:2/metrics": None}
    said = list(lines(STATE, {1: "running", 2: "dead"}, lacking, DATA))
    assert said[0].startswith("1 of 2 brokers run (gapless up: pid 10, data: results/up)")
    assert said[2] == "broker 1  127.0.0.1:9092  pid 11  running, 1 of its partitions lacks a replica"
    assert said[3] == "broker 2  127.0.0.1:9093  pid 12  dead; its log: results/up/nodes/2/broker.log"
    assert "does not respond" in list(lines(STATE, {1: "running", 2: "running"}, lacking, DATA))[3]


def test_a_socket_of_a_directory_is_its_owners_alone(tmp_path: Path) -> None:
    """However long the path is; one that was left behind is replaced, and nothing stays."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        before = Path.cwd()
        os.chdir(deep)
        left.bind(NAME)
        os.chdir(before)
    with pytest.raises(OSError, match="refused"):
        connect(deep)
    with listening(deep) as made:
        made.listen()
        assert stat.S_IMODE((deep / NAME).stat().st_mode) & 0o077 == 0
        with connect(deep) as ours, made.accept()[0] as theirs:
            ours.sendall(b"x")
            assert theirs.recv(1) == b"x"
    assert list(deep.iterdir()) == []


def test_the_nodes_of_a_cluster_that_is_up_are_told(tmp_path: Path) -> None:
    """For ``gapless run --target --nodes``: the pid of each broker that runs now, and how each is started again."""
    data = tmp_path / "with an ID in it"
    write_nodes({1: 11, 2: 12}, data)
    nodes = parse((data / NODES).read_text())
    assert [Path(node.pid_file).read_text() for node in nodes.values()] == ["11\n", "12\n"]
    write_nodes({1: 11, 2: 13}, data)
    assert Path(nodes[2].pid_file).read_text() == "13\n"
    program, *words = shlex.split(nodes[2].start)
    assert Path(program).is_absolute() and words[-4:] == ["start", "2", "--data", str(data)]


def test_a_full_disk_is_said_once_and_the_watch_goes_on(tmp_path: Path) -> None:
    """The state file is written at the first look that can, and a broker that ends meanwhile is told of."""
    broker = FakeProcess(7)
    deployment = cast("Deployment", SimpleNamespace(broker_ids=(1,), process=lambda _: broker))
    path, full, said = tmp_path / "cluster.json", [True], list[str]()
    broker.wait = lambda _: 1  # type: ignore[attr-defined]

    def write() -> dict[str, Any]:
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        path.write_text("{}")
        return {"now": 2}

    watch = StateWatch(deployment, path, {"now": 1}, lambda: {"now": 2}, write, said.append)
    watch.look()
    watch.look()
    assert len(said) == 1 and "no space left on device" in said[0] and str(path) in said[0]
    broker.running = False
    watch.look()
    assert said[1:] == [f"broker 1 ended (exit status 1); its log: {tmp_path / 'nodes' / '1' / 'broker.log'}"]
    full[0] = False
    watch.look()
    assert path.exists() and len(said) == 2
    full[0] = True
    path.unlink()
    watch.look()
    assert len(said) == 3


@pytest.mark.parametrize(("printed", "names"), [(None, ["broker.log"]), ("", ["broker.log"]), ("x", None)])
def test_the_log_of_a_broker_that_ended_is_the_one_it_writes(
    printed: str | None, names: list[str] | None, tmp_path: Path
) -> None:
    """What its process printed is named beside it, if that is anything: it is empty unless the process crashed."""
    if printed is not None:
        (tmp_path / "process.log").write_text(printed)
    assert [path.name for path in logs_of(tmp_path)] == (names or ["broker.log", "process.log"])


def test_how_a_broker_ended_is_told_in_words() -> None:
    """A signal by its name: the broker had no part in it."""
    assert [how_ended(code) for code in (-9, 1, None)] == [
        *("was killed by SIGKILL", "ended (exit status 1)", "ended (exit status None)")
    ]


def test_a_cluster_without_load_gets_no_directories_of_a_load(tmp_path: Path) -> None:
    """``nodes/`` alone is made."""
    _directory(tmp_path / "up")
    _directory(tmp_path / "up")
    assert [path.name for path in (tmp_path / "up").iterdir()] == ["nodes"]


@pytest.mark.parametrize(("quiet", "status", "said"), [(False, 0, True), (True, 0, False), (False, 130, False)])
def test_the_last_line_says_that_it_stopped_and_where_its_data_is(
    quiet: bool, status: int, said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Unless it is quiet, or never came up and has said so."""

    async def run(*_: object) -> int:
        return status

    monkeypatch.setattr(up._Serving, "run", run)
    monkeypatch.setattr(up, "Supervisor", lambda *_: contextlib.nullcontext())
    experiment, _ = resolve(Asked(seed=1, faults="none"))
    assert up._serve(experiment, tmp_path, FREE_PORTS, as_json=False, quiet=quiet) == status
    assert capsys.readouterr().err == f"stopped; its data is kept in {tmp_path}\n" * said


@pytest.mark.parametrize("command", ["replay", "report", "verify", "export", "shrink"])
@pytest.mark.parametrize("is_older", [False, True])
def test_the_data_of_a_cluster_is_no_damaged_run(
    command: str, is_older: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever names it instead of a run learns what it is; it may be from when a history was made room for."""
    monkeypatch.chdir(tmp_path)
    write_nodes({1: 11}, tmp_path / "results" / "up")
    if is_older:
        (tmp_path / "results" / "up" / "history").mkdir()
    assert run_command([command, "results/up"]) == 254
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "results/up is the data of 'gapless up', not a run; " in said and "removed" not in said
