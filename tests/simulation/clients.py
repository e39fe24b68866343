"""Clients of one simulation: who writes and reads which partition, and what is known of it.

Owns the writers, the readers and the evidence, which of them are our own Producer and Consumer, and what the nemesis
asks of them. Does not own how one writes or reads.

Our own clients are where nothing is taken away under them: what they should make of that, no record of the simulator
could tell from a loss yet. Partitions are either kind, so that one seed may have both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from cluster.seams.randomness import Random, derive
from tests.simulation.consuming import ConsumingReader
from tests.simulation.oracle import Evidence
from tests.simulation.producing import ProducingWriter
from tests.simulation.readers import Reader
from tests.simulation.topology import TOPIC
from tests.simulation.world import TopicPartition, World
from tests.simulation.writers import Writer

#: The batches of one writer, about: fewer of each if there are more of them, more of all if there are more moves than
#: any seed draws.
BATCHES, MOST_STEPS = 120, 8
#: How many of the writers are ruder than any real producer, and how many of all write to one partition alone; where our
#: own clients are.
RUDE, ONE_PARTITION = 0.25, 0.75
#: How many of the partitions are kept for our own clients in seeds that delete records of the others.
KEPT = 0.5


class SimulatedClients:
    """The nemesis' ``Clients``; ``moves`` are the names of those that the seed has."""

    def __init__(self, world: World, moves: Collection[str]) -> None:
        self.evidence: dict[TopicPartition, Evidence] = {}
        self._world = world
        self._moves = frozenset(moves)
        #: The partitions that our own clients write and read.
        self._native: list[TopicPartition] = []
        self._kinds = derive(world.topology.seed, "kinds of clients")
        self._writers: list[tuple[ProducingWriter | Writer, asyncio.Task[None]]] = []
        self._readers: list[tuple[ConsumingReader | Reader, asyncio.Task[None]]] = []
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
        self._read_by(Reader(self._world, self._numbers, key, evidence))
        if self._may_be_native(key):
            self._native.append(key)
            self._read_by(ConsumingReader(self._world, self._numbers, key, evidence))

    def _may_be_native(self, key: TopicPartition) -> bool:
        """Whether nothing that clients know of a partition will be taken away."""
        if self._world.topology.is_unclean or ("remake-topic" in self._moves and key[0] != TOPIC):
            return False
        return "delete-records" not in self._moves or self._kinds.random() < KEPT

    def _read_by(self, reader: ConsumingReader | Reader) -> None:
        self._numbers += 1
        self._readers.append((reader, self._world.background(reader.run, reader.name)))

    def add_writer(self, key: TopicPartition) -> None:
        """One more stream on a partition. It may go to others as well."""
        topology = self._world.topology
        batches = BATCHES * max(topology.steps, MOST_STEPS) // MOST_STEPS // topology.writers
        if key not in self._native or self._kinds.random() < RUDE:
            self._add_rude_writer(key, batches)
            return
        keys = [key] if self._kinds.random() < ONE_PARTITION else self._native
        evidence = {each: self.evidence[each] for each in keys}
        self._written_by(ProducingWriter(self._world, self._numbers, evidence, batches))

    def _add_rude_writer(self, key: TopicPartition, limit: int) -> None:
        self._written_by(Writer(self._world, self._numbers, key, self.evidence[key], limit))

    def _written_by(self, writer: ProducingWriter | Writer) -> None:
        self._numbers += 1
        self._writers.append((writer, self._world.background(writer.run, writer.name)))

    def close(self, key: TopicPartition) -> None:
        """Leave a partition that is about to be deleted. Its evidence is worth nothing from now on."""
        self._world.partitions.remove(key)
        assert key not in self._native, "our own clients cannot leave a partition yet"
        for writer, task in self._writers:
            if key in writer.keys:
                task.cancel()
        for reader, task in self._readers:
            if reader.key == key:
                task.cancel()
        self._writers = [each for each in self._writers if key not in each[0].keys]
        self._readers = [each for each in self._readers if each[0].key != key]

    # What the nemesis asks for

    def reborn(self, random: Random) -> None:
        """One of the writers crashes and comes back as a new producer."""
        random.choice(self._writers)[0].be_reborn()

    def deletable(self, key: TopicPartition) -> int:
        """The offset below which records may be deleted, so that each writer keeps one in the log."""
        if key in self._native:
            return 0
        return min((writer.deletable for writer, _ in self._writers if key in writer.keys), default=0)

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
            self._add_rude_writer(key, 1)

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
