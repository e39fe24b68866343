"""What coordinators refuse, over the wire: Kafka's error each, and afterwards all is as if no one had asked.

Also a coordinator's own record that is damaged on disk: what depends on it waits, nothing is lost, the broker lives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cluster.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from cluster.coordinator.partitioning import partition_for
from cluster.protocol.batch import HEADER_BYTES
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.groups.scenes import Member, member_of, stable, with_groups
from tests.cluster.broker.scenes import TOPIC
from tests.cluster.broker.transactions.scenes import (
    GROUP,
    ID,
    PARTITIONS,
    TxnProducer,
    committed_offset,
    is_over,
    read_committed,
    with_transactions,
)
from tests.simulation.nodes import MemoryCluster

E = ErrorCode
KEY, OTHER = (TOPIC, 0), (TOPIC, 1)


def as_other(
    producer: TxnProducer, *, transactional_id: str = ID, producer_id: int | None = None, epoch: int = 0
) -> TxnProducer:
    """The same producer, but for what it says about itself. ``epoch`` is added to its own."""
    other = TxnProducer(producer.cluster, transactional_id)
    other.producer_id = producer.producer_id if producer_id is None else producer_id
    other.producer_epoch = producer.producer_epoch + epoch
    return other


async def codes_of(producer: TxnProducer, version: int = 3) -> list[ErrorCode]:
    """What each request of a transaction is answered: add a partition, add offsets, commit them, write, end."""
    added = (await producer.add([KEY], version=version))[KEY]
    offsets = await producer.add_offsets(version=version)
    committed = (await producer.commit_offsets({KEY: 99}))[KEY]
    written = (await producer.write(b"refused")).error
    return [added, offsets, committed, written, await producer.end(commit=False, version=version)]


def test_no_one_else_touches_a_transaction() -> None:
    """A producer of the past or of the future, one with another producer id, an id that no one has: none of their
    requests changes the open transaction, which is committed with its record and its offset."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.begin()
        await producer.add([KEY])
        await producer.add_offsets()
        assert (await producer.write(b"kept")).error is E.NONE
        assert await producer.commit_offsets({KEY: 7}) == {KEY: E.NONE}
        fenced, unknown = E.PRODUCER_FENCED, E.INVALID_PRODUCER_ID_MAPPING
        old, mapping = E.INVALID_PRODUCER_EPOCH, [unknown] * 5
        for epoch in (-1, 1):
            # By the names that each version has for it.
            stranger = as_other(producer, epoch=epoch)
            assert await codes_of(stranger) == [fenced, fenced, old, old, fenced], epoch
            assert await codes_of(stranger, version=0) == [old] * 5, epoch
        assert await codes_of(as_other(producer, producer_id=producer.producer_id + 1)) == mapping
        # Of an id that no one has: partitions go by the producer, whose transaction is open there.
        nobody = as_other(producer, transactional_id="nobody")
        assert await nobody.add([KEY]) == {KEY: unknown}
        assert [await nobody.add_offsets(), await nobody.end(commit=False)] == [unknown, unknown]
        assert await producer.end(commit=True) is E.NONE
        await cluster.until(lambda: is_over(cluster))
        assert await read_committed(cluster) == [b"kept"]
        assert await committed_offset(cluster, GROUP, KEY) == 7
        assert cluster.failures == []

    with_transactions(check, brokers=3)


def test_requests_in_the_wrong_state() -> None:
    """INVALID_TXN_STATE: an end without a transaction, or other than what was decided; records and offsets for what is
    not in it. The same end again is answered as the first time."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        for commit in (True, False):
            assert await producer.end(commit=commit) is E.INVALID_TXN_STATE
        assert (await producer.write(b"not begun")).error is E.INVALID_TXN_STATE
        for commit in (True, False):
            await producer.add([KEY])
            assert (await producer.write(b"committed" if commit else b"aborted")).error is E.NONE
            assert (await producer.write(b"not added", 1)).error is E.INVALID_TXN_STATE
            assert await producer.commit_offsets({KEY: 1}) == {KEY: E.INVALID_TXN_STATE}
            assert await producer.add([("unknown", 0), OTHER]) == {
                ("unknown", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
                OTHER: E.OPERATION_NOT_ATTEMPTED,
            }
            assert await producer.end(commit=commit) is E.NONE
            await cluster.until(lambda: is_over(cluster))
            assert await producer.end(commit=not commit) is E.INVALID_TXN_STATE
            assert await producer.end(commit=commit) is E.NONE
        assert await read_committed(cluster) == [b"committed"]
        assert await read_committed(cluster, 1, isolation=0) == []
        assert await committed_offset(cluster, GROUP, KEY) == -1
        assert cluster.failures == []

    with_transactions(check, brokers=3)


def test_no_stranger_touches_a_group() -> None:
    """An unknown member, an old generation, one member too many: the group stays Stable, and its offsets what they
    were."""

    async def asked_by(member: Member) -> list[Any]:
        synced, left = await member.sync(), await member.leave()
        committed = (await member.commit({KEY: 99}))[KEY]
        return [await member.heartbeat(), E(synced.error_code), E(left.members[0].error_code), committed]

    def as_stranger(member: Member, **changes: object) -> Member:
        other = Member(member.client, member.group_id)
        for name, value in {"member_id": member.member_id, "generation_id": member.generation_id, **changes}.items():
            setattr(other, name, value)
        return other

    async def check(cluster: MemoryCluster, _member: Member) -> None:
        first, second = await stable(cluster, 2)
        assert await first.commit({KEY: 7}) == {KEY: E.NONE}
        unknown = [E.UNKNOWN_MEMBER_ID] * 4
        assert await asked_by(as_stranger(first, member_id="stranger")) == unknown
        for generation_id in (0, 99):
            stranger = as_stranger(first, generation_id=generation_id)
            assert await stranger.heartbeat() is E.ILLEGAL_GENERATION
            assert E((await stranger.sync()).error_code) is E.ILLEGAL_GENERATION
            assert await stranger.commit({KEY: 99}) == {KEY: E.ILLEGAL_GENERATION}
        # As an administrator commits, who is no member: only to a group without members.
        assert await as_stranger(first, member_id="", generation_id=-1).commit({KEY: 99}) == {KEY: E.UNKNOWN_MEMBER_ID}
        assert E((await (await member_of(cluster)).joined()).error_code) is E.GROUP_MAX_SIZE_REACHED
        assert [await each.heartbeat() for each in (first, second)] == [E.NONE, E.NONE]
        assert await first.committed([KEY]) == (E.NONE, {KEY: 7})
        assert cluster.failures == []

    with_groups(check, group_max_size="2")


async def rotten(cluster: MemoryCluster, topic: str, partition: int) -> Callable[[], None]:
    """Restart the broker with a bit of a record turned over on its disk. Returns what turns it back."""
    storage, directory = cluster.storages[1], f"/data/{topic}-{partition}"
    [name] = [each for each in storage.listdir(directory) if each.endswith(".log")]
    await cluster.stop(1)
    file = storage.open(f"{directory}/{name}", create=False)

    def turn() -> None:
        [byte] = file.pread(1, HEADER_BYTES + 1)
        file.pwrite(bytes([byte ^ 1]), HEADER_BYTES + 1)

    turn()
    await cluster.start(1)
    led = [
        (TOPIC, 0),
        *((each, number) for each in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC) for number in range(PARTITIONS)),
    ]
    await cluster.until(lambda: all(cluster.leader(*each) == 1 for each in led))
    return turn


async def until_answered(ask: Callable[[], Awaitable[ErrorCode]]) -> ErrorCode:
    """The first answer that is not to be asked for again."""
    while (code := await ask()).retriable:  # noqa: ASYNC110 - brokers tell no one when they are ready
        await asyncio.sleep(0.1)
    return code


@pytest.mark.parametrize("topic", [TRANSACTIONS_TOPIC, OFFSETS_TOPIC])
def test_an_internal_record_that_is_damaged_on_disk(topic: str, caplog: pytest.LogCaptureFixture) -> None:
    """What is in its partition waits for it, and everything else is served; with the bytes as they were all is there
    again. The broker says so once, and does not end."""
    home = partition_for(ID if topic == TRANSACTIONS_TOPIC else GROUP, PARTITIONS)
    elsewhere = next(each for each in map(str, range(99)) if partition_for(each, PARTITIONS) != home)

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add([KEY])
        assert (await producer.write(b"kept")).error is E.NONE
        member = await member_of(cluster)
        assert await member.commit({KEY: 7}) == {KEY: E.NONE}
        turn_back = await rotten(cluster, topic, home)
        is_of_groups = topic == OFFSETS_TOPIC

        async def ask(name: str) -> ErrorCode:
            if is_of_groups:
                return (await (await member_of(cluster, name)).committed())[0]
            return await TxnProducer(cluster, name).init()

        assert await until_answered(lambda: ask(elsewhere)) is E.NONE
        for _ in range(3):
            assert await ask(GROUP if is_of_groups else ID) is E.COORDINATOR_LOAD_IN_PROGRESS
        turn_back()
        if is_of_groups:
            again = await member_of(cluster)
            assert await until_answered(lambda: ask(GROUP)) is E.NONE
            assert await again.committed() == (E.NONE, {KEY: 7})
        assert await until_answered(lambda: producer.end(commit=True)) is E.NONE
        await cluster.until(lambda: is_over(cluster))
        assert await read_committed(cluster) == [b"kept"]
        assert cluster.failures == []

    with caplog.at_level(logging.CRITICAL):
        with_transactions(check)
    [told] = [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]
    assert told.startswith(f"{topic}-{home} cannot be loaded")
