"""Faults by orders to a real cluster under load, of one session and of a broker's time: each bites by its magnitude,
leaves nothing, and nothing that was acknowledged is lost by it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
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

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(500)]

Saw = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
Ordered = tuple[str, Mapping[str, Any], Saw]

#: What a new replica must have copied: the load has written more.
COPIED_BYTES = 10_000
#: With as many replicas as brokers. Each with its parameters, and what its probes must have seen.
ORDERED: tuple[Ordered, ...] = (
    ("elect-preferred", {}, lambda during, after: during["elections"] == 1 and after["elections"] == 2),
    ("create-delete-topic", {"topics": 2}, lambda during, after: during["replica_directories"] == 18),
    (
        "add-partitions",
        {"added": 3},
        lambda during, after: during["records_read"] == 3 and during["stored_bytes"] > 300,
    ),
    ("alter-config", {"key": "segment.ms"}, lambda during, after: during["closed_segments"] >= 2),
    ("alter-config", {"key": "max.message.bytes"}, lambda during, after: after["accepted"]),
    ("reassign-partitions", {"removes": "leader"}, lambda during, after: after["copied_bytes"] > COPIED_BYTES),
    ("reassign-partitions", {"removes": "follower"}, lambda during, after: after["copied_bytes"] > COPIED_BYTES),
)
#: Of what one broker alone loses: its session, its time.
OF_ONE_BROKER: tuple[Ordered, ...] = (
    ("expire-session", {}, lambda during, after: during["runs"] and after["sessions_expired"] == 1),
    ("starve-cpu", {"percent": 80}, lambda during, after: during["taken_percent"] >= 40 and not after["stopped"]),
)
#: With a broker that has no replica.
MOVED: tuple[Ordered, ...] = (
    (
        "reassign-partitions",
        {},
        lambda during, after: min(during["copied_bytes"], after["copied_bytes"]) > COPIED_BYTES,
    ),
)


@pytest.mark.parametrize(
    ("brokers", "faults"), [(3, ORDERED), (3, OF_ONE_BROKER), (4, MOVED)], ids=["orders", "one", "moves"]
)
def test_orders_under_load_take_effect_and_nothing_is_lost(
    brokers: int, faults: tuple[Ordered, ...], tmp_path: Path
) -> None:
    """All in one cluster, one after the other. In the end the topic has the settings and the disks the replicas that
    they had before, and no other topic is there."""
    require("java")
    settings, _ = resolve(Asked(seed=5, faults="none", partitions=PARTITIONS, brokers=brokers))
    run = RunDirectory(tmp_path).prepare()
    clock = SystemClock()
    observer = Observer(AsyncioTransport(), clock, TOPIC)

    async def scenario(supervisor: Supervisor) -> None:
        deployment = Deployment(settings, run, supervisor, observer)
        await deployment.start()
        try:
            admin = observer.admin(30_000)
            await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, {"min.insync.replicas": "2"})])
            session_ms = settings.broker_config["zookeeper.session.timeout.ms"]
            target = BreakableCluster(deployment, observer, run, TOPIC, PARTITIONS, session_ms)
            writer = Writer(deployment.topology.bootstrap("producers"))
            injector = Injector(target, clock, OsStorage(), str(run.faults_jsonl), lambda _: None)
            with writer.running():
                await asyncio.to_thread(eventually, lambda: writer.count() > 3_000, 60, "the load runs")
                for number, (fault, parameters, _) in enumerate(faults):
                    where = {"partition": number % PARTITIONS}
                    await injector.inject(5, number, Injection(0.0, fault, 0.3, where, parameters))
                before = writer.count()
                await asyncio.to_thread(eventually, lambda: writer.count() > before + 200, 60, "the load continues")
            assert not any(writer.failed.values()), writer.failed
            assert await target.orders.overrides(TOPIC) == {"min.insync.replicas": "2"}
            assert [*(await admin.metadata()).topics] == [TOPIC]
            await admin.close()
            bootstrap = deployment.topology.bootstrap("readers")
            for partition in range(PARTITIONS):
                found = await asyncio.to_thread(read_numbers, bootstrap, TOPIC, partition)
                found = await asyncio.to_thread(read_numbers, bootstrap, TOPIC, partition)
                assert found == writer.acknowledged[partition]
        finally:
            await deployment.stop()

    with Supervisor(str(tmp_path), lambda _: None) as supervisor:
        asyncio.run(scenario(supervisor))
    record = [json.loads(line) for line in run.faults_jsonl.read_text().splitlines()]
    assert [entry["phase"] for entry in record] == ["inject", "heal"] * len(faults), record
    for during, after, (_, _, saw) in zip(record[::2], record[1::2], faults, strict=True):
        assert after["effective"] and after["healed"], (during, after)
        assert saw(during["probe"], after["probe"]), (during, after)
