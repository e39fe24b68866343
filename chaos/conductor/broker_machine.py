"""Disk, clock and memory of one broker of a run, through its fault port, its files and its process. Owns no decision.

Everything blocks, and so runs in threads. Files are touched while no process has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
from collections.abc import Collection, Mapping
from typing import Any

from chaos.conductor.fixed_ports import FREE_PORTS, FixedPorts
from chaos.conductor.segment_damage import bad_batches, flip_bit, reads_damage
from chaos.faults.breakable import Process
from chaos.faults.catalogue import FAULTS
from chaos.faults.machine import FlippedBit, LostFile, MachineState
from chaos.schedules.model import Schedule
from cluster.broker.loading import LOADED
from cluster.process.handle import Child
from cluster.seams.breakable_disk import RECORD
from cluster.seams.clock import Clock
from cluster.seams.json_port import ask_json
from cluster.seams.os_storage import OsStorage
from cluster.seams.out_of_memory import LINE
from cluster.seams.power_loss import POWER_LOSS, UnsyncedLoss
from cluster.seams.randomness import derive
from cluster.seams.units import ms_of_ns, ns_of_seconds
from verifier.evidence.run_directory import RunDirectory

logger = logging.getLogger(__name__)

#: The name under which a broker reports its fault port (``cluster.broker.main``).
FAULT_PORT = "FAULTS"
ASK_S = 3.0
#: A broker begins to carry out what it is asked within this, or not at all.
_CARRIED_OUT_S = 2.0
#: What a broker writes to its standard error.
OUTPUT = "process.log"
#: The last words of code that is not Python's, a codec's, when it gets no more memory.
_REFUSED = re.compile(rb"memory allocation of \d+ bytes failed$")
#: How long a process may take to end that ends itself.
_END_MS = 10_000


class NotOurs(Exception):
    """The broker is a process of others."""


class NoFaultPort(Exception):
    """The broker has no port by which its disk and its clock could be broken."""


class BrokerMachine:
    """``listeners`` are the addresses of the broker's present process by name; without a fault port it has none of
    that name."""

    def __init__(
        self, broker_id: int, listeners: Mapping[str, str], process: Process, directory: RunDirectory, clock: Clock
    ) -> None:
        self._broker_id = broker_id
        self._address = listeners.get(FAULT_PORT, "")
        self._control = listeners.get("CONTROL", "")
        self._process = process
        self._directory = directory
        self._clock = clock
        self._storage = OsStorage()
        self._node = str(directory.node(broker_id))

    def __repr__(self) -> str:
        return f"<BrokerMachine {self._broker_id} {self._address}>"

    async def fail(self, calls: Collection[str], error: str, seed: int) -> None:
        await self._do({"do": "fail", "calls": sorted(calls), "errno": error, "seed": seed})

    async def heal(self) -> None:
        await self._do({"do": "heal"})

    async def delay_syncs(self, delay_ms: int) -> None:
        await self._do({"do": "delay-syncs", "delay_ms": delay_ms})

    async def set_clock(self, ahead_ms: int, drift_ppm: int) -> None:
        await self._do({"do": "set-clock", "ahead_ms": ahead_ms, "drift_ppm": drift_ppm})

    async def see(self) -> MachineState | None:
        before_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        try:
            said = await self._ask({"do": "see"})
        except OSError as error:
            logger.debug("the fault port of broker %d does not answer: %r", self._broker_id, error)
            return None
        if said is None:
            return None
        # what the time of day would be there if its clock were ours
        expected_ms = ms_of_ns(wall_ns + said["monotonic_ns"] - before_ns)
        return MachineState(
            said["failed_calls"],
            said["syncs"],
            said["delayed_syncs"],
            said["longest_sync_ms"],
            said["last_sync_ms"],
            said["is_well"],
            said["unsynced_bytes"],
            round(said["wall_ms"] - expected_ms),
        )

    async def lose_power(self, seed: int, word: str) -> int:
        with contextlib.suppress(ConnectionError, TimeoutError):  # the process is gone, or on its way
            await self._ask({"do": "lose-power", "seed": seed, "word": word})
        deadline_ms = self._clock.monotonic_ms() + _END_MS
        while self._process.is_running():
            if self._clock.monotonic_ms() > deadline_ms:
                raise TimeoutError(f"broker {self._broker_id} still runs without power")
            await asyncio.sleep(0.01)

        def take() -> int:
            path = os.path.join(self._node, POWER_LOSS)
            lost = UnsyncedLoss.from_text(self._storage.read(path).decode()).take(self._storage)
            self._storage.remove(path)
            return lost

        return await asyncio.to_thread(take)

    async def failures(self) -> int:
        def count() -> int:
            try:
                lines = self._storage.read(os.path.join(self._node, RECORD)).splitlines()
            except FileNotFoundError:
                return 0
            return sum("errno" in json.loads(line) for line in lines)

        return await asyncio.to_thread(count)

    async def take_memory(self, spare_kb: int) -> None:
        with contextlib.suppress(OSError):  # it has ended, or cannot even answer
            await self._ask({"do": "take-memory", "spare_kb": spare_kb})

    async def give_memory(self) -> None:
        # from outside first: to be asked, it needs a thread
        await asyncio.to_thread(self._child().lift_memory_limit)
        await self._do({"do": "give-memory"})

    async def memory_limit(self) -> int | None:
        return await asyncio.to_thread(self._child().memory_limit)

    def _child(self) -> Child:
        """The process, if it is ours to limit."""
        if not isinstance(self._process, Child):
            raise NotOurs(f"broker {self._broker_id} was not started by gapless, which limits the memory of no other")
        return self._process

    async def halts(self) -> int:
        def count() -> int:
            try:
                text = self._storage.read(os.path.join(self._node, OUTPUT))
            except FileNotFoundError:
                return 0
            return sum(line.rstrip() == LINE.rstrip() or _REFUSED.match(line) is not None for line in text.splitlines())

        return await asyncio.to_thread(count)

    async def loaded(self) -> Mapping[str, Any]:
        def last() -> Mapping[str, Any]:
            found = [entry for entry in self._directory.read_journal(self._broker_id) if entry.get("event") == LOADED]
            return found[-1] if found else {}

        return await asyncio.to_thread(last)

    async def remove(self, directory: str, endings: Collection[str]) -> list[LostFile]:
        def work() -> list[LostFile]:
            where, found = self._path(directory), []
            for name in self._storage.listdir(where):
                if name.endswith(tuple(endings)):
                    path = os.path.join(where, name)
                    found.append(LostFile(os.path.join(directory, name), len(self._storage.read(path))))
                    self._storage.remove(path)
            return found

        return await asyncio.to_thread(work)

    async def present(self, files: Collection[str]) -> int:
        def count() -> int:
            held = 0
            for name in files:
                try:
                    held += bool(self._storage.read(self._path(name)))
                except OSError:
                    continue
            return held

        return await asyncio.to_thread(count)

    async def remove_directory(self, directory: str) -> None:
        await asyncio.to_thread(self._storage.remove_tree, self._path(directory))

    async def wipe(self) -> int:
        def work() -> int:
            lost = sum(len(self._storage.read(path)) for path in self._files(""))
            for name in self._storage.listdir(self._path("")):
                path = self._path(name)
                (self._storage.remove if os.path.isfile(path) else self._storage.remove_tree)(path)
            return lost

        return await asyncio.to_thread(work)

    async def held_bytes(self) -> int:
        return await asyncio.to_thread(lambda: sum(len(self._storage.read(path)) for path in self._files(".log")))

    async def directories(self, prefix: str) -> tuple[str, ...]:
        names = await asyncio.to_thread(self._storage.listdir, self._path(""))
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    async def segments(self, directory: str) -> int:
        names = await asyncio.to_thread(self._storage.listdir, self._path(directory))
        return sum(name.endswith(".log") for name in names)

    async def flip_bit(self, directory: str, seed: int) -> FlippedBit | None:
        random = derive(seed, "bit")
        return await asyncio.to_thread(flip_bit, self._storage, self._path(directory), random)

    async def bad_batches(self, directory: str) -> int:
        return await asyncio.to_thread(bad_batches, self._storage, self._path(directory))

    async def reads_damage(self, topic: str, partition: int, offset: int) -> bool:
        return await asyncio.to_thread(reads_damage, self._control, topic, partition, offset)

    def _path(self, name: str) -> str:
        return os.path.join(self._node, "data", name)

    def _files(self, ending: str) -> list[str]:
        """Every file of the data directory whose name ends like this."""
        below = (os.path.join(where, name) for where, _, names in os.walk(self._path("")) for name in names)
        return [path for path in below if path.endswith(ending)]

    async def _do(self, request: Mapping[str, Any]) -> None:
        if await self._ask(request) is None:
            raise ConnectionResetError(f"broker {self._broker_id} did not answer at its fault port")

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self._address:
            raise NoFaultPort(f"broker {self._broker_id} has no fault port (gapless.fault.port)")
        # A broker that another fault has paused reads this when it continues, and no one knows of the fault by then.
        until_ns = self._clock.monotonic_ns() + ns_of_seconds(_CARRIED_OUT_S)
        return await asyncio.to_thread(ask_json, self._address, {**request, "until_ns": until_ns}, ASK_S)


def ports_for(schedule: Schedule) -> FixedPorts:
    """Free ports, and fault ports if a fault of this schedule needs them."""
    needs = any(FAULTS[kind].needs_fault_port for kind in schedule.kinds())
    return FixedPorts(fault=0) if needs else FREE_PORTS
