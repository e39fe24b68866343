"""Defects of crashes and epochs in a whole cluster: what becomes of its replicas, with the defect and without."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from cluster.broker.node import Node
from cluster.broker.rules import Rules
from cluster.defects import parse, with_storage_defects
from cluster.defects.firings import Firings
from cluster.protocol.batch import crc_ok, parse_header
from cluster.protocol.errors import CorruptBatch, ErrorCode
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.power_loss import Survivors
from cluster.seams.randomness import derive
from tests.cluster.defects.journal import fired, planted
from tests.simulation.client import Client, batch
from tests.simulation.nodes import Life, MemoryCluster, Process
from tests.support.virtual_time import run

TOPIC = "t"
Batches = list[tuple[int, int, int, bool]]


def batches_of(data: bytes) -> Batches | None:
    """(leader epoch, base offset, checksum, whether it holds) of each batch; None if there is something else."""
    found, at = [], 0
    try:
        while at < len(data):
            header = parse_header(data, at)
            sound = crc_ok(data, at, header.size_bytes)
            found.append((header.leader_epoch, header.base_offset, header.crc, sound))
            at += header.size_bytes
    except CorruptBatch:
        return None
    return found


class OneDisk(MemoryCluster):
    """The disk of the first broker has the defect, and it leads."""

    def __init__(self, name: str, notes: MemoryStorage) -> None:
        super().__init__(3)
        self._specs = [parse(each) for each in [name] * bool(name)]
        self._notes = notes
        self._itself = self.storages[1]

    async def _start(self, life: Life) -> Node:
        if life[0] == 1:
            self._itself = self.storages[1]
            self._itself.makedirs("/node")
            self._notes.makedirs("/node")
            firings = Firings("/node", 1, self._notes, ManualClock())
            disk = with_storage_defects(self._itself, self._specs, derive(1, "defects"), firings)
            self.storages[1] = cast(MemoryStorage, disk)
        return await super()._start(life)

    def kill(self, broker_id: int, *, power_loss: bool = False, survivors: Survivors | None = None) -> Process:
        self.storages[1] = self._itself
        return super().kill(broker_id, power_loss=power_loss, survivors=survivors)


class Planted(MemoryCluster):
    """Each life of a broker has rules of its own with the defect, as each process has."""

    def __init__(self, name: str, notes: MemoryStorage) -> None:
        super().__init__(3)
        self._names = [name] * bool(name)
        self._notes = notes

    def rules_of(self, broker_id: int) -> Rules:
        return planted(self._notes, *self._names)


async def send(cluster: MemoryCluster, *values: bytes, acks: int = -1) -> None:
    client = Client(await cluster.connect(cluster.leader(TOPIC)))
    for value in values:
        assert (await client.produce(TOPIC, batch(value), acks=acks)).error is ErrorCode.NONE


async def full(cluster: MemoryCluster) -> None:
    await cluster.until(lambda: len(cluster.isr(TOPIC)) == 3)


def values(prefix: bytes, count: int) -> list[bytes]:
    return [prefix + b"%02d" % number * 8 for number in range(count)]


@pytest.mark.parametrize("name", ["", "skip-recovery", "keep-zeros", "forget-epochs"])
def test_the_crash_of_a_follower(name: str) -> None:
    """It joins the ISR again. By right it has all that its leader has; with the defect a batch is torn, there are zeros
    in its log, or it no longer knows in which epoch it was written. It was noted, once; and the broker
    stops cleanly, so that its files can be held against it."""
    notes = MemoryStorage()

    async def main() -> None:
        async with Planted(name, notes) as cluster:
            await cluster.create_topic(TOPIC)
            await full(cluster)
            await send(cluster, *values(b"a", 10))
            # Until the high watermark is in its checkpoint.
            await asyncio.sleep(6)
            leader = cluster.leader(TOPIC)
            follower = min(set(cluster.broker_ids) - {leader})
            await cluster.crash(follower)
            await cluster.until(lambda: len(cluster.isr(TOPIC)) == 2)
            await cluster.start(follower)
            # One that knows no epoch is not counted on before there is something new to copy.
            await send(cluster, *values(b"b", 5))
            await full(cluster)
            ours, theirs = (batches_of(cluster.log_bytes(each, TOPIC)) for each in (follower, leader))
            assert theirs is not None and len(theirs) == 15
            known = cluster.nodes[follower].replicas.partitions[TOPIC, 0].log.epochs.entries
            assert (ours == theirs) == (name in ("", "forget-epochs"))
            assert (ours is None) == (name == "keep-zeros")
            if name == "skip-recovery":
                assert ours is not None and [sound for *_, sound in ours].count(False) == 1
            assert (known[0].start_offset == 0) == (name != "forget-epochs")
            await cluster.stop(follower)
            assert cluster.storages[follower].exists("/data/.kafka_cleanshutdown")

    run(main())
    assert len(fired(notes)) == bool(name)


@pytest.mark.parametrize("name", ["", "reuse-epochs"])
def test_a_tail_of_a_former_leader(name: str) -> None:
    """It has batches that no other replica has, and dies. By right it is cut when the broker is back; with the defect
    both leaders have another batch at one offset of one epoch."""
    notes = MemoryStorage()

    async def main() -> None:
        async with Planted(name, notes) as cluster:
            await cluster.create_topic(TOPIC)
            await full(cluster)
            await send(cluster, *values(b"a", 3))
            former = cluster.leader(TOPIC)
            others = set(cluster.broker_ids) - {former}
            for follower in others:
                cluster.pause(follower)
            # The first one answers a fetch that waits already.
            await send(cluster, *values(b"b", 3), acks=1)
            process = cluster.kill(former)
            for follower in others:
                cluster.resume(follower)
            await cluster.bury(process)
            await cluster.until(lambda: cluster.leader(TOPIC) in others)
            await send(cluster, *values(b"c", 4))
            await cluster.start(former)
            await full(cluster)
            ours, theirs = (batches_of(cluster.log_bytes(each, TOPIC)) for each in (former, cluster.leader(TOPIC)))
            assert ours is not None and theirs is not None and len(theirs) == 8
            places = {(epoch, offset): crc for epoch, offset, crc, _ in theirs}
            twice = [offset for epoch, offset, crc, _ in ours if places.get((epoch, offset), crc) != crc]
            assert twice == ([4, 5] if name else [])
            assert (ours == theirs) == (not name)

    run(main())
    assert [line["offset"] for line in fired(notes)] == [4] * bool(name)


@pytest.mark.parametrize("name", ["", "lose-unsynced"])
def test_the_crash_of_the_last_replica_in_sync(name: str) -> None:
    """It leads again. By right all that was acknowledged is there; with the defect it has lost what it had not synced,
    and the others, which have it, cut their logs."""
    notes = MemoryStorage()

    async def main() -> None:
        async with OneDisk(name, notes) as cluster:
            await cluster.create_topic(TOPIC)
            await full(cluster)
            await send(cluster, *values(b"a", 5))
            assert cluster.leader(TOPIC) == 1
            for follower in (2, 3):
                await cluster.crash(follower)
            await cluster.until(lambda: cluster.isr(TOPIC) == {1})
            await cluster.crash(1)
            for broker_id in cluster.broker_ids:
                await cluster.start(broker_id)
            await full(cluster)
            assert cluster.leader(TOPIC) == 1
            for broker_id in cluster.broker_ids:
                assert len(batches_of(cluster.log_bytes(broker_id, TOPIC)) or []) == (0 if name else 5)

    run(main())
    assert [line["partition"] for line in fired(notes)] == [0] * bool(name)
