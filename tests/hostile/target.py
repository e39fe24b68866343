"""One broker to be hurt: a process of its own with real sockets and files, ZooKeeper in its memory.

Owns the process, its start and end. What a broker does under attack needs no Java; what ZooKeeper itself does is tested
where a real one runs. Does not own what is sent (the tests), nor how the broker fares (``absence``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from cluster.broker.housekeeping import MEMORY_INTERVAL_MS
from cluster.broker.main import THREAD_SWITCH_S, give_back, log_paced
from cluster.broker.node import Node, Seams
from cluster.broker.rules import Rules
from cluster.config.broker import validate
from cluster.metadata.memory import MemoryStore, MemoryTree
from cluster.process.child import ChildChannel
from cluster.process.garbage import Garbage
from cluster.process.handle import Child
from cluster.process.supervisor import Supervisor
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from cluster.seams.randomness import derive
from cluster.seams.turn_selector import TurnSelector
from tests.hostile.pace import slowness

HOST = "127.0.0.1"
START_S = 60.0
STOP_S = 20.0


#: Turns of the loop that are written down: of how much processor time of this machine, in seconds.
NOTED_TURN_S = 0.005


class TurnTimer(TurnSelector):
    """Notes how much processor time each turn of the loop takes, in seconds of the reference machine (``pace``).

    What a busy machine or a slow one adds to it is not the broker's.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        # Open from the beginning: when no file can be opened, that is no reason to stop.
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._begun = time.thread_time()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        turn_s = time.thread_time() - self._begun
        if turn_s >= NOTED_TURN_S:
            os.write(self._descriptor, b"%.6f\n" % (turn_s / slowness()))
        found = super().select(timeout)
        self._begun = time.thread_time()
        return found


class Target:
    """The broker as its attackers see it."""

    def __init__(self, child: Child, ports: Mapping[str, int], directory: Path, supervisor: Supervisor) -> None:
        self.child = child
        self._supervisor = supervisor
        self.port = ports["CLIENTS"]
        self.peer_port = ports["PEERS"]
        self.directory = directory
        self.process = psutil.Process(child.pid)

    def __repr__(self) -> str:
        return f"Target(port {self.port}, {self.directory})"

    def start_beside(self, name: str, function: str, arguments: Mapping[str, Any]) -> Child:
        """Another process, which ends with the broker at the latest."""
        return self._supervisor.start_python(name, function, arguments, str(self.directory / f"{name}.log"))

    def log(self) -> str:
        """What the broker has logged."""
        return (self.directory / "process.log").read_text(errors="replace")

    def turns(self) -> list[float]:
        """The processor time of each long turn of its loop so far, in seconds of the reference machine."""
        path = self.directory / "turns"
        return [float(line) for line in path.read_text().splitlines()] if path.exists() else []

    def memory_bytes(self) -> int:
        """Its resident memory."""
        return int(self.process.memory_info().rss)

    def memory_at_rest_bytes(self) -> int:
        """The least that it has while nobody asks for anything: what it gives back is gone by then."""
        deadline = time.monotonic() + 1.5 * MEMORY_INTERVAL_MS / 1000
        least = self.memory_bytes()
        while time.monotonic() < deadline:
            time.sleep(0.05)
            least = min(least, self.memory_bytes())
        return least


@contextmanager
def target(directory: Path, descriptors: int | None = None, **properties: str) -> Iterator[Target]:
    """A broker that is up; properties with underscores for dots. Fails if it died meanwhile.

    ``descriptors``: how many files and sockets it may have open.
    """
    arguments = {
        "directory": str(directory),
        "descriptors": descriptors,
        "properties": {key.replace("_", "."): value for key, value in properties.items()},
    }
    log = str(directory / "process.log")
    with Supervisor(str(directory)) as supervisor:
        child = supervisor.start_python("target", "tests.hostile.target:serve", arguments, log)
        found = Target(child, child.wait_message(START_S)["ports"], directory, supervisor)
        yield found
        assert child.is_running(), found.log()[-5000:]
        child.terminate()
        assert child.wait(STOP_S) == 0, found.log()[-5000:]


def serve(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """The entry of the process: one broker until SIGTERM. It exits with 1 if the broker says that it cannot go on."""
    log_paced(logging.StreamHandler())
    sys.setswitchinterval(THREAD_SWITCH_S)
    directory = arguments["directory"]
    if arguments["descriptors"] is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (arguments["descriptors"], arguments["descriptors"]))

    turns = TurnTimer(f"{directory}/turns")
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(turns)) as runner:
        raise SystemExit(runner.run(_serve(directory, arguments["properties"], channel, turns)))


async def _serve(directory: str, properties: Mapping[str, str], channel: ChildChannel, turns: TurnTimer) -> int:
    config = validate(
        {
            "broker.id": "1",
            "listeners": f"CLIENTS://{HOST}:0,PEERS://{HOST}:0",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,PEERS:PLAINTEXT",
            "inter.broker.listener.name": "PEERS",
            "zookeeper.connect": "memory",
            "log.dirs": f"{directory}/data",
            **properties,
        }
    )
    stopping = asyncio.Event()
    failures: list[Exception] = []

    def failed(error: Exception) -> None:
        failures.append(error)
        stopping.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    storage = OsStorage()
    storage.makedirs(f"{directory}/node")
    clock = SystemClock()
    garbage = Garbage(asyncio.get_running_loop(), clock.monotonic_ns)
    seams = Seams(
        clock,
        derive(1, "broker", 1),
        AsyncioTransport(turns),
        MemoryStore(MemoryTree()),
        storage,
        give_back_memory=partial(give_back, garbage),
    )
    node = Node(config, Rules(), seams, f"{directory}/node", failed)
    ports = await node.bind()
    await node.start()
    garbage.begin()
    channel.ready({"ports": ports})
    await stopping.wait()
    await node.stop(controlled=not failures)
    return 1 if failures else 0
