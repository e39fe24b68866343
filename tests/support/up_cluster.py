"""A cluster as users get it: ``gapless up`` in a process of its own, three brokers, free ports, and an end for sure.

It runs in a directory full of modules that must not be executed.

Owns starting it, finding its brokers' processes and files, and the check that nothing of it is left. What is asked of
the brokers goes through clients.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from cluster.process.processes import marked, until
from cluster.process.supervisor import Child, Supervisor
from cluster.protocol.batch import BatchHeader, iter_batches
from cluster.protocol.records import Record, decode_records
from tests.support.leftovers import GAPLESS
from tests.support.planted_modules import assert_nothing_executed, plant

ROOT = Path(__file__).resolve().parents[2]
#: In the environment of everything that descends from the command, so that what is left of it is found.
MARK = f"GAPLESS_TEST_UP_{os.getpid()}"
START_S = 90.0
STOP_S = 60.0
BROKER_IDS = (1, 2, 3)
#: What a log says when the code met something that it did not foresee.
SURPRISES = ("Traceback", "Error in ", "Task exception was never retrieved", "Exception in callback")


class UpCluster:
    """A cluster that is up. ``data`` is its directory, ``addresses`` where each broker takes plain clients."""

    def __init__(self, data: Path) -> None:
        self.data = data
        state = json.loads((data / "up.json").read_text())
        self.bootstrap: str = state["bootstrap.servers"]
        self.processes = _brokers()
        by_port = {int(address.rpartition(":")[2]): address for address in self.bootstrap.split(",")}
        self.addresses: dict[int, str] = {}
        for broker_id, process in self.processes.items():
            (port,) = set(by_port) & set(_listening(process))
            self.addresses[broker_id] = by_port[port]

    def __repr__(self) -> str:
        return f"UpCluster({self.bootstrap}, {self.data})"

    def listening(self, broker_id: int) -> list[int]:
        """All ports of a broker, whatever they are for."""
        return _listening(self.processes[broker_id])

    def log(self, broker_id: int, topic: str, partition: int = 0) -> bytes:
        """The bytes of one replica, all its segments."""
        home = self.data / "nodes" / str(broker_id) / "data" / f"{topic}-{partition}"
        return b"".join(path.read_bytes() for path in sorted(home.glob("*.log")))

    def batches(self, broker_id: int, topic: str, partition: int = 0) -> list[tuple[BatchHeader, list[Record]]]:
        """What one replica holds."""
        data = self.log(broker_id, topic, partition)
        return [
            (header, decode_records(data[position : position + header.size_bytes]))
            for position, header in iter_batches(data)
        ]

    def surprises(self) -> list[str]:
        """Lines of the brokers' logs that tell of a bug."""
        found = []
        for broker_id in BROKER_IDS:
            node = self.data / "nodes" / str(broker_id)
            for name in ("broker.log", "process.log"):
                lines = (node / name).read_text(errors="replace").splitlines()
                found += [f"{node / name}: {line}" for line in lines if any(each in line for each in SURPRISES)]
        return found


def _brokers() -> dict[int, psutil.Process]:
    """The brokers' processes, told apart by the directory whose log they write."""
    found = {}
    for process in marked(MARK):
        for file in process.open_files():
            path = Path(file.path)
            if path.name == "broker.log" and path.parent.name.isdigit():
                found[int(path.parent.name)] = process
    assert sorted(found) == list(BROKER_IDS)
    return found


def _listening(process: psutil.Process) -> list[int]:
    return [each.laddr.port for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]


@contextmanager
def up_cluster(directory: Path) -> Iterator[UpCluster]:
    """Start it, hand it out, stop it; fails if it does not stop well, or if a process of it is left."""
    data = directory / "up"
    log = directory / "up.log"
    plant(directory)
    argv = [str(GAPLESS), "up", "--json", "--profile", "chaos", "--data", str(data)]
    environment = {MARK: "1", "PYTHONPATH": str(ROOT)}
    with Supervisor(str(directory)) as supervisor:
        child = supervisor.start_program("up", argv, environment, str(directory), str(log))
        assert until(lambda: (data / "up.json").exists() or not child.is_running(), START_S), log.read_text()
        assert child.is_running(), log.read_text()
        cluster = UpCluster(data)
        yield cluster
        _stop(child, log)
    assert until(lambda: not marked(MARK), 5), f"left behind: {marked(MARK)}"
    assert cluster.surprises() == []
    assert_nothing_executed(directory)


def _stop(child: Child, log: Path) -> None:
    child.terminate()
    assert child.wait(STOP_S) == 0, log.read_text()
