"""Starts, watches and stops the load of a run: Locust processes, and the sentinel and readers of the final phase.

Does not own what these programs do (``loadgen``). What they saw is in their histories.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.conductor.breakable_load import BreakableLoad
from chaos.conductor.final import run_json_program
from chaos.conductor.run_cluster import RunCluster
from chaos.conductor.workbench import Workbench
from chaos.experiment.experiment import Experiment
from chaos.faults.breakable import LoadPart
from cluster.process.supervisor import Child
from cluster.seams.units import seconds_of_ns
from loadgen.command import final_read_command, locust_commands, sentinel_command, shares
from loadgen.group_plan import MEMBERS, parse_members
from loadgen.settings import CONFLUENT, PRODUCERS, READERS, LoadSettings, uncommitted_reader
from verifier.evidence.declared import DeclaredProcess
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_directory import read_json
from verifier.evidence.run_model import FinalPartition
from verifier.evidence.series import SeriesPoint

SENTINEL_DEADLINE_S = 40.0
#: The time that a process gets to log what its threads are doing, before it is killed.
LAST_WORDS_S = 0.5
FINAL_READ_DEADLINE_S = 120.0
#: A final reader gets another second for each of this many records. Even a slow machine reads several times as fast.
FINAL_READ_RECORDS_PER_S = 10_000
SENTINEL = "sentinel"
#: Added to a tool's own deadline, for its start and end.
MARGIN_S = 15.0


@dataclass(frozen=True, slots=True)
class LoadStatus:
    """The load's latest figures. ``backlog`` counts the records that are due and not handed to the client yet."""

    acked: int = 0
    acked_per_s: float = 0.0
    read: int = 0
    unknown: int = 0
    failed: int = 0
    errors: int = 0
    fatal: int = 0
    backlog: int = 0

    def sentence(self) -> str:
        """The figures for the live line."""
        fatal = f"  fatal {self.fatal}" if self.fatal else ""
        return (
            f"acked {self.acked:,} ({self.acked_per_s:,.0f}/s)  read {self.read:,}  waiting {self.backlog:,}  "
            f"errors {self.errors:,}{fatal}"
        )


class Load:
    """The Locust processes of a run: one or more of producers, one of readers for each client, and those of members."""

    def __init__(self, settings: Experiment, bench: Workbench, deployment: RunCluster, run_id: int) -> None:
        self._settings = settings
        self._bench = bench
        self._deployment = deployment
        self._run_id = run_id
        self._children: dict[str, Child] = {}
        self._stop_timeouts_s: dict[str, float] = {}
        self._told_dead: set[str] = set()
        self._stopped = False

    @property
    def declared(self) -> list[DeclaredProcess]:
        """The processes that must leave a history, including those of the final phase. Known before any has started."""
        asked = self._settings.asked
        producers = [
            DeclaredProcess(name, "producers", asked.client, first_stream, streams)
            for name, first_stream, streams in shares(self._load_settings())
        ]
        readers = [DeclaredProcess(f"{READERS}-{client}", "readers", client) for client in asked.readers]
        spec = self._settings.workload.members
        places = [] if spec is None else parse_members(spec).processes()
        members = [DeclaredProcess(name, "members", client) for name, client, _ in places]
        final = [DeclaredProcess(f"final-{client}", "final", client) for client in asked.final_readers]
        return [*producers, *readers, *members, DeclaredProcess(SENTINEL, "sentinel", CONFLUENT), *final]

    @property
    def output_topic(self) -> str | None:
        """The topic that the load writes in addition to the run's own, or None."""
        spec = self._settings.workload.members
        return OUTPUT_TOPIC if spec is not None and parse_members(spec).transform else None

    @property
    def processes(self) -> list[str]:
        """Names of the processes that were started."""
        return list(self._children)

    @property
    def breakable(self) -> BreakableLoad:
        """The processes as faults see them."""
        return BreakableLoad(self._bench.directory, self._children_of, self._told_dead.add)

    def _children_of(self, part: LoadPart) -> Mapping[str, Child]:
        group = {"members": MEMBERS, "readers": READERS, "producers": PRODUCERS}[part]
        return {name: self._children[name] for name in self._of(group)}

    def written_partitions(self) -> frozenset[int]:
        """The partitions that are still written: those of the streams whose process runs."""
        shared = shares(self._load_settings())
        running = [(first, count) for name, first, count in shared if self._children[name].is_running()]
        return frozenset(
            stream % self._settings.partitions for first, count in running for stream in range(first, first + count)
        )

    async def start(self) -> None:
        """Write the settings file and start the Locust processes."""
        directory = self._bench.directory
        settings = self._load_settings()
        for command in locust_commands(settings, directory, self._settings.web_port):
            log_path = str(directory.loadgen_dir / f"{command.name}.log")
            self._stop_timeouts_s[command.name] = command.stop_timeout_s
            self._children[command.name] = await asyncio.to_thread(
                self._bench.supervisor.start_program, command.name, command.argv, command.env, command.cwd, log_path
            )

    async def stop(self) -> list[str]:
        """Interrupt the processes, so that users flush and Locust writes its report, and wait for them.

        Returns a line for each process that failed; an empty list if the load was already stopped.
        """
        if self._stopped:
            return []
        self._stopped = True
        problems: list[str] = []
        # producers first, all at once, so that readers and members see what they flush
        for names in (self._of(PRODUCERS), [*self._of(READERS), *self._of(MEMBERS)]):
            for stopped in await asyncio.gather(*map(self._stop_one, names)):
                problems += stopped
        return problems

    async def _stop_one(self, name: str) -> list[str]:
        child = self._children[name]
        if not child.is_running():
            return self._died(name)
        await asyncio.to_thread(child.interrupt)
        if await asyncio.to_thread(child.wait, self._stop_timeouts_s[name]) is not None:
            return []
        # on this signal, the process logs what each of its threads is doing (loadgen.locustfile)
        child.send_signal(signal.SIGUSR2)
        await asyncio.to_thread(child.wait, LAST_WORDS_S)
        await asyncio.to_thread(child.kill)
        return [f"load process {name} did not end in time and was killed; its log says what it was doing"]

    def _of(self, group: str) -> list[str]:
        return sorted(name for name in self._children if name.startswith(group))

    @property
    def is_over(self) -> bool:
        """Whether all producer processes or all reader processes have exited. Then there is nothing left to break."""
        groups = [[self._children[name] for name in self._of(group)] for group in (PRODUCERS, READERS)]
        return any(children and not any(child.is_running() for child in children) for children in groups)

    def died(self) -> list[str]:
        """A line for each process that exited unexpectedly. Each is reported once, here or by ``stop``."""
        return [] if self._stopped else [problem for name in self._children for problem in self._died(name)]

    def _died(self, name: str) -> list[str]:
        child = self._children[name]
        if child.is_running() or name in self._told_dead:
            return []
        self._told_dead.add(name)
        return [f"load process {name} died (exit status {child.exit_code})"]

    def web_address(self) -> str | None:
        """The address of the load's web interface; None without one, or until it listens."""
        try:
            return str(read_json(self._bench.directory.web_json)["url"])
        except (OSError, ValueError, KeyError):
            return None

    async def status(self) -> LoadStatus:
        """The sum of the latest figures of all processes. ``read`` is that of the reader that is furthest behind."""
        points = [point for name in self._children if (point := self._point(name)) is not None]
        reading = [self._point(name) for name in self._of(READERS)]
        return LoadStatus(
            acked=sum(point.total_acked for point in points),
            acked_per_s=sum(
                point.acked / seconds_of_ns(point.interval_ns) for point in points if point.interval_ns > 0
            ),
            read=min((0 if point is None else point.total_read for point in reading), default=0),
            unknown=sum(point.total_unknown for point in points),
            failed=sum(point.total_failed for point in points),
            errors=sum(point.total_errors for point in points),
            fatal=sum(point.total_fatal for point in points),
            backlog=sum(point.backlog for point in points),
        )

    def acknowledged_since(self, time_ns: int) -> frozenset[int]:
        """The partitions in which a record was acknowledged after ``time_ns``, by the latest figures."""
        points = [point for name in self._children if (point := self._point(name)) is not None]
        return frozenset(
            int(partition) for point in points for partition, at_ns in point.last_acked_ns.items() if at_ns > time_ns
        )

    async def sentinels(self) -> Mapping[int, int]:
        """Have a new producer write a sentinel to each partition. Returns the acknowledged offsets by partition."""
        bootstrap = self._deployment.topology.bootstrap(PRODUCERS)
        argv = sentinel_command(self._bench.directory, bootstrap, SENTINEL_DEADLINE_S)
        _, found = await self._tool(SENTINEL, argv, SENTINEL_DEADLINE_S)
        return {int(partition): offset for partition, offset in found.items() if isinstance(offset, int)}

    async def final_read(self, partitions: Sequence[FinalPartition]) -> list[str]:
        """Have a new reader of each client read every partition from offset 0 through its sentinel, concurrently.

        Returns a line for each reader that failed.
        """
        through = {each.partition: each.sentinel_offset for each in partitions if each.sentinel_offset is not None}
        if not through:
            return ["unavailable: no sentinel was acknowledged, so the final read has no end"]
        bootstrap = self._deployment.topology.bootstrap(READERS)
        deadline_s = FINAL_READ_DEADLINE_S + sum(through.values()) / FINAL_READ_RECORDS_PER_S

        async def read(client: str) -> list[str]:
            argv = final_read_command(
                self._bench.directory,
                bootstrap,
                json.dumps(through),
                deadline_s,
                client,
                self._settings.asked.final_patience_s,
            )
            code, _ = await self._tool(f"final-read-{client}", argv, deadline_s)
            reached = f"unavailable: the final read by {client} did not reach every sentinel"
            return [] if code == 0 else [f"{reached} (exit status {code})"]

        found = await asyncio.gather(*map(read, self._settings.asked.final_readers))
        return [problem for problems in found for problem in problems]

    async def _tool(self, name: str, argv: list[str], deadline_s: float) -> tuple[int | None, dict[str, object]]:
        bench = self._bench
        log_path = str(bench.directory.loadgen_dir / f"{name}.log")
        return await run_json_program(bench.supervisor, bench.storage, name, argv, log_path, deadline_s + MARGIN_S)

    def _load_settings(self) -> LoadSettings:
        settings = self._settings
        return LoadSettings(
            run_id=self._run_id,
            producers_bootstrap=self._deployment.topology.bootstrap(PRODUCERS),
            readers_bootstrap=self._deployment.topology.bootstrap(READERS),
            topic=settings.topic,
            partitions=settings.partitions,
            client=settings.asked.client,
            producers=settings.users,
            readers=settings.asked.readers,
            final_readers=settings.asked.final_readers,
            isolated=settings.workload.is_transactional,
            uncommitted_reader=uncommitted_reader(settings.asked.readers),
            processes=settings.asked.load_processes,
            producer_config=dict(settings.producer_config.as_text()),
            consumer_config=dict(settings.consumer_config.as_text()),
            **settings.workload.load_fields(),
        )

    def _point(self, name: str) -> SeriesPoint | None:
        try:
            return SeriesPoint.from_json(read_json(self._bench.directory.status_json(name)))
        except (OSError, ValueError, TypeError):
            return None
