"""Clients of one simulation: who writes and reads which partition, and what is known of it.

Owns the writers, the readers and the evidence, which of them are our own Producer and Consumer, and what the nemesis
asks of them. Does not own how one writes or reads.

Our own clients are everywhere, also where records are taken away under them: the oracle knows what leaders appended,
whoever sent it. Where that happens, more of the writers are the rude ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from cluster.seams.randomness import Random, derive
from tests.simulation.consuming import ConsumingReader
from tests.simulation.evidence import Evidence
from tests.simulation.producing import ProducingWriter
from tests.simulation.readers import Reader
from tests.simulation.topology import TOPIC
from tests.simulation.world import TopicPartition, World
from tests.simulation.writers import Writer

#: The batches of one writer, about: fewer of each if there are more of them, more of all if there are more moves than
#: any seed draws.
BATCHES, MOST_STEPS = 120, 8
#: How many of the writers are ruder than any real producer, also where something is taken away, and how many of all
#: write to one partition alone.
RUDE, RUDE_IN_TROUBLE, ONE_PARTITION = 0.25, 0.5, 0.75


class SimulatedClients:
    """The nemesis' ``Clients``; ``moves`` are the names of those that the seed has."""

    def __init__(self, world: World, moves: Collection[str]) -> None:
        self.evidence: dict[TopicPartition, Evidence] = {}
        self._world = world
        self._moves = frozenset(moves)
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
        """Read a new partition. If it is another of its name, our own clients have gone on with that."""
        evidence = self.evidence.get(key)
        is_new = evidence is None
        if evidence is None:
            evidence = self.evidence[key] = self._new_evidence(key)
        self._world.partitions.append(key)
        self._read_by(Reader(self._world, self._numbers, key, evidence))
        if is_new:
            takes_away = self._takes_away(key)
            self._read_by(ConsumingReader(self._world, self._numbers, key, evidence, takes_away=takes_away))

    def _new_evidence(self, key: TopicPartition) -> Evidence:
        topology = self._world.topology
        return Evidence(
            f"{key[0]}-{key[1]}", is_compacted=topology.is_compacted, tombstones_go=topology.tombstones_go
        )  # fmt: skip

    def _takes_away(self, key: TopicPartition) -> bool:
        """Whether something that clients know of a partition may be taken away."""
        topology = self._world.topology
        is_remade = "remake-topic" in self._moves and key[0] != TOPIC
        return topology.is_unclean or topology.is_retained or is_remade or "delete-records" in self._moves

    def _read_by(self, reader: ConsumingReader | Reader) -> None:
        self._numbers += 1
        self._readers.append((reader, self._world.background(reader.run, reader.name)))

    def add_writer(self, key: TopicPartition) -> None:
        """One more stream on a partition. It may go to others as well."""
        topology = self._world.topology
        batches = BATCHES * max(topology.steps, MOST_STEPS) // MOST_STEPS // topology.writers
        if self._kinds.random() < (RUDE_IN_TROUBLE if self._takes_away(key) else RUDE):
            self._add_rude_writer(key, batches)
            return
        keys = [key] if self._kinds.random() < ONE_PARTITION else self._world.partitions
        evidence = {each: self.evidence[each] for each in keys}
        self._written_by(ProducingWriter(self._world, self._numbers, evidence, batches))

    def _add_rude_writer(self, key: TopicPartition, limit: int) -> None:
        self._written_by(Writer(self._world, self._numbers, key, self.evidence[key], limit))

    def _written_by(self, writer: ProducingWriter | Writer) -> None:
        self._numbers += 1
        self._writers.append((writer, self._world.background(writer.run, writer.name)))

    def close(self, key: TopicPartition) -> None:
        """A partition is about to be deleted. The rude leave it; our own clients are to find out by themselves."""
        self._world.partitions.remove(key)
        self.evidence[key].is_remade = True
        for writer, task in self._writers:
            if isinstance(writer, Writer) and key == writer.key:
                task.cancel()
        for reader, task in self._readers:
            if isinstance(reader, Reader) and reader.key == key:
                task.cancel()
        self._writers = [each for each in self._writers if not (isinstance(each[0], Writer) and key == each[0].key)]
        self._readers = [each for each in self._readers if not (isinstance(each[0], Reader) and key == each[0].key)]

    # What the nemesis asks for

    def reborn(self, random: Random) -> None:
        """One of the writers crashes and comes back as a new producer."""
        random.choice(self._writers)[0].be_reborn()

    def deletable(self, key: TopicPartition) -> int:
        """The offset below which records may be deleted, so that each rude writer keeps one in the log."""
        return min((writer.deletable(key) for writer, _ in self._writers if key in writer.keys), default=0)

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
