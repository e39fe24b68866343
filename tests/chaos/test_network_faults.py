"""Faults of the network and of single frames: who is cut off from whom, and what their probes ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from chaos.experiment.asked import Asked
from chaos.experiment.errors import ExperimentError
from chaos.experiment.resolve import resolve
from chaos.faults.base import Fault, PreconditionMissing, Probe
from chaos.faults.catalogue import DEFAULT, FAULTS, GROUPS
from chaos.faults.damage import FrameAct, LinkTraffic
from chaos.faults.request_fault import APIS
from chaos.schedules.model import Injection
from cluster.process.topology import link_names
from cluster.protocol.apis import ApiKey
from cluster.seams.clock import SystemClock
from tests.chaos.conducted import FastClock
from tests.chaos.fake_cluster import FakeCluster, FakeLinks, FakeProcess

PARTITIONS = ("halves", "bridge", "ring", "leader-with-clients", "leader-with-followers")
SLOWED = ("jitter", "bandwidth", "slicer", "slow-close")
ON_REQUESTS = ("delay-request", "duplicate-request", "cut-frame", "close-on")
ALL = (*PARTITIONS, "zookeeper-from-one", *SLOWED, "refuse", "flapping", *ON_REQUESTS)


class Sized(FakeCluster):
    """Any number of brokers."""

    def __init__(self, brokers: int) -> None:
        super().__init__()
        self.broker_ids = tuple(range(1, brokers + 1))  # type: ignore[assignment]
        self.processes = {broker_id: FakeProcess(1000 + broker_id) for broker_id in self.broker_ids}
        self.link_names = tuple(str(name) for name in link_names(self.broker_ids, ("producers", "readers")))


def made(name: str, cluster: FakeCluster, seed: int = 3, target: Mapping[str, Any] | None = None, **said: Any) -> Fault:
    injection = Injection(0.0, name, 0.01, {"partition": 0} if target is None else target, said)
    return FAULTS[name](injection, cluster, FastClock(), Random(seed))


async def _lived(fault: Fault) -> tuple[Probe, Probe]:
    await fault.choose()
    await fault.inject()
    during = await fault.bites()
    await fault.heal()
    return during, await fault.gone()


def lived(fault: Fault) -> tuple[Probe, Probe]:
    """What its probes saw while it lasted and afterwards."""
    return asyncio.run(_lived(fault))


def cut_links(name: str, brokers: int, seed: int) -> set[tuple[int, int]]:
    """The pairs (one, other) of brokers of which the first cannot reach the other."""
    during, _ = lived(made(name, Sized(brokers), seed))
    assert during.effective
    return {(int(link[1:].partition("-")[0]), int(link.rpartition("b")[2])) for link in during.seen["links"]}


def reached(cut: set[tuple[int, int]], brokers: int) -> dict[int, set[int]]:
    """Whom each broker can still send requests to, itself included."""
    ids = range(1, brokers + 1)
    return {one: {other for other in ids if (one, other) not in cut} for one in ids}


def test_they_are_known_by_name_and_are_no_part_of_the_default() -> None:
    """A run of a minute has no time for them; ``all`` and the profiles that take everything have them."""
    assert set(ALL) <= {*GROUPS["all"]}
    assert not set(ALL) & {*GROUPS[DEFAULT]}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("brokers", [2, 3, 4, 5])
def test_halves_see_only_themselves(brokers: int, seed: int) -> None:
    """Each broker sees its half and no more, and one half has at most one broker more."""
    sides = {frozenset(seen) for seen in reached(cut_links("halves", brokers, seed), brokers).values()}
    assert sorted(map(len, sides)) == [brokers // 2, brokers - brokers // 2]
    assert set.union(*map(set, sides)) == set(range(1, brokers + 1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("brokers", [3, 4, 5])
def test_a_bridge_sees_both_halves_and_they_do_not_see_each_other(brokers: int, seed: int) -> None:
    """One broker sees all; who else sees whom, that one also sees."""
    seen = reached(cut_links("bridge", brokers, seed), brokers)
    bridges = [broker for broker, others in seen.items() if len(others) == brokers]
    assert len(bridges) == 1
    sides = {frozenset(others - set(bridges)) for broker, others in seen.items() if broker not in bridges}
    assert sorted(map(len, sides)) == sorted([(brokers - 1) // 2, brokers - 1 - (brokers - 1) // 2])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("brokers", "most"), [(3, 2), (4, 3), (5, 3), (7, 3)])
def test_in_a_ring_no_two_see_the_same(brokers: int, most: int, seed: int) -> None:
    """Each sees itself and its neighbors, of three brokers itself and the next one; each is seen by as many."""
    seen = reached(cut_links("ring", brokers, seed), brokers)
    assert {len(others) for others in seen.values()} == {most}
    assert len({frozenset(others) for others in seen.values()}) == brokers
    assert all(sum(broker in others for others in seen.values()) == most for broker in seen)


def test_a_leader_keeps_its_clients_or_its_followers() -> None:
    """What is cut of one fault is whole in the other one; ZooKeeper is part of neither."""
    clients, _ = lived(made("leader-with-followers", FakeCluster()))
    followers, _ = lived(made("leader-with-clients", FakeCluster()))
    assert clients.seen["links"] == ["producers-b1", "readers-b1"]
    assert sorted(followers.seen["links"]) == ["b1-b2", "b1-b3", "b2-b1", "b3-b1"]
    assert (clients.seen["pings_elsewhere"], followers.seen["pings_elsewhere"]) == (2, 2)


class Leaky(FakeLinks):
    """One link answers although it is cut, as one that was opened past the proxy would."""

    async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
        return 1.0 if link == self.leaks else await super().ping(link, timeout_ms=timeout_ms)

    leaks = ""


class Halting(FakeLinks):
    """Links that must stay whole do not answer either."""

    async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
        is_broken = any(
            kind in ("request", "response", "both") for own in self.toxics.values() for kind, _ in own.values()
        )
        return None if is_broken else 1.0


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_does_not_bite_where_one_ping_gets_through(name: str) -> None:
    """All of its links are looked at, not some."""
    links, _ = lived(made(name, FakeCluster()))
    for leak in links.seen["links"]:
        cluster = FakeCluster()
        cluster.links = Leaky()
        cluster.links.leaks = leak
        during, _ = lived(made(name, cluster))
        assert not during.effective and during.seen["pings_lost"] == len(links.seen["links"]) - 1


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_cuts_only_what_served_before(name: str) -> None:
    """A link on which no ping was answered before shows nothing by a ping that is lost."""
    links, _ = lived(made(name, FakeCluster()))
    silent = links.seen["links"][0]

    class Silent(FakeLinks):
        async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
            return None if link == silent else await super().ping(link, timeout_ms=timeout_ms)

    cluster = FakeCluster()
    cluster.links = Silent()
    during, _ = lived(made(name, cluster))
    assert not during.effective and during.seen["pings_before"] == len(links.seen["links"]) - 1


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_is_another_fault_if_more_is_cut_than_it_says(name: str) -> None:
    """Pings on the links that must stay whole have to be answered meanwhile."""
    cluster = FakeCluster()
    cluster.links = Halting()
    during, after = lived(made(name, cluster))
    assert not during.effective and during.seen["pings_elsewhere"] == 0
    assert after.effective


@pytest.mark.parametrize("lossless", [True, False])
@pytest.mark.parametrize("name", [*PARTITIONS, "zookeeper-from-one"])
def test_a_partition_holds_or_drops(name: str, lossless: bool) -> None:
    """As it is told, and the probe has the bytes of every link that it cut."""
    during, after = lived(made(name, FakeCluster(), lossless=lossless))
    links = len(during.seen.get("links", [1]))
    assert during.effective and during.seen["held_bytes" if lossless else "dropped_bytes"] >= 100 * links
    assert after.effective


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_waits_until_every_broker_runs(name: str) -> None:
    """A ping to a dead broker is lost without any cut."""
    cluster = FakeCluster()
    cluster.processes[3].running = False
    with pytest.raises(PreconditionMissing, match="not every broker runs"):
        asyncio.run(made(name, cluster).choose())


def test_a_partition_is_not_over_before_pings_are_answered_on_all_of_its_links() -> None:
    """That the proxy has no toxic anymore is not enough."""

    class Deaf(FakeLinks):
        async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
            healed = self.made and not self.is_cut(link)
            return None if healed and link == self.deaf_link else await super().ping(link, timeout_ms=timeout_ms)

        deaf_link = ""

    cluster = FakeCluster()
    links = cluster.links = Deaf()
    fault = made("leader-with-followers", cluster)
    links.deaf_link = "readers-b1"
    during, after = lived(fault)
    assert during.effective
    assert not after.effective and after.seen["pings_again"] == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("jitter", {"latency_ms": 200, "jitter_ms": 100}),
        ("bandwidth", {"rate_kb": 10}),
        ("slicer", {"slice_bytes": 100, "delay_us": 5_000}),
        ("slow-close", {"delay_ms": 900}),
    ],
)
def test_half_of_what_a_toxic_must_do_is_enough_and_less_is_not(name: str, said: dict[str, int]) -> None:
    """A ping that is late by a tenth is late by something else. In the end it must not be late anymore."""

    class Weak(FakeLinks):
        share = 1.0

        async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
            took_ms = await super().ping(link, timeout_ms=timeout_ms, size_bytes=size_bytes)
            return None if took_ms is None else took_ms * self.share

        async def close_ms(self, link: str, *, timeout_ms: int) -> float | None:
            took_ms = await super().close_ms(link, timeout_ms=timeout_ms)
            return None if took_ms is None else took_ms * self.share

    for share, bites in ((1.0, True), (0.6, True), (0.4, False), (0.1, False)):
        cluster = FakeCluster()
        links = cluster.links = Weak()
        links.share = share
        during, after = lived(made(name, cluster, **said))
        assert during.effective is bites, (share, during)
        assert after.effective and after.seen["still_late_ms"] == 0


def test_what_was_never_quick_is_not_slowed() -> None:
    """Without an answer before, nothing says that the toxic makes a ping late."""

    class Late(FakeLinks):
        async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
            return 5_000.0 if self.toxics.get(link) else None

    cluster = FakeCluster()
    cluster.links = Late()
    during, _ = lived(made("bandwidth", cluster, rate_kb=10))
    assert not during.effective and during.seen["late_ms"] == 5_000


def test_every_slowed_link_is_measured() -> None:
    """One that is as quick as before, whichever it is, takes its part of the average."""
    slowed, _ = lived(made("bandwidth", FakeCluster(), rate_kb=10))

    class FirstOnly(FakeLinks):
        async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
            took_ms = await super().ping(link, timeout_ms=timeout_ms, size_bytes=size_bytes)
            return took_ms if link == slowed.seen["links"][0] else 1.0

    cluster = FakeCluster()
    cluster.links = FirstOnly()
    during, _ = lived(made("bandwidth", cluster, rate_kb=10))
    assert len(slowed.seen["links"]) > 1 and during.seen["late_ms"] < slowed.seen["late_ms"]


def test_jitter_without_any_spread_is_latency() -> None:
    """All pings late by the same is what slow-link does."""

    class Even(FakeLinks):
        async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
            return 201.0 if self.toxics.get(link) else 1.0

    cluster = FakeCluster()
    cluster.links = Even()
    during, _ = lived(made("jitter", cluster, latency_ms=200, jitter_ms=100))
    assert (during.effective, during.seen["late_ms"], during.seen["spread_ms"]) == (False, 200, 0)


def test_a_refusal_needs_all_attempts_refused() -> None:
    """And connections that were there must have ended; afterwards connections are made again."""

    class Half(FakeLinks):
        async def is_refused(self, link: str) -> bool:
            return link != "readers-b1" and await super().is_refused(link)

    during, after = lived(made("refuse", FakeCluster()))
    assert during.effective and during.seen["refused_connections"] == 6 and during.seen["closed_connections"] == 2
    assert after.effective and after.seen["connects_again"]
    cluster = FakeCluster()
    cluster.links = Half()
    during, _ = lived(made("refuse", cluster))
    assert not during.effective


def test_a_flapping_link_was_down_and_up_several_times() -> None:
    """Each time refused and then answered; when it is healed it is up, whatever it was in the middle of."""
    cluster = FakeCluster()
    fault = made("flapping", cluster, target={"link": "b2-b1"})
    fault.clock = SystemClock()
    during, after = lived(fault)
    assert during.effective and min(during.seen["refused_connections"], during.seen["times_up"]) >= 3
    assert after.effective and not cluster.links.toxics["b2-b1"]


@pytest.mark.parametrize("name", [*SLOWED, "refuse"])
def test_clients_to_the_leader_are_hit_or_a_link_that_is_named(name: str) -> None:
    """A link that there is not is waited for, and then refused in the record."""
    during, _ = lived(made(name, FakeCluster()))
    assert during.seen["links"] == ["producers-b1", "readers-b1"]
    during, _ = lived(made(name, FakeCluster(), target={"link": "b3-b2"}))
    assert during.seen["links"] == ["b3-b2"]
    with pytest.raises(PreconditionMissing, match="there is no link"):
        asyncio.run(made(name, FakeCluster(), target={"link": "b3-b9"}).choose())


@pytest.mark.parametrize("name", [*SLOWED, *ON_REQUESTS])
def test_what_is_measured_by_kafkas_protocol_takes_no_link_to_zookeeper(name: str) -> None:
    """ZooKeeper would not answer, which proves nothing."""
    with pytest.raises(PreconditionMissing, match="there is no link 'b1-zk' to a broker"):
        asyncio.run(made(name, FakeCluster(), target={"link": "b1-zk"}).choose())


@pytest.mark.parametrize("name", [name for name in ALL if name not in ON_REQUESTS])
def test_without_counters_what_we_measure_ourselves_is_enough(name: str) -> None:
    """An external Toxiproxy has none: pings and attempts to connect show the fault, and that it does nothing."""

    class Foreign(FakeLinks):
        async def stats(self, link: str) -> LinkTraffic | None:
            return None

    for deaf in (False, True):
        cluster = FakeCluster()
        cluster.links = Foreign()
        cluster.links.deaf = deaf
        fault = made(name, cluster)
        if not deaf:
            fault.clock = SystemClock()
        during, after = lived(fault)
        assert during.effective is not deaf, (deaf, during)
        assert after.effective


def acts(name: str, seed: int = 3, **said: Any) -> tuple[Sequence[FrameAct], Probe]:
    cluster = FakeCluster()
    during, _ = lived(made(name, cluster, seed, **said))
    return cluster.links.frame_acts, during


@pytest.mark.parametrize(
    ("name", "said", "act"),
    [
        ("delay-request", {"delay_ms": 300}, FrameAct("delay", (0,), "request", 2, skip=6, delay_ms=300)),
        ("duplicate-request", {}, FrameAct("repeat", (0,), "request", 2, skip=6)),
        (
            "cut-frame",
            {"direction": "response", "kept_bytes": 9},
            FrameAct("cut", (0,), "response", 2, skip=6, kept_bytes=9),
        ),
        ("close-on", {"direction": "request"}, FrameAct("close", (0,), "request", 2, skip=6)),
    ],
)
def test_frames_are_told_by_api_number_and_direction(name: str, said: dict[str, Any], act: FrameAct) -> None:
    """On all links to the leader, those of clients and those of followers."""
    done, during = acts(name, api="Produce", nth=7, count=2, **said)
    assert done == [act] * 4 and during.effective
    assert during.seen["links"] == ["producers-b1", "readers-b1", "b2-b1", "b3-b1"]


def test_every_api_has_its_name() -> None:
    """As Kafka writes it; another word is refused before the start, with some that are right."""
    assert APIS["Produce"] is ApiKey.PRODUCE and APIS["WriteTxnMarkers"] is ApiKey.WRITE_TXN_MARKERS
    assert len(APIS) == len(ApiKey)
    (rule,) = (each for each in FAULTS["cut-frame"].accepts if each.name == "api")
    assert rule.allows("LeaderAndIsr") and not rule.allows("leader-and-isr") and not rule.allows(3)


@pytest.mark.parametrize("name", ON_REQUESTS)
def test_what_is_not_told_follows_from_the_seed(name: str) -> None:
    """The same seed does the same, another one sooner or later something else."""
    assert acts(name, 5)[0] == acts(name, 5)[0]
    assert len({acts(name, seed)[0][0] for seed in range(8)}) > 2


def test_a_request_that_was_not_delayed_by_half_is_no_delay() -> None:
    """That the proxy saw the frame is not enough: its own clock says how long it was held."""

    class Hasty(FakeLinks):
        async def act_on_frames(self, link: str, act: FrameAct) -> Any:
            marks = await super().act_on_frames(link, act)
            self.frame_acts[:] = [FrameAct(act.act, act.api_keys, act.direction, delay_ms=act.delay_ms // 3)]
            return marks

    cluster = FakeCluster()
    cluster.links = Hasty()
    during, _ = lived(made("delay-request", cluster, delay_ms=600))
    assert (during.effective, during.seen["longest_ms"]) == (False, 200)


@pytest.mark.parametrize("name", ["duplicate-request", "cut-frame", "close-on"])
def test_a_frame_that_was_hit_must_have_a_consequence(name: str) -> None:
    """A second answer that was swallowed, or a connection that ended."""

    class Spineless(FakeLinks):
        async def act_on_frames(self, link: str, act: FrameAct) -> Any:
            self.frame_acts.append(act)
            return self._add(link, "hold", True)

    cluster = FakeCluster()
    cluster.links = Spineless()
    during, _ = lived(made(name, cluster))
    assert during.seen["frames_hit"] > 0 and not during.effective


def test_batches_are_repeated_only_to_brokers_that_can_tell() -> None:
    """Without idempotence each would be stored twice, and no client did it: refused by name, and no part of ``all``."""
    for asked in ({"idempotence": False}, {"acks": "1"}, {"producer_config": ("enable.idempotence=false",)}):
        with pytest.raises(ExperimentError, match="duplicate-request: it delivers batches twice"):
            resolve(Asked(seed=1, faults="duplicate-request", **asked))
        experiment, told = resolve(Asked(seed=1, faults="all", **asked))
        assert "duplicate-request" not in experiment.faults
        assert any("without duplicate-request" in line for line in told)
    experiment, _ = resolve(Asked(seed=1, faults="duplicate-request", acks="all"))
    assert experiment.faults == ("duplicate-request",)


def test_single_frames_need_our_own_proxy() -> None:
    """Toxiproxy knows none; what is done to links works on it as well."""
    for name in ALL:
        asked = Asked(seed=1, faults=name, toxiproxy="http://127.0.0.1:8474")
        if name in ON_REQUESTS:
            with pytest.raises(ExperimentError, match="it needs gapless's own proxy"):
                resolve(asked)
        else:
            assert resolve(asked)[0].faults == (name,)
