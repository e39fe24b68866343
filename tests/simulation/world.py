"""World: the cluster of one simulation, seen from outside, with everything in it noted and counted.

Owns the event log, the delays of the network, the observation of the brokers' decisions, and the lives of brokers that
may fail to start. Does not own what goes wrong when (``nemesis``) nor what must hold (``oracle``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from typing import Any
from uuid import UUID

from cluster.broker.control.membership.membership import BrokerIdTaken
from cluster.broker.rules import Rules
from cluster.log.appending import AppendInfo
from cluster.log.errors import LogError
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode
from cluster.replication.leader import LeaderState
from cluster.seams.clock import Clock
from cluster.seams.memory_storage import Survivors
from cluster.seams.randomness import derive
from tests.simulation.clocks import JumpingClock
from tests.simulation.events import EventLog, Traffic
from tests.simulation.faulty_storage import FaultyStorage
from tests.simulation.ledger import Appended, Cut, Ledger, entries_of, held
from tests.simulation.nodes import Process
from tests.simulation.observer import StateObserver
from tests.simulation.retention import RETENTION, looked_at
from tests.simulation.seen import SeenCluster, TopicPartition
from tests.simulation.topology import Topology
from tests.support.virtual_time import OWNER

#: A broker that could not start is tried again after a while, as its supervisor would.
RESTART_S = 0.5
#: What a life still does this long after its end, it does for good.
LEFT_AFTER_S = 0.1


class World(SeenCluster):
    """``rules`` are those of every broker, observed on their way."""

    def __init__(self, topology: Topology, rules: Rules) -> None:
        self.topology = topology
        self.events = EventLog()
        self.traffic = Traffic()
        self.problems: list[tuple[str, str]] = []
        #: (partition, topic id) -> what was appended to it
        self._ledgers: dict[tuple[TopicPartition, UUID | None], Ledger] = {}
        #: (partition, leader epoch, base offset) -> when a transactional batch was appended there.
        self.appended_at: dict[tuple[TopicPartition, int, int], float] = {}
        #: Extra milliseconds of a direction.
        self.slow: dict[tuple[str, str], float] = {}
        #: Those that shut down.
        self._leaving: dict[int, Process] = {}
        #: Lives that ended after their disk had failed: what they still say of it is no news.
        self._ended_by_disk: set[object] = set()
        self._delays = derive(topology.seed, "delays")
        self._tasks: set[asyncio.Task[None]] = set()
        super().__init__(topology.brokers, topology.properties, rules, self._delay, topology.seed)
        self.clocks = {broker_id: JumpingClock() for broker_id in self.broker_ids}
        self.storages = {each: FaultyStorage(each, self.events, self._start_moved) for each in self.broker_ids}
        self.observer = StateObserver(
            self.tree,
            lambda name, text: self.problems.append((name, text)),
            self.events.count,
            unclean_allowed=topology.is_unclean,
        )

    def _delay(self, source: str, destination: str, size_bytes: int) -> float:
        delay_ms = self._delays.choice((0.1, 0.3, 0.3, 2.0)) + self.slow.get((source, destination), 0.0)
        self.traffic.sent(source, destination, size_bytes, delay_ms)
        return delay_ms

    def clock_of(self, broker_id: int) -> Clock:
        return self.clocks[broker_id]

    def rules_of(self, broker_id: int) -> Rules:
        rules = super().rules_of(broker_id)

        def append(
            log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
        ) -> AppendInfo:
            ledger = self._ledger(log)
            batch_id = (header.producer_id, header.producer_epoch, header.base_sequence)
            entries = entries_of(batch)
            due = Appended(log.log_end_offset, leader_epoch, header.record_count, log.log_start_offset, entries)
            ledger.leaders.setdefault(leader_epoch, set()).add(broker_id)
            try:
                info = rules.append(log, batch, header, leader_epoch, now_ms)
            except LogError as error:
                self.events.count(f"refused {error.error_code.name}")
                if error.error_code is ErrorCode.KAFKA_STORAGE_ERROR:
                    # It may be in the log all the same, and be found there by the next life.
                    ledger.append(batch_id, due)
                raise
            if info.duplicate:
                self.events.count(_kind_of_duplicate(log, info, leader_epoch))
            else:
                ledger.append(batch_id, due._replace(base_offset=info.first_offset))
                ledger.descends(log.epochs.entries)
                if header.is_transactional:
                    self.appended_at[(log.topic, log.partition), leader_epoch, info.first_offset] = self.loop.now
            return info

        def lead(**facts: Any) -> LeaderState:
            self._leads(broker_id, (facts["topic"], facts["partition"]), facts["leader_epoch"])
            return rules.lead(**facts)

        def truncate(log: PartitionLog, offset: int) -> int:
            below = "below its start" if offset < log.log_start_offset else "above its start"
            removed = rules.truncate(log, offset)
            self.events.count(f"truncation {below}, {_size(removed)} records")
            return removed

        return replace(rules, append=append, lead=lead, truncate=truncate)

    # What leaders hold

    def _ledger(self, log: PartitionLog) -> Ledger:
        return self._ledgers.setdefault(((log.topic, log.partition), log.topic_id), Ledger())

    def ledger(self, key: TopicPartition) -> Ledger:
        """That of a partition as it is now."""
        registration = self.registration(key[0])
        topic_id = None if registration is None else registration.topic_id
        return self._ledgers.setdefault((key, topic_id), Ledger())

    def former_ledgers(self, key: TopicPartition) -> list[Ledger]:
        """Those of former topics of its name."""
        now = self.ledger(key)
        return [ledger for (known, _), ledger in self._ledgers.items() if known == key and ledger is not now]

    def _leads(self, broker_id: int, key: TopicPartition, leader_epoch: int) -> None:
        """A broker begins to lead: if it does so after an unclean election, what it holds now is all."""
        elections = self.observer.unclean.get(key)
        if not elections:
            return
        epoch, leader = elections[-1]
        ledger = self.ledger(key)
        if broker_id == leader and leader_epoch >= epoch and all(cut.epoch != epoch for cut in ledger.cuts):
            batches = held(self.log_bytes(broker_id, *key))
            ledger.cuts.append(Cut(epoch, batches))
            self.events.note("oracle", f"{key[0]}-{key[1]} is left with {len(batches)} batches in epoch {epoch}")

    def _start_moved(self, broker_id: int, entry: dict[str, Any]) -> None:
        """A log begins later: if nobody asked for it, retention must have been right, by what is on the disk."""
        process = self.processes.get(broker_id) or self._leaving.get(broker_id)
        # Not a ghost: what a life writes after its end is on no disk.
        if process is None or process.life != OWNER.get() or entry["reason"] not in RETENTION:
            return
        log = process.node.logs.get(entry["topic"], entry["partition"])
        replica = process.node.replicas.partitions.get((entry["topic"], entry["partition"]))
        assert log is not None
        high_watermark = -1 if replica is None else replica.high_watermark
        with self.storages[broker_id].well():
            texts = looked_at(log, entry, high_watermark, self.storages[broker_id], self.clocks[broker_id].wall_ms())
        for text in texts:
            self.problems.append(("retention", f"broker {broker_id}, {log.topic}-{log.partition}: {text}"))
        ledger = self._ledger(log)
        ledger.retained = max(ledger.retained, log.log_start_offset)

    # Lives

    def background(self, work: Callable[[], object], name: str) -> asyncio.Task[None]:
        """Run something that ends with the simulation; what it raises is a problem of the simulation itself."""

        async def guarded() -> None:
            result = work()
            if asyncio.iscoroutine(result):
                await result

        task = asyncio.get_running_loop().create_task(guarded(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.problems.append(("broken", f"{task.get_name()}: {type(error).__name__}: {error}"))

    def is_running(self, broker_id: int) -> bool:
        return broker_id in self.processes

    async def raise_up(self, broker_id: int) -> None:
        """Start a broker that does not run, and again until it has started or was killed meanwhile."""
        while True:
            self.events.note("nemesis", f"start {broker_id}")
            try:
                await self.start(broker_id)
                return
            except (TimeoutError, BrokerIdTaken) as error:
                self.events.note(f"broker {broker_id}", f"could not start: {type(error).__name__}")
            except ConnectionAbortedError:
                return
            except (LogError, OSError) as error:
                if not self.has_failed_disk(broker_id):
                    raise
                self.events.note(f"broker {broker_id}", f"could not start: {error}")
            process = self.processes.get(broker_id)
            if process is None:
                return
            self.strike(broker_id, "failed start")
            await asyncio.sleep(RESTART_S)
            if self.is_running(broker_id):
                return

    # Disks that fail

    def has_failed_disk(self, broker_id: int) -> bool:
        """Whether a disk has failed at something in this life of its broker."""
        return self.storages[broker_id].failed > 0

    def broker_failed(self, broker_id: int, error: Exception) -> None:
        """It ends, and its warden starts it again; only without a fault of its disk is that a finding."""
        life = OWNER.get()
        if life in self._ended_by_disk:
            return
        process = self.processes.get(broker_id)
        if process is None or not self.has_failed_disk(broker_id):
            super().broker_failed(broker_id, error)
            return

        def end() -> None:
            self.background(lambda: self._end_failed(process, error), f"end of {broker_id}")

        # Not in the context of the life that ends.
        asyncio.get_running_loop().call_soon(end, context=Context())

    def _end_failed(self, process: Process, error: Exception) -> None:
        broker_id = process.life[0]
        if self.processes.get(broker_id) is not process:
            return
        self.events.note(f"broker {broker_id}", f"failed: {error}")
        self.events.count("broker ended by its disk")
        self.strike(broker_id, "end")
        self.background(lambda: self._watch_over(broker_id), f"warden of {broker_id}")

    async def _watch_over(self, broker_id: int) -> None:
        await asyncio.sleep(RESTART_S)
        if not self.is_running(broker_id):
            await self.raise_up(broker_id)

    async def came_back(self, broker_id: int) -> None:
        """Wait until a broker whose disk is well again runs. Logs that it found unreadable need one more start."""
        await self.until(lambda: self.is_running(broker_id) and self.nodes[broker_id].is_started)
        if self.nodes[broker_id].logs._offline:
            self.strike(broker_id, "restart")
            await self.raise_up(broker_id)

    def strike(self, broker_id: int, what: str, survivors: Survivors | None = None) -> None:
        """Kill a broker now; with ``survivors`` the power went too."""
        self.events.note("nemesis", f"{what} {broker_id}")
        before, failed = self._log_sizes(broker_id), self.has_failed_disk(broker_id)
        process = self.kill(broker_id, power_loss=survivors is not None, survivors=survivors)
        lost = before - self._log_sizes(broker_id)
        if lost:
            self.events.note("nemesis", f"{what} {broker_id} lost {lost} bytes of logs")
            self.events.count("unsynced tail lost")
        if failed:
            self._ended_by_disk.add(process.life)
        self._retire(process)
        self.background(lambda: self._bury(process), f"bury {broker_id}")

    async def leave(self, broker_id: int) -> None:
        """A controlled shutdown."""
        self.events.note("nemesis", f"stop {broker_id}")
        process = self._leaving[broker_id] = self.processes[broker_id]
        with contextlib.suppress(LogError):
            await self.stop(broker_id)
        del self._leaving[broker_id]
        self._retire(process)
        self.background(lambda: self._check_left(process), f"look for what {broker_id} left")
        self.events.note("nemesis", f"stopped {broker_id}")

    async def _bury(self, process: Process) -> None:
        await self.bury(process)
        await self._check_left(process)

    async def _check_left(self, process: Process) -> None:
        # What runs for a connection runs on (``cluster.broker.server``), and has its answer from ZooKeeper soon.
        await asyncio.sleep(LEFT_AFTER_S)
        for what in self.left_of(process):
            # What is on its way to it is the network's.
            if "MemoryWires." not in what:
                self.problems.append(("leftover", f"life {process.life} left {what}"))

    def _retire(self, process: Process) -> None:
        counters = process.node.counters
        for name in ("leader_elections", "isr_shrinks", "isr_expands"):
            self.events.count(name.replace("_", " ").rstrip("s"), getattr(counters, name))
        self.events.count("truncated record", counters.truncated_records)
        for cause, times in counters.truncations.items():
            self.events.count(f"truncation: {cause}", times)

    def retire_all(self) -> None:
        """Count what those did that still run."""
        for broker_id in sorted(self.processes):
            self._retire(self.processes[broker_id])

    def log_bytes(self, broker_id: int, topic: str, partition: int = 0) -> bytes:
        with self.storages[broker_id].well():
            return super().log_bytes(broker_id, topic, partition)

    def _log_sizes(self, broker_id: int) -> int:
        return sum(len(self.log_bytes(broker_id, *key)) for key in self.everything)


def _size(records: int) -> str:
    return str(records) if records < 2 else "2 to 9" if records < 10 else "10 or more"


def _kind_of_duplicate(log: PartitionLog, info: AppendInfo, leader_epoch: int) -> str:
    if info.first_offset < 0:
        return "duplicate below the window"
    epoch = max((entry.epoch for entry in log.epochs.entries if entry.start_offset <= info.first_offset), default=-1)
    return "duplicate after failover" if epoch < leader_epoch else "duplicate from the cache"
