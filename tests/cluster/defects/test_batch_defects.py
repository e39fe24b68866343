"""Defects of a producer's batches, on whole brokers: what is stored and answered, and that it was noted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from cluster.protocol.errors import ErrorCode
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.defects.journal import fired, planted
from tests.simulation.client import TIMESTAMP, Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

TOPIC = "t"
Scene = Callable[[Client], Awaitable[None]]


def with_defect(scene: Scene, *names: str) -> list[tuple[object, object]]:
    """Play it on a broker with these defects; the base sequence and offset of each firing."""
    storage = MemoryStorage()

    async def main() -> None:
        async with MemoryCluster(1, rules=planted(storage, *names)) as cluster:
            await cluster.create_topic(TOPIC)
            await scene(Client(await cluster.connect(1)))

    run(main())
    return [(line.get("base_sequence"), line["offset"]) for line in fired(storage)]


async def sent(client: Client, *values: bytes, sequence: int) -> tuple[ErrorCode, int]:
    """The answer to a batch of producer 5."""
    answer = await client.produce(TOPIC, batch(*values, producer_id=5, base_sequence=sequence))
    return answer.error, answer.base_offset


@pytest.mark.parametrize(
    ("name", "stored", "firings"),
    [
        ("", [b"a1", b"b2", b"c3"], []),
        ("swap-records", [b"b2", b"a1", b"c3"], [(0, 0)]),
        ("change-a-byte", [b"a1", b"b3", b"c2"], [(0, 0), (2, 2)]),
        ("repeat-batches", [b"a1", b"b2", b"a1", b"b2", b"c3", b"c3"], [(0, 2), (2, 5)]),
    ],
)
def test_what_is_stored(name: str, stored: list[bytes], firings: list[tuple[int, int]]) -> None:
    """Two batches of two records and of one: a checksum that is right, and the answer for what was sent."""

    async def scene(client: Client) -> None:
        assert await sent(client, b"a1", b"b2", sequence=0) == (ErrorCode.NONE, 0)
        assert (await sent(client, b"c3", sequence=2))[0] is ErrorCode.NONE
        assert (await client.fetch(TOPIC, 0)).values == stored

    assert with_defect(scene, *[name] * bool(name)) == firings


@pytest.mark.parametrize("name", ["swap-records", "change-a-byte", "repeat-batches", "answer-offset-zero"])
def test_a_duplicate_is_no_firing(name: str) -> None:
    """A retry that is recognized is answered as it should be: only what is stored is treated wrongly."""

    async def scene(client: Client) -> None:
        await sent(client, b"a", b"b", sequence=0)
        assert await sent(client, b"a", b"b", sequence=0) == (ErrorCode.NONE, 0)

    assert len(with_defect(scene, name)) == (name != "answer-offset-zero")


@pytest.mark.parametrize(("name", "answered"), [("", 1), ("answer-offset-zero", 0)])
def test_answer_offset_zero(name: str, answered: int) -> None:
    """A batch that is at another offset is said to be at 0; it is stored where it belongs."""

    async def scene(client: Client) -> None:
        await sent(client, b"a", sequence=0)
        assert await sent(client, b"b", sequence=1) == (ErrorCode.NONE, answered)
        assert (await client.fetch(TOPIC, 0)).values == [b"a", b"b"]

    assert with_defect(scene, *[name] * bool(name)) == ([(1, 1)] if name else [])


@pytest.mark.parametrize(
    ("name", "again", "stored"),
    [
        ("", [0, 4], 5),
        ("remember-one-batch", [5, 4], 6),
        ("shift-duplicates", [1, 5], 5),
    ],
)
def test_retries(name: str, again: list[int], stored: int) -> None:
    """The first and the last of five batches come again, and are answered with an offset; the next batch is taken."""

    async def scene(client: Client) -> None:
        for sequence in range(5):
            await sent(client, b"v", sequence=sequence)
        assert [(await sent(client, b"v", sequence=sequence))[1] for sequence in (0, 4)] == again
        assert await sent(client, b"v", sequence=5) == (ErrorCode.NONE, stored)

    assert len(with_defect(scene, *[name] * bool(name))) == {"": 0, "remember-one-batch": 1}.get(name, 2)


def test_expire_early() -> None:
    """A retry of a batch whose timestamp is older than half a second is stored again; a younger one is recognized."""

    async def scene(client: Client) -> None:
        old = batch(b"old", producer_id=5, base_sequence=0, timestamp=1)
        assert [(await client.produce(TOPIC, old)).base_offset for _ in range(2)] == [0, 1]
        young = batch(b"young", producer_id=6, base_sequence=0, timestamp=TIMESTAMP)
        assert [(await client.produce(TOPIC, young)).base_offset for _ in range(2)] == [2, 2]

    assert with_defect(scene, "expire-early") == [(0, 1)]


def test_forget_after_an_error() -> None:
    """The batch is stored, answered with a retriable error, and stored again when it comes again."""

    async def scene(client: Client) -> None:
        await sent(client, b"a", sequence=0)
        assert (await sent(client, b"b", sequence=1))[0] is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert (await sent(client, b"b", sequence=1))[0] is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        await client.produce(TOPIC, batch(b"c"))
        assert (await client.fetch(TOPIC, 0)).values == [b"a", b"b", b"b", b"c"]

    assert with_defect(scene, "forget-after-an-error") == [(1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("name", "error"), [("", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), ("take-gaps", ErrorCode.NONE)]
)
def test_take_gaps(name: str, error: ErrorCode) -> None:
    """A batch beyond the next is taken, and then the one that was missing; what continues is no firing."""

    async def scene(client: Client) -> None:
        await sent(client, b"a", sequence=0)
        assert (await sent(client, b"c", sequence=2))[0] is error
        if name:
            assert (await sent(client, b"b", sequence=1))[0] is error
            assert (await sent(client, b"d", sequence=3))[0] is ErrorCode.NONE
            assert (await client.fetch(TOPIC, 0)).values == [b"a", b"c", b"b", b"d"]

    assert with_defect(scene, *[name] * bool(name)) == ([(2, 1), (1, 2)] if name else [])


@pytest.mark.parametrize(("name", "offset"), [("", 0), ("forget-on-failover", 1)])
def test_forget_on_failover(name: str, offset: int) -> None:
    """A retry that reaches the next leader is stored again; one of what that leader stored is recognized."""
    storage = MemoryStorage()

    async def main() -> None:
        async with MemoryCluster(3, rules=planted(storage, *[name] * bool(name))) as cluster:
            await cluster.create_topic(TOPIC)
            first = cluster.leader(TOPIC)
            assert await sent(Client(await cluster.connect(first)), b"a", sequence=0) == (ErrorCode.NONE, 0)
            cluster.kill(first)
            await cluster.until(lambda: cluster.leader(TOPIC) not in (first, -1))
            client = Client(await cluster.connect(cluster.leader(TOPIC)))
            assert await sent(client, b"a", sequence=0) == (ErrorCode.NONE, offset)
            assert (await sent(client, b"b", sequence=1)) == (ErrorCode.NONE, offset + 1)
            assert (await sent(client, b"b", sequence=1)) == (ErrorCode.NONE, offset + 1)

    run(main())
    assert len(fired(storage)) == bool(name)
