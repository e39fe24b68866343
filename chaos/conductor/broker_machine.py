"""Breaks and inspects the disk, clock and memory of one broker: by its fault port, its files and its process.

Owns these accesses. Does not own what is broken, or when (``chaos.faults``). Every access blocks and therefore runs in
a thread. Files are changed only while no broker process has them open, except for a flipped bit.
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
#: A broker starts to carry out a request within this time, or not at all.
_CARRIED_OUT_S = 2.0
#: The file that has a broker's standard error.
OUTPUT = "process.log"
#: The last line that native code (a codec) prints when it cannot allocate memory.
_REFUSED = re.compile(rb"memory allocation of \d+ bytes failed$")
#: How long a process may take to exit after it was told to lose power.
_END_MS = 10_000


class NotOurs(Exception):
    """Gapless did not start this broker, so it does not limit its memory."""


class NoFaultPort(Exception):
    """The broker has no fault port, so its disk and clock cannot be broken."""


class BrokerMachine:
    """``Machine`` for one broker.

    ``listeners`` maps the listener names of the broker's current process to ``host:port``. ``FAULTS`` is absent if the
    broker has no fault port; the methods that need it then raise NoFaultPort.
    """

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
        # the wall time that the broker would report if its clock agreed with ours
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
        with contextlib.suppress(ConnectionError, TimeoutError):  # the process has exited, or is exiting
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
        with contextlib.suppress(OSError):  # the process has exited, or lacks the memory to answer
            await self._ask({"do": "take-memory", "spare_kb": spare_kb})

    async def give_memory(self) -> None:
        # lift the limit from outside first: the broker needs memory for a thread to serve the request
        await asyncio.to_thread(self._child().lift_memory_limit)
        await self._do({"do": "give-memory"})

    async def memory_limit(self) -> int | None:
        return await asyncio.to_thread(self._child().memory_limit)

    def _child(self) -> Child:
        """The broker's process. Raises NotOurs if gapless did not start it."""
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
        """The paths of all files in the data directory and below whose names end with ``ending``."""
        below = (os.path.join(where, name) for where, _, names in os.walk(self._path("")) for name in names)
        return [path for path in below if path.endswith(ending)]

    async def _do(self, request: Mapping[str, Any]) -> None:
        if await self._ask(request) is None:
            raise ConnectionResetError(f"broker {self._broker_id} did not answer at its fault port")

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self._address:
            raise NoFaultPort(f"broker {self._broker_id} has no fault port (gapless.fault.port)")
        # A broker that another fault has paused reads the request when it resumes. By then it must ignore it, since
        # this call has failed and nothing would heal the fault.
        until_ns = self._clock.monotonic_ns() + ns_of_seconds(_CARRIED_OUT_S)
        return await asyncio.to_thread(ask_json, self._address, {**request, "until_ns": until_ns}, ASK_S)


def ports_for(schedule: Schedule) -> FixedPorts:
    """The ports of a run's cluster: free ones everywhere, and fault ports if a fault of the schedule needs them."""
    needs = any(FAULTS[kind].needs_fault_port for kind in schedule.kinds())
    return FixedPorts(fault=0) if needs else FREE_PORTS
