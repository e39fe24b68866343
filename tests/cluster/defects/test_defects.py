"""Planted defects: what they do, that each firing is on disk before it takes effect, and how they are named."""

from __future__ import annotations

import asyncio

import pytest

from cluster.broker.rules import Rules
from cluster.defects import DefectError, DefectSpec, parse
from cluster.protocol.errors import ErrorCode
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.defects.journal import fired, planted
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

TOPIC = "t"


async def cluster_with(rules: Rules) -> tuple[MemoryCluster, Client]:
    cluster = await MemoryCluster(1, rules=rules).__aenter__()
    await cluster.create_topic(TOPIC)
    return cluster, Client(await cluster.connect(1))


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("lose-acked", DefectSpec("lose-acked", 1.0)),
        ("lose-acked:0.01", DefectSpec("lose-acked", 0.01)),
        (" forget-sequences ", DefectSpec("forget-sequences")),
    ],
)
def test_names(text: str, spec: DefectSpec) -> None:
    """NAME or NAME:probability, and back."""
    assert parse(text) == spec
    assert parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("lose-aked", "did you mean 'lose-acked'"),
        ("xyz", "'gapless list defects' shows all"),
        ("lose-acked:2", "above 0 and at most 1"),
        ("lose-acked:0", "above 0 and at most 1"),
        ("lose-acked:often", "above 0 and at most 1"),
        ("lose-acked:nan", "above 0 and at most 1"),
        ("forget-sequences:0.5", "takes no probability"),
    ],
)
def test_names_that_cannot_be_meant(text: str, hint: str) -> None:
    """One clear line with what would be right."""
    with pytest.raises(DefectError, match=hint):
        parse(text)


def test_without_defects_the_rules_are_the_rules() -> None:
    """Nothing is wrapped that was not asked for."""
    assert planted(MemoryStorage()) == Rules()


def test_lose_acked_acknowledges_and_stores_nothing() -> None:
    """The offset it would have had, no offset used, the producer's state moved on, the firing written down."""

    async def main() -> None:
        storage = MemoryStorage()
        cluster, client = await cluster_with(planted(storage, "lose-acked"))
        for sequence in range(3):
            answer = await client.produce(TOPIC, batch(b"v", producer_id=5, base_sequence=sequence))
            assert (answer.error, answer.base_offset) == (ErrorCode.NONE, 0)
        again = await client.produce(TOPIC, batch(b"v", producer_id=5, base_sequence=1), acks=1)
        assert (again.error, again.base_offset) == (ErrorCode.NONE, 0)
        ahead = await client.produce(TOPIC, batch(b"v", producer_id=5, base_sequence=9))
        assert ahead.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert (await client.list_offset(TOPIC, -1))[1] == 0
        assert [(line["base_sequence"], line["offset"], line["count"]) for line in fired(storage)] == [
            (0, 0, 1), (1, 0, 1), (2, 0, 1)
        ]  # fmt: skip
        assert fired(storage)[0]["defect"] == "lose-acked"
        await cluster.__aexit__()

    run(main())


def test_lose_acked_spares_most_at_a_small_probability() -> None:
    """Every batch but the recorded ones is stored, at its offset."""

    async def main() -> None:
        storage = MemoryStorage()
        cluster, client = await cluster_with(planted(storage, "lose-acked:0.1"))
        for number in range(100):
            assert (await client.produce(TOPIC, batch(b"%d" % number))).error is ErrorCode.NONE
        count = len(fired(storage))
        assert 0 < count < 30
        assert (await client.list_offset(TOPIC, -1))[1] == 100 - count
        await cluster.__aexit__()

    run(main())


def test_lose_acked_of_what_is_not_committed_waits_as_usual() -> None:
    """Under acks=all the lost batch is acknowledged when what stands before it is committed."""

    async def main() -> None:
        storage = MemoryStorage()
        cluster = await MemoryCluster(3, rules=planted(storage, "lose-acked")).__aenter__()
        await cluster.create_topic(TOPIC)
        client = Client(await cluster.connect(cluster.leader(TOPIC)))
        async with asyncio.timeout(1):
            assert (await client.produce(TOPIC, batch(b"v"))).base_offset == 0
        await cluster.__aexit__()

    run(main())


def test_forget_sequences_appends_a_retry_again() -> None:
    """Duplicates and gaps are accepted; only what the right check would have stopped is a firing."""

    async def main() -> None:
        storage = MemoryStorage()
        cluster, client = await cluster_with(planted(storage, "forget-sequences"))
        for sequence in (0, 1, 1, 7):
            answer = await client.produce(TOPIC, batch(b"%d" % sequence, producer_id=5, base_sequence=sequence))
            assert answer.error is ErrorCode.NONE
        assert (await client.fetch(TOPIC, 0)).values == [b"0", b"1", b"1", b"7"]
        assert [(line["base_sequence"], line["offset"]) for line in fired(storage)] == [(1, 2), (7, 3)]
        assert cluster.nodes[1].counters.produce_retries == 1
        await cluster.__aexit__()

    run(main())


def test_refuse_batches_stores_nothing_and_says_so() -> None:
    """A retriable error, no record in the log, and the same batch is taken when it comes again."""

    async def main() -> None:
        storage = MemoryStorage()
        cluster, client = await cluster_with(planted(storage, "refuse-batches:0.3"))
        for number in range(20):
            while (answer := await client.produce(TOPIC, batch(b"%d" % number))).error:
                assert answer.error is ErrorCode.NOT_ENOUGH_REPLICAS
            assert answer.base_offset == number
        assert fired(storage)
        assert (await client.list_offset(TOPIC, -1))[1] == 20
        await cluster.__aexit__()

    run(main())


def test_a_firing_that_cannot_be_written_does_not_happen() -> None:
    """The record comes first: if it fails, the batch is neither lost nor acknowledged."""

    class Full(MemoryStorage):
        def append_line(self, path: str, line: str) -> None:
            raise OSError(28, "no space left")

    async def main() -> None:
        cluster, client = await cluster_with(planted(Full(), "lose-acked"))
        with pytest.raises(ConnectionError):
            await client.produce(TOPIC, batch(b"v"))
        other = Client(await cluster.connect(1))
        assert (await other.list_offset(TOPIC, -1))[1] == 0
        await cluster.__aexit__()

    run(main())
