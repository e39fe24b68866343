"""``gapless run --target`` on brokers that others started: three ``gapless broker``, each with a pid file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaos.conductor.nodes import ForeignNodes
from cluster.config.profiles import CHAOS
from cluster.process.java import find_java
from cluster.process.supervisor import Supervisor
from cluster.process.zookeeper import start_zookeeper
from tests.support.leftovers import Place
from tests.support.ports import fixed_port
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(600)]

HOST = "127.0.0.1"
BROKERS = (1, 2, 3)
ROOT = Path(__file__).resolve().parents[2]
RUN_S = 480.0


class Others:
    """Brokers that no run started. ``nodes`` is the file that says how they are handled."""

    def __init__(self, directory: Path, zookeeper: str, defect: str | None) -> None:
        self.directory = directory
        ports = [fixed_port() for _ in range(2 * len(BROKERS))]
        self.target = "kafka://" + ",".join(f"{HOST}:{port}" for port in ports[: len(BROKERS)])
        said = []
        for broker, client, peer in zip(BROKERS, ports[: len(BROKERS)], ports[len(BROKERS) :], strict=True):
            self._write(broker, zookeeper, f"CLIENTS://{HOST}:{client},PEERS://{HOST}:{peer}", defect)
            said.append(f"  {broker}: {{pid_file: '{directory}/{broker}.pid', start: 'sh {directory}/{broker}.sh'}}\n")
        self.nodes = directory / "nodes.yaml"
        self.nodes.write_text("nodes:\n" + "".join(said))
        self._handled = ForeignNodes.of(str(self.nodes))

    def data(self, broker: int) -> Path:
        return self.directory / f"data-{broker}"

    def start(self) -> None:
        for broker in BROKERS:
            self._handled.start(broker)

    def end(self) -> None:
        for process in self._handled.processes.values():
            process.kill()

    def pids(self) -> dict[int, int]:
        return {broker: process.pid for broker, process in self._handled.processes.items()}

    def _write(self, broker: int, zookeeper: str, listeners: str, defect: str | None) -> None:
        properties = {
            **CHAOS.broker,
            "broker.id": str(broker),
            "log.retention.ms": "-1",
            "listeners": listeners,
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,PEERS:PLAINTEXT",
            "inter.broker.listener.name": "PEERS",
            "zookeeper.connect": zookeeper,
            "log.dirs": str(self.data(broker)),
            "gapless.metrics.port": "0",
            "min.insync.replicas": "2",
        }
        home = self.directory / f"node-{broker}"
        home.mkdir()
        config = self.directory / f"{broker}.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        more = "" if defect is None else f" --defect {defect}"
        (self.directory / f"{broker}.sh").write_text(
            f"echo $$ > '{self.directory}/{broker}.pid'\nexport PYTHONPATH='{ROOT}'\n"
            f"exec '{sys.executable}' -m chaos.commands.main broker --config '{config}' --node-directory '{home}'"
            f"{more} > '{home}/output' 2>&1\n"
        )


@contextmanager
def others(directory: Path, defect: str | None = None) -> Iterator[Others]:
    """Three brokers and their ZooKeeper."""
    directory.mkdir()
    supervisor = Supervisor(str(directory))
    try:
        zookeeper = start_zookeeper(supervisor, os.path.join(directory, "zookeeper"), find_java())
        cluster = Others(directory, zookeeper.address, defect)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.end()
    finally:
        supervisor.stop_all()


def verdict_of(place: Place) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((place.directory / "results" / "latest" / "verdict.json").read_text())
    return read


def test_a_healthy_cluster_of_others_is_valid(tmp_path: Path) -> None:
    """Its leaders are killed and paused by pid file, its clients' links reset; it is judged by the replicas of two
    brokers and by what the third serves; the verdict says what it does not tell, and nothing is left in the cluster."""
    require("java")
    with others(tmp_path / "others") as cluster, Place(tmp_path / "place") as place:
        before = cluster.pids()
        given = [word for broker in (1, 2) for word in ("--replica-dir", f"{broker}={cluster.data(broker)}")]
        faults = ["--faults", "kill-leader,pause-leader,reset", "--nodes", str(cluster.nodes)]
        load = ["--time-limit", "12", "--rate", "200", "--seed", "5"]
        status = place.run("run", "--target", cluster.target, *faults, *given, *load, timeout_s=RUN_S)
        assert status == 0, place.out + place.err
        assert cluster.pids() != before
        verdict = verdict_of(place)
        assert verdict["stats"]["faults"]["kinds"].keys() == {"kill-leader", "pause-leader", "reset"}
        assert any("broker 3" in line for line in verdict["narrowed"])
        assert verdict["checks"]["torn-tail"]["unasked"] and verdict["checks"]["log-divergence"]["valid"] is True
        assert not [path for broker in BROKERS for path in cluster.data(broker).glob("gapless-5-?/*.log")]


def test_a_defect_in_a_cluster_of_others_is_found(tmp_path: Path) -> None:
    """Lost records show in the log that a leader serves, without any file of the cluster's."""
    require("java")
    with others(tmp_path / "others", "lose-acked:0.01") as cluster, Place(tmp_path / "place") as place:
        load = ["--time-limit", "6", "--rate", "500", "--seed", "12", "--faults", "none"]
        status = place.run("run", "--target", cluster.target, *load, timeout_s=RUN_S)
        assert status == 1, place.out + place.err
        assert verdict_of(place)["checks"]["lost-write"]["count"] > 0


def test_transactions_in_a_cluster_of_others_are_valid(tmp_path: Path) -> None:
    """Faults on the links and on single frames of clients bite there; the verdict says that no decision was read."""
    require("java")
    with others(tmp_path / "others") as cluster, Place(tmp_path / "place") as place:
        faults = ("drop-response", "jitter", "refuse", "leader-with-followers", "delay-request", "delay-end-txn")
        load = ["--workload", "transactions", "--time-limit", "12", "--seed", "7", "--faults", ",".join(faults)]
        status = place.run("run", "--target", cluster.target, *load, timeout_s=RUN_S)
        assert status == 0, place.out + place.err
        verdict = verdict_of(place)
        assert verdict["stats"]["faults"]["kinds"].keys() == {*faults}
        assert any("what coordinators decided is not read" in line for line in verdict["narrowed"])
        assert verdict["checks"]["marker-audit"]["unasked"] and verdict["checks"]["G1a"]["valid"] is True


def test_storms_in_a_cluster_of_others_are_survived(tmp_path: Path) -> None:
    """All brokers die by pid file and come back, one after the other, too; one of them is stopped again and again."""
    require("java")
    with others(tmp_path / "others") as cluster, Place(tmp_path / "place") as place:
        load = ["--time-limit", "12", "--rate", "200", "--seed", "5", "--faults", "kill-all,restart-storm,starve-cpu"]
        given = ["--target", cluster.target, "--nodes", str(cluster.nodes)]
        status = place.run("run", *given, *load, timeout_s=RUN_S)
        assert status == 0, place.out + place.err
        assert verdict_of(place)["stats"]["faults"]["kinds"].keys() == {"kill-all", "restart-storm", "starve-cpu"}
