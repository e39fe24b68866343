"""A follower's fetch that names very many partitions is read in steps, and what changes between them is not missed."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from random import Random
from typing import Any

import pytest

from cluster.broker.handlers import fetch as fetch_handler
from cluster.broker.replicas import reads
from cluster.broker.replicas.fetch_checks import FetchedBy
from cluster.broker.replicas.fetch_sessions import FetchSessions
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchRequest, FetchResult
from tests.cluster.broker.scenes import with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

PARTITIONS = 12


def wants(*numbers: int, session: tuple[int, int] = (0, 0)) -> FetchRequest:
    wanted = [FetchPartition("many", number, -1, 0, -1, 0, 1000) for number in numbers]
    return FetchRequest(2, 500, 1, 1 << 20, 0, *session, wanted)


def finished(steps: Generator[None, None, Any]) -> tuple[int, Any]:
    """How many steps were left, and what they return."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value
        count += 1


@pytest.mark.parametrize("in_session", [True, False])
def test_what_changes_between_the_steps_is_found(monkeypatch: pytest.MonkeyPatch, in_session: bool) -> None:
    """What a step has not read yet comes with the answer. What was read already comes with the session's next fetch,
    and wakes one without a session at once."""
    monkeypatch.setattr(reads, "PARTITIONS_A_STEP", 3)

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        await cluster.create_topic("many", 2 * PARTITIONS)
        manager = cluster.nodes[1].replicas
        led = [number for number in range(2 * PARTITIONS) if cluster.leader("many", number) == 1][:PARTITIONS]
        life = cluster.nodes[2].control.broker_epoch
        await cluster.crash(2)
        client, reader = Client(await cluster.connect(1)), FetchedBy(2, life)
        answers: list[list[FetchResult]] = []
        request = wants(*led)
        session = manager.admit(request, reader) if in_session else None
        steps = manager.fetch_in_steps(request, reader, lambda rest: answers.append(finished(rest)[1]), session)
        next(steps)
        await client.produce("many", batch(b"a"), partition=led[0], acks=1)
        if in_session:
            await client.produce("many", batch(b"b"), partition=led[-1], acks=1)
        count, found = finished(steps)
        assert count == len(led) / 3 - 1
        if session is None:
            await asyncio.sleep(0.1)
            [found] = answers
            assert [each.partition for each in found if each.records] == [led[0]]
            return
        assert [each.partition for each in found] == led
        assert [each.partition for each in found if each.records] == [led[-1]]
        again = wants(session=(session.session_id, 1))
        assert manager.admit(again, reader) is session
        assert manager.fetch(again, reader, answers.append, session) is None
        assert {each.partition for each in answers[0] if each.records} == {led[0], led[-1]}

    with_topic(check, brokers=2)


def test_a_change_between_the_steps_is_looked_at_by_the_next_fetch() -> None:
    """Also where nothing was appended: of a settled partition the follower would hear of no watermark again."""
    session = FetchSessions(Random(1), 10).admit(wants(0), FetchedBy(2), 0)
    assert session is not None
    wanted = session.begin(wants(0, 1, 2))
    session.begin_steps()
    session.partitions["many", 0].changed(wakes=True)
    for each in wanted:
        session.is_read(each)
    session.partitions["many", 1].changed(wakes=False)
    results = [FetchResult("many", number, ErrorCode.NONE, 0, 0, 0) for number in range(3)]
    assert session.answer(results, lambda _: True) == results
    assert [each.partition for each in session.begin(wants(session=(1, 1)))] == [1]


def test_a_session_that_ends_between_the_steps() -> None:
    """Its follower came back with another: the former fetch is answered with nothing, and watches nothing."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        await cluster.create_topic("many", PARTITIONS)
        manager, reader = cluster.nodes[1].replicas, FetchedBy(2, cluster.nodes[2].control.broker_epoch)
        request = wants(*range(PARTITIONS))
        session = manager.admit(request, reader)
        steps = manager.fetch_in_steps(request, reader, lambda _: pytest.fail("it does not wait"), session)
        next(steps)
        assert manager.admit(request, reader) is not session
        assert finished(steps)[1] == []

    with_topic(check, brokers=2)


def test_replication_with_large_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full fetches are read in steps, those that name little are not; all that is written is replicated."""
    monkeypatch.setattr(fetch_handler, "BYTES_AT_ONCE", 150)
    sizes: list[int] = []
    parse = fetch_handler.parse_request

    def parse_request(body: memoryview, version: int) -> FetchRequest:
        if isinstance(body.obj, bytes):
            sizes.append(len(body))
        return parse(body, version)

    monkeypatch.setattr(fetch_handler, "parse_request", parse_request)

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        await cluster.create_topic("many", PARTITIONS)
        for number in range(PARTITIONS):
            client = Client(await cluster.connect(cluster.leader("many", number)))
            assert (await client.produce("many", batch(b"a"), partition=number)).error is ErrorCode.NONE
        await asyncio.sleep(2)
        assert sizes
        for broker_id in cluster.broker_ids:
            replicas = cluster.nodes[broker_id].replicas.partitions
            assert [replicas["many", number].high_watermark for number in range(PARTITIONS)] == [1] * PARTITIONS

    with_topic(check, brokers=3)
