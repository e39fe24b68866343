"""Malformed and truncated frames at a broker's ports: they harm nobody but the connection they came on.

What is sent is hypothesis' own and damaged requests of every API, taken off real clients (``tests.support.frames``).
The rules: every connection is answered or closed within a bound, the broker lives on and leads what it led, its memory
stays flat, and a well-behaved client beside is served throughout.
"""

from __future__ import annotations

import socket
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.process.processes import until
from cluster.protocol.apis import INTER_BROKER, PRODUCE_MIN_VERSION, SUPPORTED, ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.messages import decode_response, encode_request, request_class
from tests.support.attack import HOST, Bystander, MemoryWatch, Outcome, alongside, attack
from tests.support.frames import PARTITIONS, TOPIC, captured, mutants, samples, wires, with_size
from tests.support.kafka_clients import TIMEOUT_S, Confluent
from tests.support.up_cluster import UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MIB = 1_048_576
#: Memory is flat if it grows by no more than this, over however many frames.
FLAT_BYTES = 8 * MIB
#: Of ten connections so many go to the clients' listener, the others to the brokers' own.
TO_CLIENTS = 8
#: Wires of one hypothesis example: they are sent at once.
AT_ONCE = 20
SEED = 20_260


@dataclass(frozen=True)
class Scene:
    """The broker under attack: it leads partition 0 of ``beside``, which the well-behaved client uses."""

    cluster: UpCluster
    client: Confluent
    broker_id: int
    port: int
    brokers_port: int
    beside: str


def leader_of(client: Confluent, topic: str) -> int:
    return client.admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions[0].leader  # type: ignore[no-any-return]


def brokers_port(cluster: UpCluster, broker_id: int) -> int:
    """The port of the listener on which the controller gives orders: it alone advertises them."""
    for port in cluster.listening(broker_id):
        try:
            _, answer = decode_response(ApiKey.API_VERSIONS, 0, ask_versions(port)[4:])
        except (MalformedRequest, ConnectionResetError):
            continue  # The port of the metrics speaks HTTP.
        if any(entry.api_key == ApiKey.LEADER_AND_ISR for entry in answer.api_keys):
            return port
    raise AssertionError(f"broker {broker_id} has no listener for brokers")


def ask_versions(port: int) -> bytes:
    """All that comes back for one ApiVersions request of version 0."""
    with socket.create_connection((HOST, port), 10) as sock:
        sock.sendall(with_size(encode_request(request_class(ApiKey.API_VERSIONS)(), 0, 1, None)))
        sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(65_536), b""))


@pytest.fixture(scope="module")
def client(shared_cluster: UpCluster) -> Confluent:
    """The topic that the captured frames are about exists: what is asked of it gets far."""
    found = Confluent(shared_cluster.bootstrap)
    found.create(TOPIC, PARTITIONS)
    return found


@pytest.fixture
def scene(shared_cluster: UpCluster, client: Confluent) -> Scene:
    beside = f"beside-{uuid.uuid4().hex[:8]}"
    client.create(beside, 1)
    leader = leader_of(client, beside)
    port = int(shared_cluster.addresses[leader].rpartition(":")[2])
    return Scene(shared_cluster, client, leader, port, brokers_port(shared_cluster, leader), beside)


def damaged(scene: Scene, count: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """So many (port, bytes)."""
    to_clients, to_brokers = mutants(seed, False), mutants(seed, True)
    for number in range(count):
        if number % 10 < TO_CLIENTS:
            yield scene.port, next(to_clients)
        else:
            yield scene.brokers_port, next(to_brokers)


def generated(scene: Scene, count: int, outcome: Outcome) -> None:
    """Let hypothesis send so many."""

    @settings(max_examples=count // AT_ONCE, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(wires(), min_size=AT_ONCE, max_size=AT_ONCE))
    def send(found: list[bytes]) -> None:
        half = len(found) * TO_CLIENTS // 10
        attack(
            [(scene.port if index < half else scene.brokers_port, wire) for index, wire in enumerate(found)], outcome
        )

    send()


def assail(scene: Scene, mutated: int, from_hypothesis: int) -> str:
    """Attack, watch, judge; the figures in one line."""
    process = scene.cluster.processes[scene.broker_id]
    outcome = Outcome()
    bystander = Bystander(scene.beside, scene.client)
    memory = MemoryWatch(process)
    # What the first connections of a kind cost once, caches and imports, is no growth.
    attack(damaged(scene, mutated // 10, SEED), outcome)
    open_files = process.num_fds()
    memory.settle()
    begun = time.monotonic()
    with alongside(bystander, memory):
        attack(islice(damaged(scene, mutated, SEED + 1), mutated - outcome.sent), outcome)
        generated(scene, from_hypothesis, outcome)
    took_s = time.monotonic() - begun
    figures = (
        f"{outcome.sent} connections ({outcome.answered} answered, {outcome.closed} only closed) in {took_s:.1f} s, "
        f"the slowest {outcome.slowest_s:.2f} s; memory grew by at most {memory.growth_bytes / MIB:.1f} MiB from "
        f"{memory.settled_bytes / MIB:.0f} MiB; beside it {bystander.acknowledged} writes, the worst "
        f"{bystander.worst_write_s * 1000:.0f} ms, reads {bystander.worst_read_s * 1000:.0f} ms, metadata "
        f"{bystander.worst_metadata_s * 1000:.0f} ms"
    )
    assert outcome.sent >= mutated + from_hypothesis, figures
    assert bystander.errors == [], figures
    assert 0 < bystander.acknowledged == bystander.read, figures
    assert process.is_running(), figures
    assert leader_of(scene.client, scene.beside) == scene.broker_id, figures
    batches = scene.cluster.batches(scene.broker_id, scene.beside)
    assert {header.leader_epoch for header, _ in batches} == {0}, figures
    assert sum(len(records) for _, records in batches) == bystander.acknowledged, figures
    assert memory.growth_bytes <= FLAT_BYTES, figures
    assert until(lambda: process.num_fds() <= open_files + 8, 15), figures
    assert scene.cluster.surprises() == [], figures
    return figures


def tell(capsys: pytest.CaptureFixture[str], figures: str) -> None:
    """Figures are worth a line in every run, not only in one that fails."""
    with capsys.disabled():
        sys.stdout.write(f"\nmalformed frames: {figures}\n")


def test_the_samples_have_every_api_of_both_kinds_of_listener() -> None:
    """Captured from real clients and brokers; every version that is served is among the samples."""
    assert {sample.api_key for sample in captured()} == {*SUPPORTED, *INTER_BROKER}
    for api_key, (least, greatest) in SUPPORTED.items():
        served = range(PRODUCE_MIN_VERSION if api_key is ApiKey.PRODUCE else least, greatest + 1)
        assert set(served) <= {sample.version for sample in samples() if sample.api_key is api_key}


def test_malformed_frames_harm_nobody(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """Some thousands of them: the gate's share of the hundred thousand."""
    tell(capsys, assail(scene, 2500, 500))


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_malformed_frames_harm_nobody(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """The same, long enough for a leak of some bytes a frame to show."""
    tell(capsys, assail(scene, 80_000, 20_000))


def test_memory_grows_with_what_arrives_not_with_what_is_declared(scene: Scene) -> None:
    """A hundred connections each promise 100 MiB, send 5 bytes and wait: together they cost a few MiB; half-closed,
    they are closed."""
    process = scene.cluster.processes[scene.broker_id]
    memory = MemoryWatch(process)
    memory.settle()
    held = [socket.create_connection((HOST, scene.port), 10) for _ in range(100)]
    try:
        with alongside(memory):
            for sock in held:
                sock.sendall((104_857_600).to_bytes(4, "big") + b"hello")
            leader_of(scene.client, scene.beside)
            for sock in held:
                sock.shutdown(socket.SHUT_WR)
            for sock in held:
                assert sock.recv(1) == b""
    finally:
        for sock in held:
            sock.close()
    # A receive buffer starts with 64 KiB.
    assert memory.growth_bytes <= 16 * MIB
