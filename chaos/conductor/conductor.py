"""Conducts one run from its start to its sealed evidence (docs/design.md "Phases of a run"). Owns the order of phases.

Whatever happens (an error, Ctrl-C, a part that does not start), everything broken is healed and every process stopped.
Problems are recorded: a run without complete evidence can at best be ``unknown``. Judges nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chaos.conductor.breakable_cluster import BreakableCluster
from chaos.conductor.clusters import cluster_of
from chaos.conductor.declared import create_topics, declared_evidence, topic_ids
from chaos.conductor.final import FinalState
from chaos.conductor.health import LagMeter, harness_health
from chaos.conductor.injector import Injector, NotHealed
from chaos.conductor.interruption import Interruption
from chaos.conductor.live import Live
from chaos.conductor.load import Load
from chaos.conductor.observer import Observer
from chaos.conductor.producer_ids import producer_ids_below
from chaos.conductor.progress import under_load
from chaos.conductor.record import RunRecord
from chaos.conductor.resources import Resources, disk_problem, running
from chaos.conductor.returned import bring_back
from chaos.conductor.starting import StartFailure
from chaos.conductor.witnesses import Witnesses
from chaos.conductor.workbench import Workbench
from chaos.experiment.experiment import Experiment
from chaos.experiment.resolve import load_seconds
from chaos.faults.base import until
from chaos.links import LinkError
from chaos.schedules.model import Schedule
from cluster.client import NewTopic
from cluster.seams.units import ms_of_seconds, seconds_of_ms
from verifier.evidence.phases import CHAOS, FINAL_READ, FLUSH, HEAL, LOAD_STARTS, RECOVERY, START, STOP
from verifier.evidence.run_model import TopicSpec

logger = logging.getLogger(__name__)

CREATE_TOPIC_MS = 20_000
LOAD_STARTS_MS = 30_000
HEALED_MS = 60_000
SETTLED_MS = 20_000
#: The load writes its status this often, too.
STATUS_EVERY_S = 1.0
#: Added to the bound for stalled partitions, since the load writes its status once a second.
RECOVERY_MARGIN_MS = 2_500


class Incomplete(Exception):
    """The run cannot continue. The evidence so far is still judged; the verdict can at best be unknown."""


class Conductor:
    """Conducts one run. ``interrupt`` may be called at any time, on the event loop."""

    def __init__(self, settings: Experiment, schedule: Schedule, bench: Workbench, record: RunRecord) -> None:
        self._settings, self._schedule = settings, schedule
        self._bench, self._record = bench, record
        self._observer = Observer(bench.transport, bench.clock, settings.topic)
        self._deployment = cluster_of(settings, schedule, bench, self._observer)
        self._load = Load(settings, bench, self._deployment, record.model.run_id)
        self._live = Live(settings, schedule, bench, record, self._load)
        self._injector: Injector | None = None
        self._interruption, self._lag = Interruption(is_judged=not settings.asked.unjudged), LagMeter(bench.clock)
        self._resources = Resources(bench.clock, bench.storage, str(bench.directory.resources_jsonl))
        self._witnesses = Witnesses(settings, bench, self._observer, self._load.output_topic)
        self._task: asyncio.Task[None] | None = None
        self._output_replicas: dict[str, list[int]] = {}

    def interrupt(self) -> None:
        """End load and faults early, or stop the run at once (``Interruption`` decides). Everything is healed."""
        phases = self._record.model.phases
        phase = phases[-1].name if phases else START
        if phase == STOP:
            return
        if not self._record.model.interrupted:
            self._record.update(interrupted=True)
            self._record.problem(f"interrupted in phase {phase!r}")
        if self._interruption.stops_now(phase) and self._task is not None:
            self._task.cancel()
        self._end_early()

    def _end_early(self) -> None:
        """Inject nothing more and heal what is broken; what was acknowledged until now is judged."""
        if self._injector is not None:
            self._injector.end_early()

    async def run(self) -> None:
        """Conduct the run until its evidence is complete. Raises an error of the harness only after winding down."""
        progress = self._bench.progress
        beside = [asyncio.create_task(each) for each in (self._lag.run(), self._live.run(), self._witnesses.run())]
        self._task = asyncio.create_task(self._experiment())
        try:
            await asyncio.wait([self._task])
            if self._task.cancelled():
                progress.note("stopped: " + "; ".join(self._record.model.problems))
            elif (error := self._task.exception()) is not None:
                self._record.problem(str(error))
                if not isinstance(error, Incomplete):
                    raise error
        finally:
            await self._wind_down()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _experiment(self) -> None:
        progress = self._bench.progress
        with self._phase(START):
            await self._deployment.start()
            await self._create_topic()
        with self._phase(LOAD_STARTS):
            await self._declare()
            await self._load.start()
            started_ms = await self._load_is_flowing()
        with self._phase(CHAOS, self._schedule.words()):
            await self._chaos(started_ms)
        with self._phase(HEAL):
            is_in_sync = await self._healed()
        if is_in_sync:
            with self._phase(RECOVERY):
                await self._recovered()
        with self._phase(FLUSH):
            for problem in await self._load.stop():
                self._record.problem(problem)
            self._live.ended()
        with self._phase(FINAL_READ):
            await self._final_read()
        progress.note("evidence is complete" if self._complete() else "evidence is not complete")

    async def _create_topic(self) -> None:
        settings = self._settings
        config = settings.topic_config.as_text()
        topic = NewTopic(settings.topic, settings.partitions, settings.asked.replication_factor, config)
        output = self._load.output_topic
        try:
            topic_id, self._output_replicas = await create_topics(
                self._observer, topic, output, self._bench.clock, CREATE_TOPIC_MS
            )
        except TimeoutError as error:
            raise Incomplete(f"unavailable: the topic could not be created: {error}") from error
        spec = TopicSpec(settings.topic, settings.partitions, settings.asked.replication_factor, topic_id, config)
        self._record.update(topics=[spec], topology=self._deployment.topology.to_json())

        async def in_sync() -> bool:
            return (await self._observer.view()).in_sync(settings.partitions)

        if not await until(in_sync, clock=self._bench.clock, timeout_ms=CREATE_TOPIC_MS):
            raise Incomplete("unavailable: not all replicas of the topic joined the ISR at the start")

    async def _declare(self) -> None:
        """Declare what the run will leave, before any of it exists: the verifier accounts for all of it."""
        view, planned = await self._observer.view(), len(self._schedule.injections)
        whose = self._load.declared, self._deployment.broker_ids, self._settings.topic
        self._record.update(evidence=declared_evidence(*whose, view, planned, self._output_replicas))

    async def _load_is_flowing(self) -> int:
        """Wait until a record was acknowledged and one was read. Returns the time then, in monotonic ms."""

        async def flowing() -> bool:
            status = await self._load.status()
            return status.acked > 0 and status.read > 0

        if not await until(flowing, clock=self._bench.clock, timeout_ms=LOAD_STARTS_MS):
            raise Incomplete("the load did not start: within 30 s no record was both acknowledged and read")
        return self._bench.clock.monotonic_ms()

    async def _chaos(self, started_ms: int) -> None:
        bench, settings = self._bench, self._settings
        timeout = settings.broker_config["zookeeper.session.timeout.ms"]
        of_run = settings.topic, settings.partitions, timeout, self._load.breakable
        cluster = BreakableCluster(self._deployment, self._observer, bench.directory, *of_run)
        record, note = str(bench.directory.faults_jsonl), bench.progress.note
        self._injector = Injector(cluster, bench.clock, bench.storage, record, note, self._live.write)
        self._live.chaos(self._injector, started_ms)
        watch = asyncio.create_task(self._watch(started_ms))
        try:
            until_ms = started_ms + ms_of_seconds(settings.asked.time_limit_s)
            faults = self._injector.run(self._schedule, started_ms, until_ms)
            left_s = settings.asked.time_limit_s - seconds_of_ms(bench.clock.monotonic_ms() - started_ms)
            planned: asyncio.Future[Any] = asyncio.gather(faults, self._injector.pause(max(0.0, left_s)))
            try:
                await planned
            except NotHealed as failed:
                raise Incomplete(f"unavailable: {failed}") from failed
            finally:
                planned.cancel()
                await asyncio.gather(planned, return_exceptions=True)
        finally:
            watch.cancel()

    async def _watch(self, started_ms: int) -> None:
        """Update the live line every second; stop the run if the disk is full, end it early if the load has ended."""
        bench = self._bench
        while True:
            status = await self._load.status()
            elapsed_s = seconds_of_ms(bench.clock.monotonic_ms() - started_ms)
            active = self._injector.active if self._injector else ""
            whole_s = load_seconds(self._settings, self._schedule)
            bench.progress.status(under_load(active, elapsed_s, whole_s, status.sentence()))
            free_bytes = bench.storage.free_bytes(str(bench.directory.path))
            self._resources.sample_if_due(running(bench.supervisor.children), free_bytes)
            if (full := disk_problem(free_bytes)) is not None and self._task is not None:
                self._record.problem(full)
                self._task.cancel()
            for problem in self._load.died():
                self._record.problem(problem)
            if self._load.is_over:
                self._end_early()  # without load there is nothing left to break
            await asyncio.sleep(STATUS_EVERY_S)

    async def _healed(self) -> bool:
        """Undo everything, start dead brokers, wait for full ISRs. If they stay incomplete, a problem and False."""
        if self._injector is not None:
            await self._injector.heal_all()
        await asyncio.to_thread(self._deployment.links.reset)
        try:
            await bring_back(self._deployment, self._record.problem)
        except StartFailure as error:
            raise Incomplete(f"unavailable: {error}") from error

        async def in_sync() -> bool:
            return (await self._observer.view()).in_sync(self._settings.partitions)

        if await until(in_sync, clock=self._bench.clock, timeout_ms=HEALED_MS, interval_ms=100):
            if self._injector is not None:
                await self._injector.look_again()
            return True
        self._record.problem("unavailable: not every replica rejoined its ISR within 60 s of the last heal")
        return False

    async def _recovered(self) -> None:
        """Wait until every partition takes writes again, for as long as a partition may before it counts as stalled."""
        healed_ns = self._bench.clock.monotonic_ns()
        users, partitions = self._settings.users, self._settings.partitions
        written = frozenset(stream % partitions for stream in range(users)) & self._load.written_partitions()

        async def flowing() -> bool:
            return self._load.is_over or written <= self._load.acknowledged_since(healed_ns)

        # a little longer than the bound, so that the evidence shows when the bound is exceeded
        timeout_ms = ms_of_seconds(self._settings.asked.stalled_after_s) + RECOVERY_MARGIN_MS
        await until(flowing, clock=self._bench.clock, timeout_ms=timeout_ms, interval_ms=100)

    async def _final_read(self) -> None:
        bench, settings = self._bench, self._settings
        final = FinalState(settings.topic, settings.partitions, self._observer, bench.clock)
        try:
            final.sentinels(await self._load.sentinels())
            await final.replicas(SETTLED_MS)
            for problem in await self._load.final_read(final.partitions):
                self._record.problem(problem)
        finally:
            below = await producer_ids_below(self._deployment.zookeeper_address)
            ids = await topic_ids(self._observer, settings.topic)
            self._record.update(final=final.partitions, final_topic_ids=ids, producer_ids_below=below)

    def _complete(self) -> bool:
        return not self._record.model.problems and all(each.status == "ok" for each in self._record.model.final)

    async def _wind_down(self) -> None:
        """Undo and stop everything, even if a step fails. Each step has a time limit."""
        progress = self._bench.progress
        with self._phase(STOP):
            if self._injector is not None:
                await self._injector.heal_all()
            await self._open_links()
            await self._load.stop()
            self._live.ended()
            self._resources.sample_last(running(self._bench.supervisor.children))
            try:
                self._record.update(harness=await harness_health(self._deployment, self._observer, self._lag))
            except (OSError, LinkError) as error:
                progress.note(f"the harness's own health could not be read: {error!r}")
            problems = await self._deployment.collect(self._record.model.final, self._record.model.topics)
            killed = await self._deployment.stop()
            for problem in (*problems, *(f"broker {each} did not stop cleanly and was killed" for each in killed)):
                self._record.problem(problem)

    async def _open_links(self) -> None:
        """Remove what an interrupted fault may have left on the links, so that the brokers can stop cleanly."""
        if self._deployment.is_proxied:
            try:
                await asyncio.to_thread(self._deployment.links.reset)
            except LinkError as error:
                logger.warning("the links could not be opened: %s", error)

    @contextmanager
    def _phase(self, name: str, detail: str = "") -> Iterator[None]:
        self._bench.progress.phase(name, detail)
        with self._record.phase(name):
            self._live.write()
            yield
