"""``gapless up`` and what belongs to it, without a cluster: what a fault by hand may hit, what is said of a state."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from chaos.commands import up_state
from chaos.commands.main import run_command
from chaos.commands.status import lines
from chaos.commands.up import check_ports
from chaos.commands.up_nodes import NODES, write_nodes
from chaos.commands.up_state import DATA, announcement, nothing_up, other_brokers, running
from chaos.conductor.deployed import Deployed
from chaos.conductor.deployment import Deployment
from chaos.conductor.fixed_ports import FREE_PORTS, FixedPorts
from chaos.conductor.manual_faults import ByHand, ClusterFacts, FaultRefused, planned
from chaos.conductor.nodes_file import parse
from chaos.conductor.observer import Observer
from chaos.conductor.starting import StartFailure
from chaos.exits import BadRequest
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.faults.base import until
from chaos.faults.catalogue import FAULTS
from chaos.links import LinkError
from cluster.process.local_socket import NAME, connect, listening, peer_pid
from cluster.process.supervisor import Child, Supervisor
from cluster.process.topology import Topology, link_names
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from tests.chaos.fake_cluster import FakeCluster, FakeProcess
from tests.support.faults import of_coordinators
from verifier.evidence.run_directory import RunDirectory

TOPICS = {"orders": 3, "a-1": 1}
LINKS = [str(name) for name in link_names((1, 2), ("producers", "readers"))]
CLUSTER = ClusterFacts(LINKS, 2, 2_000, clients_behind_links=True)
#: What faults on coordinators take, in words.
TAKES = {"transaction": "a transactional ID", "group": "a group"}
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
    ("ports", "control", "metrics"),
    [
        (FixedPorts(are_kept=True), "4711", "4712"),
        (FixedPorts(9092, 9192, are_kept=True), "4711", "4712"),
        (FREE_PORTS, "0", "0"),
    ],
)
def test_a_restarted_broker_has_its_former_ports(ports: FixedPorts, control: str, metrics: str, tmp_path: Path) -> None:
    """In a cluster by hand: the addresses that a client was given stay true. In a run its links do that."""
    settings, _ = resolve(Asked(seed=1, brokers=1, replication_factor=1, faults="none"))
    observer = Observer(AsyncioTransport(), SystemClock(), settings.topic)
    with Supervisor(str(tmp_path), lambda _: None) as supervisor:
        deployment = Deployment(settings, RunDirectory(tmp_path), supervisor, observer, ports)
        links = dict.fromkeys(deployment.link_names, "127.0.0.1:1")
        before = Topology((1,), links)
        deployment.topology = before
        first = deployment.properties(1)
        assert f"CONTROL://127.0.0.1:{ports.control(1)}" in first["listeners"].split(",")
        bound = {"CONTROL": "127.0.0.1:4711", "METRICS": "127.0.0.1:4712"}
        deployment.topology = replace(before, listeners={1: bound})
        again = deployment.properties(1)
    assert f"CONTROL://127.0.0.1:{control}" in again["listeners"].split(",")
    assert again["gapless.metrics.port"] == metrics


@pytest.mark.parametrize(
    ("target", "topic", "where"),
    [
        (None, "a-1", {"partition": 0}),
        ("orders", "orders", {"partition": 0}),
        ("orders-2", "orders", {"partition": 2}),
        ("a-1", "a-1", {"partition": 0}),
        ("a-1-0", "a-1", {"partition": 0}),
    ],
)
def test_a_target_is_a_partition(target: str | None, topic: str, where: dict[str, int]) -> None:
    """TOPIC-PARTITION, a topic alone for its first one, nothing for the first topic's; a topic may look like one."""
    plan = planned({"fault": "kill-leader", "target": target}, TOPICS, CLUSTER)
    assert (plan.topic, plan.injection.target) == (topic, where)
    least, most = FAULTS["kill-leader"].duration_s
    assert least <= plan.injection.duration_s <= most


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_link_is_for_faults_of_links(fault: str) -> None:
    """Those that look at their ``link`` take one; the others would hit something else in silence."""
    request = {"fault": fault, "target": "b1-b2", "duration_s": 2}
    homes = [each.__module__ for each in FAULTS[fault].__mro__ if each.__module__.startswith("chaos.faults.")]
    source = "".join(Path(__import__(home, fromlist=["_"]).__file__).read_text() for home in homes)
    assert ("link" in FAULTS[fault].targets) is ('target.get("link")' in source)
    if "link" in FAULTS[fault].targets:
        assert planned(request, TOPICS, CLUSTER).injection.target == {"link": "b1-b2"}
    elif FAULTS[fault].needs_load is not None or FAULTS[fault].kills_load is not None:
        with pytest.raises(FaultRefused, match=f"{fault} hits the load of a run"):
            planned(request, TOPICS, CLUSTER)
    else:
        kind = None if FAULTS[fault].targets == ("partition",) else FAULTS[fault].needs_coordinator
        with pytest.raises(
            FaultRefused, match=f"{fault} takes {TAKES.get(kind, 'TOPIC')}.*, not the link 'b1-b2'; cut-link"
        ):
            planned(request, TOPICS, CLUSTER)


@pytest.mark.parametrize("fault", [name for name in of_coordinators() if FAULTS[name].targets != ("partition",)])
def test_faults_on_coordinators_take_what_is_coordinated(fault: str) -> None:
    """A transactional id or a group by its name, or any of those in use."""
    key = "group" if FAULTS[fault].needs_coordinator == "group" else "transactional_id"
    request = {"fault": fault, "target": "orders-1"}
    assert planned(request, TOPICS, CLUSTER).injection.target == {key: "orders-1"}
    assert key not in planned({"fault": fault}, TOPICS, CLUSTER).injection.target


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"fault": "kill-leadr"}, "did you mean 'kill-leader'"),
        ({}, "unknown fault 'None'"),
        ({"fault": "reset", "target": "orders-3"}, "no partition or link 'orders-3'; partitions: orders-0 to orders-2"),
        ({"fault": "reset", "target": "orders-03"}, "no partition or link 'orders-03'"),
        ({"fault": "reset", "target": ["b1"]}, "no partition or link"),
        ({"fault": "reset", "target": "b1-b9"}, "links: producers-b1"),
        ({"fault": "reset", "duration_s": 0}, "--duration must be above 0"),
        ({"fault": "reset", "duration_s": float("nan")}, "--duration must be above 0"),
        ({"fault": "reset", "duration_s": "long"}, "--duration must be above 0"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(request_: dict[str, Any], said: str) -> None:
    """One line with the thing, and what there is instead."""
    with pytest.raises(FaultRefused) as refusal:
        planned(request_, TOPICS, CLUSTER)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("fault", "target", "cluster", "said"),
    [
        ("drop-response", None, replace(CLUSTER, clients_behind_links=False), "gapless up --proxy'"),
        ("slow-link", "producers-b1", replace(CLUSTER, clients_behind_links=False), "gapless up --proxy'"),
        (
            "kill-leader",
            None,
            replace(CLUSTER, brokers=1),
            "it needs 2 brokers, but there is 1; start with 'gapless up",
        ),
        ("slow-link", "b1-b2", replace(CLUSTER, clients_behind_links=False), None),
        ("kill-leader", None, CLUSTER, None),
    ],
)
def test_a_fault_that_cannot_bite_says_what_helps(
    fault: str, target: str | None, cluster: ClusterFacts, said: str | None
) -> None:
    """A manual fault that cannot bite is refused before it breaks anything."""
    if said is None:
        assert planned({"fault": fault, "target": target}, TOPICS, cluster).injection.fault == fault
        return
    with pytest.raises(FaultRefused, match=f"{fault} cannot bite: ") as refusal:
        planned({"fault": fault, "target": target}, TOPICS, cluster)
    assert said in str(refusal.value)


@pytest.mark.parametrize(("session_ms", "least_s", "most_s"), [(2_000, 2.9, 2.9), (18_000, 6.0, 18.0)])
def test_a_pause_of_zookeeper_lasts_until_a_broker_has_asked(session_ms: int, least_s: float, most_s: float) -> None:
    """Brokers ping every third of their session; ``gapless up`` has Kafka's 18 s by default."""
    plan = planned({"fault": "pause-zookeeper"}, TOPICS, replace(CLUSTER, session_timeout_ms=session_ms))
    assert least_s <= plan.injection.duration_s <= most_s


def test_a_pause_without_a_request_says_so() -> None:
    """What the heal's probe saw is no reason."""
    missed = FAULTS["pause-zookeeper"].missed
    assert missed({"stopped": True, "asked_bytes": 0}) == "no request to ZooKeeper was seen while it was stopped"
    assert missed({"error": "it broke"}) == "it broke"


def test_a_cluster_without_topics_has_nothing_to_probe() -> None:
    """Whether a fault bit is seen by partitions."""
    with pytest.raises(FaultRefused, match="has no topic yet"):
        planned({"fault": "kill-leader"}, {}, CLUSTER)


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
    assert "try: kcat -b 127.0.0.1:9092 -L" in announcement({**STATE, "creates_topics": False}, DATA)


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


class Handled:
    """A cluster of numbers, with one topic."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.facts = ClusterFacts(self.cluster.link_names, 3, 2_000, clients_behind_links=True)
        #: Who still waits for answers when the cluster ends.
        self.waiting: list[asyncio.StreamWriter] = []
        #: What a start comes to, if to nothing good.
        self.failure: StartFailure | None = None

    async def topics(self) -> dict[str, int]:
        return {self.cluster.topic: self.cluster.partitions}

    def target(self, topic: str, partitions: int) -> FakeCluster:
        assert (topic, partitions) == (self.cluster.topic, self.cluster.partitions)
        return self.cluster

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(self.cluster.processes)

    def is_running(self, broker_id: int) -> bool:
        return self.cluster.processes[broker_id].running

    async def start(self, broker_id: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.cluster.processes[broker_id].running = True


async def answered(directory: Path, *lines: bytes) -> list[dict[str, Any]]:
    """What comes back for one request."""
    reader, writer = await opened(directory)
    writer.writelines(lines)
    answers = [json.loads(line) for line in (await reader.read()).splitlines()]
    writer.close()
    return answers


async def opened(directory: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, as ``gapless fault`` makes it."""
    return await asyncio.open_unix_connection(sock=connect(directory))


def by_hand(directory: Path, work: Callable[[Handled, ByHand], Awaitable[None]]) -> list[dict[str, Any]]:
    """Do ``work`` while faults are taken; the record."""
    handled, run = Handled(), RunDirectory(directory)

    async def main() -> None:
        hand = ByHand(handled, run, SystemClock(), OsStorage(), 3, lambda _: None)
        async with hand.open():
            await work(handled, hand)
        for writer in handled.waiting:
            writer.close()
            await writer.wait_closed()
        assert await handled.cluster.in_sync()
        assert not hand.is_busy

    asyncio.run(main())
    return run.read_faults()


def asked(**request: Any) -> bytes:
    return json.dumps(request).encode() + b"\n"


def test_a_fault_by_hand_bites_and_is_healed(tmp_path: Path) -> None:
    """Who asked is told what happens, with the probes; each injection has a number of its own in the record."""

    async def work(handled: Handled, hand: ByHand) -> None:
        for _ in range(2):
            *said, end = await answered(tmp_path, asked(fault="kill-leader", target="gapless-1", duration_s=0.01))
            assert [each["said"].split()[0] for each in said] == ["fault", "injected;", "kill-leader"]
            assert "it bites: broker 1; process " in said[1]["said"]
            assert end["end"] == "bit" and end["text"].startswith("healed")
            handled.cluster.processes[1].running = True

    record = by_hand(tmp_path, work)
    assert [(each["number"], each["phase"], each["effective"]) for each in record] == [
        *((number, phase, True) for number in (0, 1) for phase in ("inject", "heal"))
    ]


def test_a_fault_by_hand_that_does_nothing_is_said_not_to_bite(tmp_path: Path) -> None:
    """A manual fault without effect ends as "did not bite", with what its probe saw."""

    async def work(handled: Handled, hand: ByHand) -> None:
        handled.cluster.links.deaf = True
        *said, end = await answered(tmp_path, asked(fault="cut-link", target="b2-b1", duration_s=0.01))
        assert end["end"] == "did not bite"
        assert "no effect seen so far" in said[1]["said"]
        assert end["text"] == "cut-link did not bite: the probe saw no effect"

    assert [each["effective"] for each in by_hand(tmp_path, work)] == [False, False]


def test_a_broker_that_died_is_started_again(tmp_path: Path) -> None:
    """On request, whatever killed it; one that runs is left alone, and one that does not exist is refused."""

    async def work(handled: Handled, hand: ByHand) -> None:
        handled.cluster.processes[2].running = False
        assert await answered(tmp_path, asked(start=2)) == [{"end": "started", "text": "broker 2 runs"}]
        assert handled.is_running(2)
        assert await answered(tmp_path, asked(start=2)) == [{"end": "started", "text": "broker 2 was running"}]
        (end,) = await answered(tmp_path, asked(start="2"))
        assert end["end"] == "refused"
        (end,) = await answered(tmp_path, asked(start=9))
        assert end == {"end": "refused", "text": "the cluster has no broker 9, it has 1, 2, 3"}

    assert by_hand(tmp_path, work) == []


def test_a_broker_that_does_not_come_up_is_said_not_to(tmp_path: Path) -> None:
    """With the reason; it may be started again later."""

    async def work(handled: Handled, hand: ByHand) -> None:
        handled.cluster.processes[2].running = False
        handled.failure = StartFailure("broker 2 ended (exit status 1)")
        (end,) = await answered(tmp_path, asked(start=2))
        assert end == {"end": "not started", "text": "broker 2 ended (exit status 1)"}
        handled.failure = None
        (end,) = await answered(tmp_path, asked(start=2))
        assert end["end"] == "started"

    by_hand(tmp_path, work)


class SlowToStart(Deployment):
    """A broker's process is there at once, and serves when it is told to."""

    served: asyncio.Event
    failure: Exception | None = None

    async def _bear_broker(self, broker_id: int) -> None:
        self._brokers[broker_id] = cast("Child", FakeProcess(22))

    async def _start_broker(self, broker_id: int) -> None:
        await self.served.wait()
        if self.failure is not None:
            raise self.failure


@contextlib.contextmanager
def slow_to_start(directory: Path) -> Iterator[tuple[SlowToStart, Deployed, list[int]]]:
    """With the cluster as requests see it, and the pids that were told."""
    settings, _ = resolve(Asked(seed=1, brokers=1, replication_factor=1, faults="none"))
    observer, run = Observer(AsyncioTransport(), SystemClock(), settings.topic), RunDirectory(directory)
    with Supervisor(str(directory), lambda _: None) as supervisor:
        deployment, told = SlowToStart(settings, run, supervisor, observer), list[int]()
        deployment.served = asyncio.Event()
        deployment._brokers[1] = cast("Child", FakeProcess(11))
        cluster = Deployed(
            *(deployment, observer, run, 2_000),
            behind_links=False,
            started=lambda: told.append(deployment.process(1).pid),
        )
        yield deployment, cluster, told


def test_a_broker_that_is_being_started_does_not_run_yet(tmp_path: Path) -> None:
    """Its process is there, but may not come up: a second request waits for the same start. Before either is answered,
    the files that name the process are true again."""

    async def main() -> None:
        with slow_to_start(tmp_path) as (deployment, cluster, told):
            cast("FakeProcess", deployment.process(1)).running = False
            first = asyncio.create_task(cluster.start(1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert deployment.process(1).pid == 22 and not cluster.is_running(1)
            second = asyncio.create_task(cluster.start(1))
            await asyncio.sleep(0)
            assert (first.done(), second.done(), told) == (False, False, [])
            deployment.served.set()
            await asyncio.gather(first, second)
            assert cluster.is_running(1) and set(told) == {22}

    asyncio.run(main())


@pytest.mark.parametrize("failure", [LinkError("the proxy is gone"), OSError("no process can be started")])
def test_whatever_keeps_a_broker_from_starting_is_told(failure: Exception, tmp_path: Path) -> None:
    """Who asked gets an answer, and not only the end of the connection."""

    async def main() -> None:
        with slow_to_start(tmp_path) as (deployment, cluster, told):
            deployment.served.set()
            deployment.failure = failure
            with pytest.raises(StartFailure, match=str(failure)):
                await cluster.start(1)
            assert told == []

    asyncio.run(main())


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


@pytest.mark.parametrize("request_", [b"{\n", b"[]\n", b"\n", b"x" * 100_000 + b"\n", b"[" * 60_000 + b"\n"])
def test_what_is_no_request_is_refused(request_: bytes, tmp_path: Path) -> None:
    """A malformed request is refused, and the next one is served."""

    async def work(handled: Handled, hand: ByHand) -> None:
        (end,) = await answered(tmp_path, request_)
        assert end["end"] == "refused" and end["text"]
        assert (await answered(tmp_path, asked(fault="reset", duration_s=0.01)))[-1]["end"] == "bit"

    by_hand(tmp_path, work)


@pytest.mark.parametrize("who", ["who asked", "the cluster"])
def test_a_fault_is_healed_when_somebody_goes(who: str, tmp_path: Path) -> None:
    """Ctrl-C of ``gapless fault``, and the end of ``gapless up``: nothing stays stopped."""

    async def work(handled: Handled, hand: ByHand) -> None:
        async def healed() -> bool:
            return not hand.is_busy

        reader, writer = await opened(tmp_path)
        handled.waiting.append(writer)
        writer.write(asked(fault="pause-leader", duration_s=600))
        while b"injected" not in await reader.readline():
            pass
        assert handled.cluster.processes[1].suspended and hand.is_busy
        if who == "who asked":
            writer.close()
            assert await until(healed, clock=SystemClock(), timeout_ms=10_000)
            assert not handled.cluster.processes[1].suspended

    by_hand(tmp_path, work)
    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize("fault", sorted(name for name, fault in FAULTS.items() if fault.needs_fault_port))
def test_a_fault_of_a_machine_needs_brokers_with_fault_ports(fault: str) -> None:
    """They are off unless they were asked for, and the refusal says how."""
    with pytest.raises(FaultRefused, match=f"{fault} cannot bite: .*'gapless up --breakable'"):
        planned({"fault": fault, "target": None}, TOPICS, CLUSTER)
    assert (
        planned({"fault": fault, "target": None}, TOPICS, replace(CLUSTER, fault_ports=True)).injection.fault == fault
    )
