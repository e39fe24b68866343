"""Faults injected one after the other into a real cluster under load.

Owns the cluster, its load, the injections and the record of what their probes saw. Does not own what they must have
seen, nor what must hold in the end (the tests).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from tests.integration.local_cluster import eventually
from tests.integration.test_full_disk import PARTITIONS, TOPIC, Writer
from tests.support.numbered import read_numbers
from verifier.evidence.run_directory import RunDirectory

SEED = 5
DURATION_S = 0.3
REPLICAS = 3
#: Numbers that are acknowledged before the first fault, and after the last one.
BEFORE, AFTER = 3_000, 200
PATIENCE_S = 60

#: Takes what a probe found during a fault and after it.
Saw = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


class Wanted(NamedTuple):
    """A fault, its parameters, and what its probes must have seen."""

    fault: str
    parameters: Mapping[str, Any]
    saw: Saw


class Scene(NamedTuple):
    """The cluster when the last fault is healed and the load has ended."""

    deployment: Deployment
    observer: Observer
    cluster: BreakableCluster
    writer: Writer

    async def numbers(self, partition: int) -> list[int]:
        """What is in the partition, by its offsets."""
        bootstrap = self.deployment.topology.bootstrap("readers")
        return await asyncio.to_thread(read_numbers, bootstrap, TOPIC, partition)


async def nothing_is_lost(scene: Scene) -> None:
    """Each number was acknowledged, and stands where it belongs."""
    assert not any(scene.writer.failed.values()), scene.writer.failed
    for partition in range(PARTITIONS):
        assert await scene.numbers(partition) == scene.writer.acknowledged[partition]


def break_in_turn(
    directory: Path,
    wanted: Sequence[Wanted],
    in_the_end: Callable[[Scene], Awaitable[None]],
    *,
    brokers: int = REPLICAS,
    topic: Mapping[str, str] | None = None,
    is_breakable: bool = False,
    is_idempotent: bool = True,
) -> RunDirectory:
    """Inject all of them; each must bite by what its probes saw, and be healed.

    ``topic``: its settings. ``is_breakable``: the brokers' machines can be broken too. ``is_idempotent``: so
    is the load. ``in_the_end`` looks at the cluster before it stops.
    """
    settings, _ = resolve(Asked(seed=SEED, faults="none", partitions=PARTITIONS, brokers=brokers))
    run = RunDirectory(directory).prepare()
    observer = Observer(AsyncioTransport(), SystemClock(), TOPIC)

    async def scenario(supervisor: Supervisor) -> None:
        ports = FixedPorts(fault=0) if is_breakable else FixedPorts()
        deployment = Deployment(settings, run, supervisor, observer, ports)
        await deployment.start()
        try:
            admin = observer.admin(30_000)
            await admin.create_topics([NewTopic(TOPIC, PARTITIONS, REPLICAS, dict(topic or {}))])
            await admin.close()
            session_ms = settings.broker_config["zookeeper.session.timeout.ms"]
            cluster = BreakableCluster(deployment, observer, run, TOPIC, PARTITIONS, session_ms)
            writer = Writer(deployment.topology.bootstrap("producers"), is_idempotent=is_idempotent)
            scene = Scene(deployment, observer, cluster, writer)
            await _inject(scene, [each[:2] for each in wanted], str(run.faults_jsonl))
            await in_the_end(scene)
        finally:
            await deployment.stop()

    with Supervisor(str(directory), lambda _: None) as supervisor:
        asyncio.run(scenario(supervisor))
    record = [json.loads(line) for line in run.faults_jsonl.read_text().splitlines()]
    assert [entry["phase"] for entry in record] == ["inject", "heal"] * len(wanted), record
    for during, after, (_, _, saw) in zip(record[::2], record[1::2], wanted, strict=True):
        assert after["effective"] and after["healed"], (during, after)
        assert saw(during["probe"], after["probe"]), (during, after)
    return run


async def _inject(scene: Scene, faults: Sequence[tuple[str, Mapping[str, Any]]], path: str) -> None:
    """One after the other, each on the next partition, while the load runs."""
    writer = scene.writer
    injector = Injector(scene.cluster, SystemClock(), OsStorage(), path, lambda _: None)
    with writer.running():
        await asyncio.to_thread(eventually, lambda: writer.count() > BEFORE, PATIENCE_S, "the load runs")
        for number, (fault, parameters) in enumerate(faults):
            where = {"partition": number % PARTITIONS}
            await injector.inject(SEED, number, Injection(0.0, fault, DURATION_S, where, parameters))
        before = writer.count()
        await asyncio.to_thread(eventually, lambda: writer.count() > before + AFTER, PATIENCE_S, "the load continues")
