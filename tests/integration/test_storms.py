"""Faults that kill several brokers or wipe one, in a real cluster under load: each bites by what its journals tell,
all brokers come back, and nothing acknowledged is lost by it."""

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
from chaos.reached import reached_by
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

#: Each with its parameters, and what its probes must have seen while it lasted and afterwards.
STORMS: tuple[tuple[str, Mapping[str, Any], Saw], ...] = (
    ("kill-majority", {}, lambda during, after: len(during["steps"]) == 2 and after["leader_epochs"] > 0),
    ("double-failover", {"back": False, "tail": True}, lambda during, after: after["leader_epochs"] >= 2),
    ("double-failover", {"back": True, "tail": True}, lambda during, after: after["isr_changes"] >= 2),
    ("kill-and-wipe", {}, lambda during, after: during["lost_bytes"] > 10_000 < after["fetched_bytes"]),
    ("restart-storm", {"rounds": 3}, lambda during, after: len(during["steps"]) == 3 and after["isr_changes"] > 0),
    ("kill-all", {}, lambda during, after: len(during["steps"]) == 3 and after["leader_epochs"] >= PARTITIONS),
)


def test_brokers_die_together_and_nothing_is_lost(tmp_path: Path) -> None:
    """All of them in one cluster, under load, one after the other; each is over before the next one begins."""
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
                for number, (fault, parameters, _) in enumerate(STORMS):
                    where = {"partition": number % PARTITIONS}
                    await injector.inject(5, number, Injection(0.0, fault, 0.3, where, parameters))
                before = writer.count()
                await asyncio.to_thread(eventually, lambda: writer.count() > before + 200, 60, "the load continues")
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
    assert [entry["phase"] for entry in record] == ["inject", "heal"] * len(STORMS), record
    for during, after, (_, _, saw) in zip(record[::2], record[1::2], STORMS, strict=True):
        assert after["effective"] and after["healed"], after
        assert saw(during["probe"], after["probe"]), (during, after)
    came = reached_by(run)
    assert {*came.isr_sizes} == {"1", "2", "3"} and min(came.leader_epochs.values()) > 5, came
