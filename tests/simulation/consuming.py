"""Consuming: readers that are our own Consumer, on the simulation's network and clock, settings drawn by the seed.

Owns what a program does with a consumer: it polls when something has come, and now and then besides, keeps what it was
given, and crashes. Does not own positions, metadata or connections: that is what is under test.
"""

from __future__ import annotations

import asyncio
import contextlib
from random import Random

from cluster.client.consumer.consumer import Consumer
from cluster.client.consumer.results import (
    ConsumerError,
    CorruptRecord,
    LogTruncated,
    OffsetOutOfRange,
    TopicRecreated,
)
from cluster.seams.memory_selector import MemorySelector
from cluster.seams.memory_transport import MemoryTransport
from cluster.seams.randomness import derive
from tests.simulation.evidence import Evidence
from tests.simulation.ledger import value_of
from tests.simulation.nodes import CLIENT
from tests.simulation.world import TopicPartition, World
from tests.support.virtual_time import LoopClock


def settings_of(random: Random, *, takes_away: bool) -> dict[str, object]:
    """A consumer's settings. It resets by itself only where something may be taken away under it.

    It asks for fewer bytes than one answer holds: brokers answer with whole batches, and wait if these are too few.
    """
    partition_bytes = random.choice((300, 2000, 1_048_576))
    return {
        "auto.offset.reset": random.choice(("none", "earliest")) if takes_away else "none",
        "isolation.level": random.choice(("read_uncommitted", "read_committed")),
        "fetch.min.bytes": min(random.choice((1, 1, 300)), partition_bytes // 4),
        "fetch.max.wait.ms": random.choice((20, 300, 500)),
        "max.partition.fetch.bytes": partition_bytes,
        "max.poll.records": random.choice((1, 10, 500)),
        "request.timeout.ms": random.choice((1000, 3000)),
        "retry.backoff.ms": random.choice((10, 50)),
        "retry.backoff.max.ms": random.choice((50, 400)),
        "reconnect.backoff.ms": random.choice((10, 50)),
        "reconnect.backoff.max.ms": random.choice((50, 400)),
        "socket.connection.setup.timeout.ms": random.choice((500, 2000)),
        "metadata.max.age.ms": random.choice((500, 5000, 300_000)),
        "connections.max.idle.ms": random.choice((700, 540_000, 540_000)),
    }


class ConsumingReader:
    """One consumer of one partition, from offset 0 until it is stopped."""

    def __init__(
        self,
        world: World,
        number: int | str,
        key: TopicPartition,
        evidence: Evidence,
        *,
        takes_away: bool = False,
        isolation: str | None = None,
    ) -> None:
        self.name = f"consumer {number}"
        self.key = key
        self.position = 0
        #: It hears of unclean elections by itself.
        self.is_up_to_date = True
        self._world = world
        self._evidence = evidence
        self._read: list[tuple[int, bytes, int]] = []
        self._random = derive(world.topology.seed, "consumer", number)
        self._settings = settings_of(self._random, takes_away=takes_away)
        if isolation is not None:
            self._settings["isolation.level"] = isolation
        #: How often a program looks that nothing has come for.
        self._interval_s = self._random.choice((0.05, 0.1, 0.3))
        self._has_come = asyncio.Event()
        evidence.read.append(self._read)

    def __repr__(self) -> str:
        return f"<ConsumingReader {self.name} at {self.position}>"

    async def run(self) -> None:
        """Until it is cancelled, or its partition cannot be read as it should."""
        settings = " ".join(f"{name}={value}" for name, value in self._settings.items())
        self._world.events.note(self.name, f"{self.key[0]}-{self.key[1]} {settings}")
        transport = MemoryTransport(self._world.network, CLIENT)
        selector = MemorySelector(transport)
        selector.on_event = self._has_come.set
        consumer = Consumer(
            {"bootstrap.servers": self._world.bootstrap, **self._settings},
            selector=selector,
            clock=LoopClock(),
            random=derive(self._world.topology.seed, self.name, "client"),
        )
        try:
            consumer.assign([self.key])
            consumer.seek(self.key, 0)
            while self._poll(consumer):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._interval_s):
                        await self._has_come.wait()
                self._has_come.clear()
        finally:
            consumer.close()
            transport.kill()

    def _poll(self, consumer: Consumer) -> bool:
        try:
            records = consumer.poll(0)
        except ConsumerError as error:
            return self._go_on(consumer, error)
        if records:
            self._world.events.note(self.name, f"read {records[0].offset}..{records[-1].offset}")
            self._world.events.count("records consumed", len(records))
            self._read += [
                (record.offset, value_of(record.value, record.headers), record.leader_epoch) for record in records
            ]
            # There may be more, without anything coming.
            self._has_come.set()
        with contextlib.suppress(TimeoutError):
            self.position = consumer.position(self.key, 0)
        return True

    def _go_on(self, consumer: Consumer, error: ConsumerError) -> bool:
        """What a program does without ``auto.offset.reset``: it goes on where the log parts from what it has read, or
        from its beginning, if its position was taken away by right.
        """
        self._world.events.note(self.name, f"at {self.position}: {type(error).__name__}")
        self._world.events.count(f"consumer was told {type(error).__name__}")
        is_cut = bool(self._world.observer.unclean.get(self.key)) or self._evidence.is_remade
        is_gone = max(self._evidence.deleted, self._world.ledger(self.key).retained) > self.position
        if isinstance(error, LogTruncated) and is_cut and error.divergent_offset >= 0:
            consumer.seek(self.key, error.divergent_offset)
        elif (isinstance(error, LogTruncated | TopicRecreated) and is_cut) or (
            isinstance(error, OffsetOutOfRange) and (is_cut or is_gone)
        ):
            consumer.seek_to_beginning([self.key])
        else:
            name = "log-corrupt" if isinstance(error, CorruptRecord) else "read-then-lost"
            self._world.problems.append((name, f"{self.name}: {type(error).__name__}: {error}"))
            return False
        self._has_come.set()
        return True
