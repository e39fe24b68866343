"""Clients of one simulation: who writes and reads which partition, and what is known of it.

Owns the writers, the readers and the evidence, and what the nemesis asks of them. Does not own how one writes or reads.
"""

from __future__ import annotations

import asyncio

from cluster.seams.randomness import derive
from tests.simulation.oracle import Evidence
from tests.simulation.readers import Reader
from tests.simulation.world import TopicPartition, World
from tests.simulation.writers import Writer

#: The batches of one writer, about: fewer of each if there are more of them.
BATCHES = 120


class SimulatedClients:
    """The nemesis' ``Clients``."""

    def __init__(self, world: World) -> None:
        self.evidence: dict[TopicPartition, Evidence] = {}
        self._world = world
        self._random = derive(world.topology.seed, "story")
        self._writers: list[tuple[Writer, asyncio.Task[None]]] = []
        self._readers: list[tuple[Reader, asyncio.Task[None]]] = []
        self._numbers = 0

    def __repr__(self) -> str:
        return f"<SimulatedClients of {sorted(self.evidence)}>"

    # Partitions that come and go

    def grow(self, key: TopicPartition) -> None:
        """Write to a new partition and read it."""
        self.add_partition(key)
        self.add_writer(key)

    def add_partition(self, key: TopicPartition) -> None:
        """Read a new partition. What was sent to a former one of its name may still arrive, and is known."""
        evidence = self.evidence.get(key)
        sent = {} if evidence is None else evidence.sent
        evidence = self.evidence[key] = Evidence(f"{key[0]}-{key[1]}", sent=sent)
        self._world.partitions.append(key)
        reader = Reader(self._world, self._numbers, key, evidence)
        self._numbers += 1
        self._readers.append((reader, self._world.background(reader.run, reader.name)))

    def add_writer(self, key: TopicPartition, limit: int | None = None) -> Writer:
        """One more producer on a partition; ``limit`` is how many batches it sends."""
        batches = BATCHES // self._world.topology.writers if limit is None else limit
        writer = Writer(self._world, self._numbers, key, self.evidence[key], batches)
        self._numbers += 1
        self._writers.append((writer, self._world.background(writer.run, writer.name)))
        return writer

    def close(self, key: TopicPartition) -> None:
        """Leave a partition that is about to be deleted. Its evidence is worth nothing from now on."""
        self._world.partitions.remove(key)
        for who, task in (*self._writers, *self._readers):
            if who.key == key:
                task.cancel()
        self._writers = [each for each in self._writers if each[0].key != key]
        self._readers = [each for each in self._readers if each[0].key != key]

    # What the nemesis asks for

    def reborn(self) -> None:
        """One of the writers crashes and comes back as a new producer."""
        self._random.choice(self._writers)[0].be_reborn()

    def deletable(self, key: TopicPartition) -> int:
        """The offset below which records may be deleted, so that each writer keeps one in the log."""
        return min((writer.deletable for writer, _ in self._writers if writer.key == key), default=0)

    def deleting(self, key: TopicPartition, offset: int) -> None:
        """All below this offset may be deleted from now on."""
        evidence = self.evidence[key]
        evidence.deleted = max(evidence.deleted, offset)

    # The end

    def stop_writing(self) -> None:
        for writer, _ in self._writers:
            writer.is_stopping = True

    def write_once(self) -> None:
        """A fresh producer writes one batch to each partition."""
        for key in self._world.partitions:
            self.add_writer(key, 1)

    def all_is_written(self) -> bool:
        return all(task.done() for _, task in self._writers)

    def all_is_read(self) -> bool:
        """Whether every reader has come to the end of its partition."""
        for reader, _ in self._readers:
            believers = self._world.believers(*reader.key)
            replica = self._world.replica(believers[0], reader.key) if believers else None
            if replica is None or reader.position != replica.log.log_end_offset or not reader.is_up_to_date:
                return False
        return True

    def leave(self) -> None:
        for _, task in (*self._writers, *self._readers):
            task.cancel()
