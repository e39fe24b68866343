"""LocalCluster: real broker processes and a real ZooKeeper on loopback, without proxies, for integration tests.

Owns starting, killing and restarting them under a Supervisor. A restarted broker binds the ports it had.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from cluster.config.profiles import CHAOS
from cluster.process.java import find_java
from cluster.process.supervisor import Child, Supervisor
from cluster.process.zookeeper import ZooKeeperHandle, start_zookeeper

HOST = "127.0.0.1"
LISTENERS = ("CLIENTS", "PEERS")
START_S = 30.0


class LocalCluster:
    """``properties`` are added to every broker's; ``defects`` are planted in every broker; ``target`` runs one."""

    def __init__(
        self,
        directory: str,
        brokers: int = 3,
        properties: Mapping[str, str] | None = None,
        defects: tuple[str, ...] = (),
        target: str = "cluster.broker.main:serve",
    ) -> None:
        self.directory = directory
        self.broker_ids = tuple(range(1, brokers + 1))
        self.children: dict[int, Child] = {}
        self.ports: dict[int, dict[str, int]] = {}
        self._properties = dict(properties or {})
        self._defects = defects
        self._target = target
        self._supervisor = Supervisor(directory)
        self._zookeeper: ZooKeeperHandle | None = None

    def __enter__(self) -> Self:
        try:
            self._zookeeper = start_zookeeper(self._supervisor, os.path.join(self.directory, "zookeeper"), find_java())
            self.start_all()
        except BaseException:
            self._supervisor.stop_all()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._supervisor.stop_all()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{ports['CLIENTS']}" for ports in self.ports.values())

    def node(self, broker_id: int | str) -> str:
        return os.path.join(self.directory, "nodes", str(broker_id))

    def data(self, broker_id: int | str) -> str:
        return os.path.join(self.node(broker_id), "data")

    def _spawn(self, broker_id: int) -> None:
        self.children[broker_id] = self._start(broker_id, str(broker_id), self.ports.get(broker_id, {}))

    def start_another(self, broker_id: int, node: str) -> Child:
        """One more broker of this id, with directories and ports of its own. It is not waited for."""
        return self._start(broker_id, node, {})

    def _start(self, broker_id: int, node: str, known: Mapping[str, int]) -> Child:
        assert self._zookeeper is not None
        properties = {
            **CHAOS.broker,
            "log.retention.ms": "-1",
            "listeners": ",".join(f"{name}://{HOST}:{known.get(name, 0)}" for name in LISTENERS),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in LISTENERS),
            "inter.broker.listener.name": "PEERS",
            "zookeeper.connect": self._zookeeper.address,
            "log.dirs": self.data(node),
            "gapless.metrics.port": "0",
            "min.insync.replicas": "2",
            **self._properties,
        }
        os.makedirs(self.node(node), exist_ok=True)
        arguments = {
            "broker_id": broker_id,
            "properties": properties,
            "node_directory": self.node(node),
            "defects": list(self._defects),
            "seed": 1,
        }
        return self._supervisor.start_python(
            f"broker-{node}", self._target, arguments, os.path.join(self.node(node), "output")
        )

    def _wait_started(self, broker_id: int) -> None:
        child = self.children[broker_id]
        message = child.wait_message(START_S)
        assert message["event"] == "bound", message
        self.ports[broker_id] = message["ports"]
        message = child.wait_message(START_S)
        assert message["event"] == "started", message

    def kill(self, broker_id: int) -> None:
        """kill -9."""
        self.children[broker_id].kill()

    def terminate(self, broker_id: int) -> int | None:
        """SIGTERM, and the exit status."""
        self.children[broker_id].terminate()
        return self.children[broker_id].wait(20)

    def restart(self, broker_id: int) -> None:
        """Start a broker that has ended, on its own data directory and ports."""
        self._spawn(broker_id)
        self._wait_started(broker_id)

    def start_in_vain(self, broker_id: int) -> None:
        """Start a broker whose disk lets it end, sooner or later."""
        self._spawn(broker_id)
        child = self.children[broker_id]
        while child.wait_message(START_S)["event"] != "failed":
            pass
        assert child.wait(20) == 1

    def start_all(self) -> None:
        """Start all brokers, none of which is running, at the same time."""
        for broker_id in self.broker_ids:
            self._spawn(broker_id)
        for broker_id in self.broker_ids:
            self._wait_started(broker_id)


def eventually(condition: Callable[[], Any], timeout_s: float, what: str) -> Any:
    """The first true value of ``condition``; fails after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)
