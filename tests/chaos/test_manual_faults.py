"""``gapless up`` and what belongs to it, without a cluster: what a fault by hand may hit, what is said of a state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.conductor.manual_faults import ByHand, ClusterFacts, FaultRefused, _did_not_bite, planned
from chaos.conductor.starting import StartFailure
from chaos.faults.base import until
from chaos.faults.catalogue import FAULTS
from chaos.schedules.model import Injection
from cluster.process.local_socket import NAME, connect
from cluster.process.topology import link_names
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from tests.chaos.fake_cluster import FakeCluster
from tests.support.faults import of_coordinators
from verifier.evidence.run_directory import RunDirectory

TOPICS = {"orders": 3, "a-1": 1}
LINKS = [str(name) for name in link_names((1, 2), ("producers", "readers"))]
CLUSTER = ClusterFacts(LINKS, 2, 2_000, clients_behind_links=True)
#: What faults on coordinators take, in words.
TAKES = {"transaction": "a transactional ID", "group": "a group"}


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
    with pytest.raises(FaultRefused, match=r"has no topic yet.* create a topic first \(docs/up.md, Topics\)"):
        planned({"fault": "kill-leader"}, {}, CLUSTER)


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


def test_a_fault_that_clients_alone_would_show_says_so(tmp_path: Path) -> None:
    """On an idle link of clients nothing is seen: its message says what to do. What was not injected is not told so."""

    async def work(handled: Handled, hand: ByHand) -> None:
        handled.cluster.links.deaf = True
        *_, end = await answered(tmp_path, asked(fault="cut-link", target="producers-b2", duration_s=0.01))
        assert end["end"] == "did not bite"
        assert end["text"] == (
            "cut-link did not bite: the probe saw no effect; it shows only in what clients send: keep a client running "
            "meanwhile"
        )

    by_hand(tmp_path, work)
    injection = Injection(0.0, "drop-response", 1.0, {"partition": 0})
    assert _did_not_bite(injection, "no leader", was_injected=False) == "drop-response did not bite: no leader"
    assert _did_not_bite(injection, "none", was_injected=True).endswith("keep a client running meanwhile")


@pytest.mark.parametrize("request_", [b"{\n", b"[]\n", b"\n", b"x" * 100_000 + b"\n", b"[" * 60_000 + b"\n"])
def test_what_is_no_request_is_refused(request_: bytes, tmp_path: Path) -> None:
    """A malformed request is refused, and the next one is served."""

    async def work(handled: Handled, hand: ByHand) -> None:
        (end,) = await answered(tmp_path, request_)
        assert end["end"] == "refused" and end["text"]
        assert (await answered(tmp_path, asked(fault="reset", duration_s=0.01)))[-1]["end"] == "bit"

    by_hand(tmp_path, work)


def test_a_fault_that_goes_wrong_is_answered_and_healed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the error, whatever it is: who asked would else wait for an answer, and find the connection ended."""

    async def fail(self: object) -> str:
        raise KeyError("b1")

    async def work(handled: Handled, hand: ByHand) -> None:
        (end,) = await answered(tmp_path, asked(fault="kill-leader", duration_s=0.01))
        assert end["end"] == "failed" and "KeyError('b1')" in end["text"]
        monkeypatch.undo()
        assert (await answered(tmp_path, asked(fault="kill-leader", duration_s=0.01)))[-1]["end"] == "bit"

    monkeypatch.setattr(FAULTS["kill-leader"], "choose", fail)
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
