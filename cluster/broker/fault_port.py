"""A port through which experiments break the disk and the clock of this process, and take its memory. It is off unless
configured.

Owns the requests, ``{"do": NAME, ...}``, on 127.0.0.1 alone (``cluster.seams.json_port``). What a switch does is the
disk's (``cluster.seams.breakable_disk``), the clock's and the balloon's (``cluster.seams.memory_balloon``).
"""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cluster.config.broker import BrokerConfig
from cluster.seams.breakable_disk import RECORD, BreakableDisk
from cluster.seams.breakable_storage import BreakableStorage
from cluster.seams.clock import Clock, SystemClock
from cluster.seams.disk_fault import CALLS, DiskFault
from cluster.seams.json_port import JsonPort
from cluster.seams.memory_balloon import MemoryBalloon
from cluster.seams.os_storage import OsStorage
from cluster.seams.power_loss import POWER_LOSS
from cluster.seams.randomness import derive
from cluster.seams.settable_clock import SettableClock
from cluster.seams.storage import Storage
from cluster.seams.units import seconds_of_ms, whole_ms_of_ns

logger = logging.getLogger(__name__)


class FaultPort:
    """Serves from its creation until ``close``. Raises ``OSError`` if the port is taken."""

    def __init__(self, disk: BreakableDisk, clock: SettableClock, node_directory: str, port: int) -> None:
        self._disk = disk
        self._clock = clock
        self._balloon = MemoryBalloon()
        self._node_directory = node_directory
        self._actions: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "fail": self._fail,
            "delay-syncs": self._delay_syncs,
            "heal": self._heal,
            "see": self._see,
            "lose-power": self._lose_power,
            "set-clock": self._set_clock,
            "take-memory": self._take_memory,
            "give-memory": self._give_memory,
        }
        self._port = JsonPort(self.answer, port)
        self.port = self._port.port

    def __repr__(self) -> str:
        return f"FaultPort({self.port}, {self._disk!r})"

    def close(self) -> None:
        """Accept nothing anymore."""
        self._port.close()

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out a request. Raises ``ValueError``, ``KeyError`` or ``TypeError`` if it is not one, or ``ValueError``
        after its ``until_ns`` (monotonic): who asked has given up, and counts the process as well."""
        action = self._actions[request["do"]]
        if action != self._see:
            if self._clock.monotonic_ns() > int(request.get("until_ns", sys.maxsize)):
                raise ValueError("it was asked too late")
            logger.warning("the fault port is asked to %s", json.dumps(request))
        return action(request)

    def _fail(self, request: Mapping[str, Any]) -> dict[str, Any]:
        calls = frozenset(request.get("calls") or CALLS)
        if not calls <= frozenset(CALLS):
            raise ValueError(f"unknown calls: {sorted(calls - frozenset(CALLS))}")
        number = getattr(errno, str(request["errno"]))
        random = derive(int(request["seed"]), "disk fault")
        self._disk.fault = DiskFault(calls, str(request.get("word", "")), number, random)
        return self._seen()

    def _delay_syncs(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._disk.sync_delay_s = seconds_of_ms(max(0, int(request["delay_ms"])))
        return self._seen()

    def _heal(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        self._disk.fault = None
        return self._seen()

    def _set_clock(self, request: Mapping[str, Any]) -> dict[str, Any]:
        ahead_ms, drift_ppm = int(request.get("ahead_ms", 0)), int(request.get("drift_ppm", 0))
        self._clock.skew.set(ahead_ms, drift_ppm, self._clock.monotonic_ns())
        return self._seen()

    def _take_memory(self, request: Mapping[str, object]) -> dict[str, object]:
        """All but so much. The answer may not come: what asks for more than there is halts the process."""
        self._balloon.fill(max(0, int(str(request["spare_kb"]))) * 1024)
        return {}

    def _give_memory(self, _request: Mapping[str, object]) -> dict[str, object]:
        self._balloon.release()
        return {}

    def _see(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        return self._seen()

    def _seen(self) -> dict[str, Any]:
        disk = self._disk
        return {
            "failed_calls": sum(disk.failed.values()),
            "syncs": disk.syncs,
            "delayed_syncs": disk.delayed_syncs,
            "longest_sync_ms": whole_ms_of_ns(disk.longest_sync_ns),
            "last_sync_ms": whole_ms_of_ns(disk.last_sync_ns),
            "is_well": disk.fault is None and disk.sync_delay_s == 0,
            "unsynced_bytes": sum(disk.unsynced().values()),
            # both at once, so that the difference can be compared with another process's
            "wall_ms": self._clock.wall_ms(),
            "monotonic_ns": self._clock.monotonic_ns(),
        }

    def _lose_power(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """There is no answer."""
        loss = self._disk.lose_power(derive(int(request["seed"]), "power loss"), str(request.get("word", "")))
        OsStorage().write_atomic(os.path.join(self._node_directory, POWER_LOSS), loss.as_text().encode())
        os.kill(os.getpid(), signal.SIGKILL)
        return {}


def breakable_seams(
    config: BrokerConfig, node_directory: str, storage: Storage
) -> tuple[Storage, Clock, FaultPort | None]:
    """The storage and the clock of a broker process, which are the machine's own unless there is to be a fault port.

    Raises ``OSError`` if the port is taken.
    """
    port = config["gapless.fault.port"]
    if port < 0:
        return storage, SystemClock(), None
    disk = BreakableDisk(config.data_directory, partial(storage.append_line, os.path.join(node_directory, RECORD)))
    clock = SettableClock()
    return BreakableStorage(storage, disk), clock, FaultPort(disk, clock, node_directory, port)
