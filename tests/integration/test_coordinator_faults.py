"""Faults on coordinators in a real cluster behind its links: each bites and heals, and no transaction is torn by it.

The load is a producer of transactions and a consumer that commits what it reads, each on a thread; what was committed
is read at the end: all of each committed transaction once, and nothing of an aborted one.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import confluent_kafka
import pytest

from chaos.conductor.breakable_cluster import BreakableCluster
from chaos.conductor.deployment import Deployment
from chaos.conductor.injector import Injector
from chaos.conductor.observer import Observer
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.faults.steps import STEPS
from chaos.schedules.model import Injection
from cluster.client import NewTopic
from cluster.process.supervisor import Supervisor
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from tests.support.kafka_clients import QUIET, TIMEOUT_S
from tests.support.require import require
from tests.support.transactions import MAKERS, read_values
from verifier.evidence.run_directory import RunDirectory

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

TOPIC, PARTITIONS = "ledger", 3
GROUP = "readers-of-the-ledger"
#: A coordinator that has just been given back to its preferred replica would not be where its fault waits for it.
STAYING = ("auto.leader.rebalance.enable=false",)


class Load(AbstractContextManager["Load"]):
    """Calls ``turn`` on a thread until the end; what it raises is raised there."""

    def __init__(self, turn: Callable[[], None]) -> None:
        self._turn = turn
        self._ending = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._turn()
        except BaseException as error:
            self._failed = error


class Ledger:
    """Transactions of one record for each partition, every third of them aborted."""

    def __init__(self, bootstrap: str) -> None:
        self.committed: list[bytes] = []
        self._grown = threading.Condition()
        self._number = 0
        self._producer = MAKERS["confluent"](bootstrap, "ledger-1")
        self._producer.init()

    def turn(self) -> None:
        self._number += 1
        value = b"%d" % self._number
        self._producer.begin()
        for partition in range(PARTITIONS):
            self._producer.send(TOPIC, partition, value)
        # before it aborts too: librdkafka may else abort what its coordinator was never told of, and take the answer
        # INVALID_TXN_STATE for fatal
        self._producer.flush()
        commit = self._number % 3 != 0
        self._again(lambda: self._producer.end(commit=commit))
        if commit:
            with self._grown:
                self.committed.append(value)
                self._grown.notify_all()

    def wait_for_another(self) -> None:
        """Until one more transaction is committed."""
        with self._grown:
            before = len(self.committed)
            assert self._grown.wait_for(lambda: len(self.committed) > before, TIMEOUT_S), "nothing is committed anymore"

    def close(self) -> None:
        self._producer.close()

    @staticmethod
    def _again(call: Callable[[], None]) -> None:
        """As librdkafka wants it: the same call again after a timeout."""
        for _ in range(5):
            try:
                return call()
            except confluent_kafka.KafkaException as error:
                if not error.args[0].retriable():
                    raise
        raise TimeoutError("no end of the transaction")


class Readers:
    """A member of a group that commits after each record or, at the latest, each tenth of a second."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                **QUIET,
            }
        )
        self._consumer.subscribe([TOPIC])

    def turn(self) -> None:
        message = self._consumer.poll(0.1)
        if message is not None and message.error() is None:
            self._consumer.commit(message=message, asynchronous=True)

    def close(self) -> None:
        self._consumer.close()


def conducted(directory: Path, *injections: Injection) -> list[Mapping[str, Any]]:
    """Start a cluster with a link before everything, break it under load, and read what was committed; the record."""
    require("java")
    settings, _ = resolve(Asked(seed=5, faults="none", partitions=PARTITIONS, broker_config=STAYING))
    run = RunDirectory(directory)
    run.prepare()
    clock = SystemClock()
    observer = Observer(AsyncioTransport(), clock, TOPIC)
    storage = OsStorage()

    async def scenario(supervisor: Supervisor) -> list[Mapping[str, Any]]:
        deployment = Deployment(settings, run, supervisor, observer)
        await deployment.start()
        try:
            admin = observer.admin(30_000)
            try:
                await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
                await admin.describe([TOPIC])
            finally:
                await admin.close()
            session_ms = settings.broker_config["zookeeper.session.timeout.ms"]
            target = BreakableCluster(deployment, observer, run, TOPIC, PARTITIONS, session_ms)
            bootstrap = deployment.topology.bootstrap("producers")
            ledger, readers = await asyncio.gather(
                asyncio.to_thread(Ledger, bootstrap),
                asyncio.to_thread(Readers, deployment.topology.bootstrap("readers")),
            )
            injector = Injector(target, clock, storage, str(run.faults_jsonl), lambda _: None)
            with Load(ledger.turn), Load(readers.turn):
                try:
                    for number, injection in enumerate(injections):
                        await asyncio.to_thread(ledger.wait_for_another)
                        await injector.inject(5, number, injection)
                    await asyncio.to_thread(ledger.wait_for_another)
                finally:
                    await injector.heal_all()
            await asyncio.to_thread(judge, bootstrap, ledger.committed)
            ledger.close()
            readers.close()
            return [json.loads(line) for line in run.faults_jsonl.read_text().splitlines()]
        finally:
            await deployment.stop()

    with Supervisor(str(directory), lambda _: None) as supervisor:
        return asyncio.run(scenario(supervisor))


def judge(bootstrap: str, committed: list[bytes]) -> None:
    """Every partition has each committed value once, in order, and no other."""
    for partition in range(PARTITIONS):
        assert read_values(bootstrap, TOPIC, partition, len(committed), wait_s=TIMEOUT_S) == committed


def bit(record: list[Mapping[str, Any]], *faults: str) -> None:
    """Every fault is on record as one that bit and was healed."""
    ends = [entry for entry in record if entry["phase"] == "heal"]
    assert [entry["fault"] for entry in ends] == [*faults], record
    assert all(entry["effective"] and entry["healed"] for entry in ends), record


def at(fault: str, step: str = "", **said: Any) -> Injection:
    parameters = {**said, **({"step": step} if step else {})}
    return Injection(0.0, fault, 0.3, {}, parameters)


def test_a_transaction_coordinator_is_killed_while_its_answer_is_on_the_way(tmp_path: Path) -> None:
    """And before that, EndTxn comes late, comes twice, and loses its answer; markers are held back."""
    faults = ("delay-end-txn", "repeat-end-txn", "drop-end-txn-response", "hold-markers")
    record = conducted(tmp_path, *map(at, faults), at("kill-transaction-coordinator", "end-txn-response"))
    bit(record, *faults, "kill-transaction-coordinator")


@pytest.mark.full
@pytest.mark.parametrize("fault", ["kill-transaction-coordinator", "pause-transaction-coordinator"])
def test_a_transaction_coordinator_is_broken_at_each_step(fault: str, tmp_path: Path) -> None:
    """One after the other, in one cluster."""
    steps = STEPS["transaction"]
    bit(conducted(tmp_path, *(at(fault, step) for step in steps)), *[fault] * len(steps))


@pytest.mark.full
@pytest.mark.parametrize("fault", ["kill-group-coordinator", "pause-group-coordinator"])
def test_a_group_coordinator_is_broken_at_a_commit(fault: str, tmp_path: Path) -> None:
    """While the request is on its way, and its answer."""
    steps = ("offset-commit-request", "offset-commit-response")
    bit(conducted(tmp_path, *(at(fault, step) for step in steps)), *[fault] * 2)
