"""Faults of the network and of single frames in a real cluster under load: each bites by its magnitude, nothing of it
is left, and nothing acknowledged is lost by it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from chaos.conductor.breakable_cluster import BreakableCluster
from chaos.conductor.deployment import Deployment
from chaos.conductor.injector import Injector
from chaos.conductor.observer import Observer
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.schedules.model import Injection
from cluster.client import NewTopic
from cluster.process.supervisor import Supervisor
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from tests.integration.local_cluster import eventually
from tests.integration.test_full_disk import PARTITIONS, TOPIC, Writer
from tests.support.numbered import read_numbers
from tests.support.require import require
from verifier.evidence.run_directory import RunDirectory

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(400)]

Saw = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
#: The name of a fault, its parameters, and what its probes must have seen while it lasted and afterwards.
Wanted = tuple[str, Mapping[str, Any], Saw]


def _parted(links: int, elsewhere: int, stopped: str) -> Saw:
    """So many links were cut, each of which lost a ping that was answered before and again, and some were whole."""

    def saw(during: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        pings = during["pings_before"], during["pings_lost"], after["pings_again"]
        return pings == (links,) * 3 and during["pings_elsewhere"] == elsewhere and during[stopped] >= 14 * links

    return saw


def _late(during: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return 2 * during["late_ms"] >= during["expected_ms"] > 2 * after["still_late_ms"]


def _ended(during: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return during["frames_hit"] > 0 < during["closed_connections"] and after["connects_again"]


PARTED: tuple[Wanted, ...] = (
    ("halves", {"lossless": True}, _parted(4, 2, "held_bytes")),
    ("bridge", {"lossless": False}, _parted(2, 4, "dropped_bytes")),
    ("ring", {"lossless": True}, _parted(3, 3, "held_bytes")),
    ("leader-with-clients", {"lossless": True}, _parted(4, 2, "held_bytes")),
    ("leader-with-followers", {"lossless": False}, _parted(2, 2, "dropped_bytes")),
    (
        "zookeeper-from-one",
        {"lossless": True},
        lambda during, after: during["counted_dead"] and during["held_bytes"] > 0 < after["sessions_expired"],
    ),
)
SLOWED: tuple[Wanted, ...] = (
    (
        "jitter",
        {"latency_ms": 150, "jitter_ms": 120},
        lambda during, after: _late(during, after) and during["spread_ms"] >= 60,
    ),
    ("bandwidth", {"rate_kb": 50}, _late),
    ("slicer", {"slice_bytes": 256, "delay_us": 6_000}, _late),
    ("slow-close", {"delay_ms": 800}, _late),
    (
        "refuse",
        {},
        lambda during, after: during["refused_connections"] == 6 and during["closed_connections"] > 0,
    ),
    (
        "flapping",
        {},
        lambda during, after: during["refused_connections"] >= 3 <= during["times_up"] and after["connects_again"],
    ),
)
FRAMES: tuple[Wanted, ...] = (
    (
        "delay-request",
        {"api": "Produce", "delay_ms": 700},
        lambda during, after: during["longest_ms"] >= 350 and during["frames_hit"] > 0,
    ),
    (
        "duplicate-request",
        {"api": "Produce", "nth": 3, "count": 5},
        lambda during, after: during["frames"] >= 3 and during["dropped_bytes"] > 0,
    ),
    ("duplicate-request", {"api": "Fetch"}, lambda during, after: during["dropped_bytes"] > 0),
    ("cut-frame", {"api": "Produce", "direction": "request", "kept_bytes": 100}, _ended),
    ("cut-frame", {"api": "Fetch", "direction": "response", "kept_bytes": 7}, _ended),
    ("close-on", {"api": "Produce", "direction": "request"}, _ended),
    ("close-on", {"api": "Produce", "direction": "response"}, _ended),
)


@pytest.mark.parametrize("wanted", [PARTED, SLOWED, FRAMES], ids=["parted", "slowed", "frames"])
def test_the_network_is_broken_and_nothing_is_lost(wanted: Sequence[Wanted], tmp_path: Path) -> None:
    """All of a group in one cluster, one after the other; in the end every link is clear."""
    require("java")
    settings, _ = resolve(Asked(seed=5, faults="none", partitions=PARTITIONS))
    run = RunDirectory(tmp_path).prepare()
    clock = SystemClock()
    observer = Observer(AsyncioTransport(), clock, TOPIC)

    async def scenario(supervisor: Supervisor) -> None:
        deployment = Deployment(settings, run, supervisor, observer)
        await deployment.start()
        try:
            admin = observer.admin(30_000)
            await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, {"min.insync.replicas": "2"})])
            await admin.close()
            session_ms = settings.broker_config["zookeeper.session.timeout.ms"]
            target = BreakableCluster(deployment, observer, run, TOPIC, PARTITIONS, session_ms)
            writer = Writer(deployment.topology.bootstrap("producers"))
            injector = Injector(target, clock, OsStorage(), str(run.faults_jsonl), lambda _: None)
            with writer.running():
                await asyncio.to_thread(eventually, lambda: writer.count() > 3_000, 60, "the load runs")
                for number, (fault, parameters, _) in enumerate(wanted):
                    where = {"partition": number % PARTITIONS}
                    await injector.inject(5, number, Injection(0.0, fault, 0.3, where, parameters))
                before = writer.count()
                await asyncio.to_thread(eventually, lambda: writer.count() > before + 200, 60, "the load continues")
            assert all(state.clear for state in (await asyncio.to_thread(deployment.links.all)).values())
            assert not any(writer.failed.values()), writer.failed
            bootstrap = deployment.topology.bootstrap("readers")
            for partition in range(PARTITIONS):
                found = await asyncio.to_thread(read_numbers, bootstrap, TOPIC, partition)
                assert found == writer.acknowledged[partition]
        finally:
            await deployment.stop()

    with Supervisor(str(tmp_path), lambda _: None) as supervisor:
        asyncio.run(scenario(supervisor))
    record = [json.loads(line) for line in run.faults_jsonl.read_text().splitlines()]
    assert [entry["phase"] for entry in record] == ["inject", "heal"] * len(wanted), record
    for during, after, (_, _, saw) in zip(record[::2], record[1::2], wanted, strict=True):
        assert after["effective"] and after["healed"], (during, after)
        assert saw(during["probe"], after["probe"]), (during, after)
