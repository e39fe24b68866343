"""Faults of a broker's machine in a real cluster: each bites by its magnitude, leaves nothing, and nothing acknowledged
is lost by it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from chaos.conductor.breakable_cluster import BreakableCluster
from chaos.conductor.deployment import Deployment
from chaos.conductor.fixed_ports import FixedPorts
from chaos.conductor.injector import Injector
from chaos.conductor.observer import Observer
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.schedules.model import Injection
from cluster.client import NewTopic
from cluster.process.supervisor import Supervisor
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.breakable_disk import RECORD
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from cluster.seams.power_loss import POWER_LOSS
from tests.integration.local_cluster import eventually
from tests.integration.test_full_disk import PARTITIONS, TOPIC, Writer
from tests.support.numbered import read_numbers
from tests.support.require import require
from verifier.evidence.run_directory import RunDirectory

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(400)]

#: Each with what its probe must have seen while it lasted, and afterwards.
MACHINES: Mapping[str, tuple[Mapping[str, Any], Callable[[Mapping[str, Any], Mapping[str, Any]], bool]]] = {
    "power-loss": ({}, lambda during, after: during["lost_bytes"] > 0 < after["verified_bytes"]),
    "truncate-tail": ({}, lambda during, after: during["lost_bytes"] > 0 < after["verified_bytes"]),
    "full-disk": ({}, lambda during, after: during["failed_calls"] > 0 and during["disk_error"] == "ENOSPC"),
    "disk-error": ({"calls": "all"}, lambda during, after: during["failed_calls"] > 0 and after["disk_well"]),
    "slow-disk": (
        {"delay_ms": 600},
        lambda during, after: during["waited_for_disk_ms"] >= 600 > after["last_sync_ms"] and after["disk_well"],
    ),
    "lose-checkpoint": (
        {"checkpoint": "replication-offset-checkpoint"},
        lambda during, after: during["lost_bytes"] > 0 and after["isr_full"],
    ),
    "lose-index": ({}, lambda during, after: during["lost_files"] > 2 and after["files_again"] > 0),
    "bit-flip": ({}, lambda during, after: (during["bad_batches"], after["bad_batches"]) == (1, 0)),
    "clock-jump": (
        {"ahead_ms": -90_000},
        lambda during, after: during["clock_ahead_ms"] < -80_000 and abs(after["clock_ahead_ms"]) < 250,
    ),
    "clock-drift": (
        {"ppm": 400_000},
        lambda during, after: during["clock_ahead_ms"] > 400 and abs(after["clock_ahead_ms"]) < 250,
    ),
}


def test_machines_are_broken_one_after_the_other_and_nothing_is_lost(tmp_path: Path) -> None:
    """All of them in one cluster, under load. In the end no switch is on, and no loss is left to be taken."""
    require("java")
    settings, _ = resolve(Asked(seed=5, faults="none", partitions=PARTITIONS))
    run = RunDirectory(tmp_path)
    run.prepare()
    clock, storage = SystemClock(), OsStorage()
    observer = Observer(AsyncioTransport(), clock, TOPIC)

    async def scenario(supervisor: Supervisor) -> None:
        deployment = Deployment(settings, run, supervisor, observer, FixedPorts(fault=0))
        await deployment.start()
        try:
            admin = observer.admin(30_000)
            await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, {"segment.bytes": "65536"})])
            await admin.close()
            session_ms = settings.broker_config["zookeeper.session.timeout.ms"]
            target = BreakableCluster(deployment, observer, run, TOPIC, PARTITIONS, session_ms)
            writer = Writer(deployment.topology.bootstrap("producers"))
            injector = Injector(target, clock, storage, str(run.faults_jsonl), lambda _: None)
            with writer.running():
                await asyncio.to_thread(eventually, lambda: writer.count() > 3_000, 60, "the load runs")
                for number, (fault, (parameters, _)) in enumerate(MACHINES.items()):
                    where = {"partition": number % PARTITIONS}
                    await injector.inject(5, number, Injection(0.0, fault, 0.3, where, parameters))
                before = writer.count()
                await asyncio.to_thread(eventually, lambda: writer.count() > before + 200, 60, "the load continues")
            bootstrap = deployment.topology.bootstrap("readers")
            for partition in range(PARTITIONS):
                found = await asyncio.to_thread(read_numbers, bootstrap, TOPIC, partition)
                # a broker whose disk fails refuses what waits for its followers, which may have it all the same
                certain = [value for value in found if value not in writer.failed[partition]]
                assert certain == writer.acknowledged[partition], writer.failed[partition]
                assert all("storage error" in error for error in writer.failed[partition].values()), writer.failed
            states = [await target.machine(broker_id).see() for broker_id in deployment.broker_ids]
            assert all(state is not None and state.is_well and abs(state.ahead_ms) < 250 for state in states), states
        finally:
            await deployment.stop()

    with Supervisor(str(tmp_path), lambda _: None) as supervisor:
        asyncio.run(scenario(supervisor))
    record = [json.loads(line) for line in run.faults_jsonl.read_text().splitlines()]
    assert [entry["phase"] for entry in record] == ["inject", "heal"] * len(MACHINES), record
    for during, after in zip(record[::2], record[1::2], strict=True):
        assert after["effective"] and after["healed"], after
        _, saw = MACHINES[during["fault"]]
        assert saw(during["probe"], after["probe"]), (during, after)
    assert not list(tmp_path.glob(f"nodes/*/{POWER_LOSS}"))
    assert any(path.stat().st_size for path in tmp_path.glob(f"nodes/*/{RECORD}"))
