"""A producer that librdkafka gives up for good: the load goes on with the next incarnation, and its history says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.client.connection import BrokerConnection
from cluster.protocol.errors import ErrorCode
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from loadgen.choices import Sizes
from loadgen.clients.base import ClientCallbacks, ProducerClient
from loadgen.clients.confluent import producer_factory
from loadgen.recorder import Recorder
from loadgen.records import StreamRecords
from loadgen.stream import ProducerStream
from tests.simulation.client import Client, batch
from tests.support.kafka_clients import Confluent
from tests.support.up_cluster import UpCluster
from verifier.evidence.history import read_history

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

TOPIC = "fatal-producer"


def test_the_load_survives_a_fatal_error(shared_cluster: UpCluster, tmp_path: Path) -> None:
    """Somebody else takes the producer's next sequences: a fatal error, ``info``, and a new producer id goes on."""
    Confluent(shared_cluster.bootstrap).create(TOPIC, 1)
    clock = SystemClock()
    history = tmp_path / "producers.arrow"
    recorder = Recorder("producers", history, clock)
    identities: list[int] = []
    factory = producer_factory(shared_cluster.bootstrap, "fatal", {"statistics.interval.ms": 50}, clock)

    def make_client(callbacks: ClientCallbacks) -> ProducerClient:
        def on_identity(producer_id: int, producer_epoch: int) -> None:
            identities.append(producer_id)
            callbacks.on_identity(producer_id, producer_epoch)

        return factory(ClientCallbacks(callbacks.on_delivery, callbacks.on_error, on_identity))

    def dispose(client: ProducerClient) -> None:
        client.dispose(5)

    stream = ProducerStream(
        stream=0,
        topic=TOPIC,
        partition=0,
        records=StreamRecords(1, 0, Sizes([48])),
        recorder=recorder,
        clock=clock,
        make_client=make_client,
        dispose=dispose,
    )

    def settled() -> bool:
        stream.poll()
        return stream.outstanding == 0 and bool(identities)

    assert stream.send(clock.monotonic_ns())
    _until(settled)
    asyncio.run(_take_sequences(shared_cluster, identities[-1]))
    assert stream.send(clock.monotonic_ns())
    _until(lambda: settled() and stream.incarnation == 1)
    assert stream.send(clock.monotonic_ns())
    # the statistics that tell the new id come after the acknowledgement
    _until(lambda: settled() and identities[-1] != identities[0])
    stream.close()
    recorder.close()
    rows = read_history(history).to_pylist()
    assert [(row["first_sequence"], row["type"]) for row in rows if row["f"] == "send"][:3] == [
        (0, "ok"), (1, "info"), (2, "ok"),
    ]  # fmt: skip
    assert any("OUT_OF_ORDER_SEQUENCE_NUMBER" in (row["error"] or "") for row in rows if row["f"] == "note")


async def _take_sequences(cluster: UpCluster, producer_id: int) -> None:
    """Write three records in the producer's name, to whichever broker leads."""
    for address in cluster.addresses.values():
        host, _, port = address.rpartition(":")
        connection = await BrokerConnection.open(AsyncioTransport(), host, int(port), "intruder", 10_000)
        records = batch(b"a", b"b", b"c", producer_id=producer_id, base_sequence=1)
        answer = await Client(connection).produce(TOPIC, records)
        connection.close()
        if answer.error is ErrorCode.NONE:
            return
    pytest.fail("no broker took the intruder's batch")


def _until(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)  # the client is polled: it signals nothing
