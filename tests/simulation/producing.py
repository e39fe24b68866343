"""Producing: writers that are our own Producer, on the simulation's network and clock, settings drawn by the seed.

Owns what a program does with a producer: it sends, goes on when there is no room, hears of the outcomes, stands still
now and then, and crashes. A writer is a stream on one partition, or on several. Does not own retries, sequences or
connections: that is what is under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import copy_context
from functools import partial
from random import Random

from cluster.client.producer.delivery import ProduceError, RecordMetadata, RetriedBatch
from cluster.client.producer.outcomes import recorded_outcome
from cluster.client.producer.producer import Producer
from cluster.protocol.compression import CODEC_NAMES
from cluster.seams.memory_selector import ROOM_BYTES, LoopRunner, MemorySelector
from cluster.seams.memory_transport import MemoryTransport
from cluster.seams.randomness import derive
from tests.simulation.evidence import Evidence
from tests.simulation.keys import Keys
from tests.simulation.nodes import CLIENT
from tests.simulation.world import TopicPartition, World
from tests.support.virtual_time import OWNER, LoopClock

PAUSES_S = (0.0, 0.0, 0.01, 0.05, 0.2)
RECORDS = (1, 1, 2, 3, 8)
STILL_S = (0.2, 1.5, 4.0)
#: What a producer that is closed needs, at most, for its last step and the ends of its connections.
LAST_STEP_S = 0.1
#: How long a program waits that was refused, or whose producer cannot go on.
REFUSED_S = 0.1
PADDING_BYTES = (0, 0, 0, 40, 150)


def settings_of(random: Random, codec: int) -> dict[str, object]:
    """A producer's settings; acks=all and idempotence are its own defaults."""
    request_timeout_ms = random.choice((500, 1000, 3000))
    linger_ms = random.choice((0, 0, 0, 5, 50))
    batch_bytes = random.choice((120, 400, 400, 16_384))
    return {
        "compression.type": CODEC_NAMES[codec],
        "linger.ms": linger_ms,
        "batch.size": batch_bytes,
        "buffer.memory": batch_bytes * random.choice((4, 40)),
        "max.request.size": max(batch_bytes, random.choice((1000, 1_048_576))),
        "max.in.flight.requests.per.connection": random.choice((1, 2, 5, 5, 5)),
        "retries": random.choice((4, 2**31 - 1, 2**31 - 1, 2**31 - 1)),
        "request.timeout.ms": request_timeout_ms,
        "delivery.timeout.ms": linger_ms + request_timeout_ms * random.choice((1, 3, 40, 40)),
        "retry.backoff.ms": random.choice((10, 50)),
        "retry.backoff.max.ms": random.choice((50, 400)),
        "reconnect.backoff.ms": random.choice((10, 50)),
        "reconnect.backoff.max.ms": random.choice((50, 400)),
        "socket.connection.setup.timeout.ms": random.choice((500, 2000)),
        "metadata.max.age.ms": random.choice((500, 5000, 300_000)),
        "connections.max.idle.ms": random.choice((300, 540_000, 540_000)),
    }


class Life:
    """One producer from its beginning to its end. ``evidence`` has the partitions that it writes to; ``open`` are the
    values that have no outcome yet.
    """

    def __init__(
        self,
        world: World,
        name: str,
        evidence: Mapping[TopicPartition, Evidence],
        settings: dict[str, object],
        room_bytes: int,
    ) -> None:
        self.name = name
        self.open: set[bytes] = set()
        self._world = world
        self._evidence = evidence
        self._streams: dict[TopicPartition, list[bytes]] = {key: [] for key in evidence}
        self._sent = 0
        self._is_sending = self._is_killed = False
        #: The highest offset that was told of each partition.
        self._told_offsets = dict.fromkeys(evidence, 0)
        self._keys = Keys(world.topology, name)
        self._transport = MemoryTransport(world.network, CLIENT)
        context = copy_context()
        context.run(OWNER.set, name)
        selector = context.run(lambda: MemorySelector(self._transport, room_bytes=room_bytes))
        self._runner = context.run(LoopRunner, selector)
        self._producer = Producer(
            {"bootstrap.servers": world.bootstrap, **settings},
            selector=selector,
            clock=LoopClock(),
            random=derive(world.topology.seed, name),
            runner=self._runner,
            on_retry=self._retried,
        )
        for key, stream in self._streams.items():
            evidence[key].streams.append(stream)

    def __repr__(self) -> str:
        return f"<Life {self.name}, {self._sent} sent, {len(self.open)} without outcome>"

    @property
    def is_well(self) -> bool:
        """Whether it can send."""
        return not self._is_killed and self._producer.fatal_error is None

    def highest_offset(self, key: TopicPartition) -> int:
        """Below it something of this producer's is acknowledged; 0 if nothing is."""
        return self._told_offsets[key]

    def send(self, key: TopicPartition, padding_bytes: int) -> bool:
        """Send the next record. False if the producer has no room for it, or does not know the partition yet."""
        topic, partition = key
        evidence = self._evidence[key]
        value = b"%s/%d%s" % (self.name.encode(), self._sent, b"." * padding_bytes)
        record = self._keys.record(value)
        self._is_sending = True
        evidence.sent.add(value)
        future = self._producer.send(
            topic,
            record.value,
            record.key,
            partition,
            record.headers,
            on_delivery=partial(self._told, key, value),
        )
        self._is_sending = False
        if future.done():
            evidence.sent.discard(value)
            self._world.events.count("producer had no room")
            return False
        self._sent += 1
        self._streams[key].append(value)
        self.open.add(value)
        return True

    async def stand_still(self, for_s: float) -> None:
        """SIGSTOP, and SIGCONT: sockets and timers wait for the producer, brokers do not."""
        self._note(f"stands still for {for_s:g} s")
        self._world.events.count("producer stood still")
        self._world.loop.pause(self.name)
        try:
            await asyncio.sleep(for_s)
        finally:
            self._world.loop.resume(self.name)

    async def until_told(self) -> None:
        """Wait until everything has an outcome, or none will come."""
        while self.is_well and self.open:  # noqa: ASYNC110 - a producer that is killed signals nothing
            await asyncio.sleep(REFUSED_S)

    async def close(self) -> None:
        """All is told; nothing may be left in the producer, and of it."""
        metrics = self._producer.metrics()
        if metrics["buffer-available-bytes"] != metrics["buffer-total-bytes"]:
            self._problem("leftover", f"holds memory without records: {metrics}")
        self._world.events.count("producer began again", int(metrics["producer-epoch"]))
        self._producer.close()
        await asyncio.sleep(LAST_STEP_S)
        for what in self._world.loop.left_of(self.name):
            # What is on its way to it is the network's.
            if "MemoryWires." not in what:
                self._problem("leftover", what)

    def kill(self) -> None:
        """Crash."""
        if self._producer.fatal_error is not None:
            self._problem("broken", f"cannot go on: {self._producer.fatal_error}")
        self._is_killed = True
        self._runner.kill()
        self._transport.kill()

    def _told(self, key: TopicPartition, value: bytes, error: ProduceError | None, metadata: RecordMetadata) -> None:
        if self._is_sending:
            return
        evidence = self._evidence[key]
        if value not in self.open:
            self._problem("broken", f"two outcomes of {value!r}")
        self.open.discard(value)
        if error is None:
            self._note(f"{_number(value)} at {metadata.offset}")
            evidence.acknowledged[value] = metadata.offset
            self._told_offsets[key] = max(self._told_offsets[key], metadata.offset)
            return
        self._note(f"{_number(value)} failed: {error}")
        self._world.events.count(f"producer failed {error.error_code.name}")
        if recorded_outcome(error.error_code) == "fail":
            evidence.refused[value] = error.error_code.name

    def _retried(self, batch: RetriedBatch) -> None:
        self._note(f"retries {len(batch.on_delivery)}: {batch.error_code.name}")
        self._world.events.count(f"producer retried {batch.error_code.name}")

    def _note(self, text: str) -> None:
        self._world.events.note(self.name, text)

    def _problem(self, name: str, text: str) -> None:
        self._world.problems.append((name, f"{self.name}: {text}"))


def _number(value: bytes) -> str:
    return value.decode().rpartition("/")[2].rstrip(".")


class ProducingWriter:
    """One producer after another. It sends ``limit`` times some records and waits for all outcomes."""

    def __init__(self, world: World, number: int, evidence: Mapping[TopicPartition, Evidence], limit: int) -> None:
        self.name = f"writer {number}"
        self.keys = tuple(evidence)
        self.is_stopping = False
        self._world = world
        self._evidence = evidence
        self._limit = limit
        self._random = derive(world.topology.seed, "writer", number)
        self._settings = settings_of(self._random, world.topology.codec)
        self._window = self._random.choice((20, 200))
        self._room_bytes = self._random.choice((1, 1000, ROOM_BYTES))
        #: How likely the program stands still after a burst.
        self._stillness = self._random.choice((0.0, 0.0, 0.02))
        self._lives = 0
        self._sent = 0
        self._life: Life | None = None

    def __repr__(self) -> str:
        return f"<ProducingWriter {self.name} {self._sent} sent, {self._life!r}>"

    async def run(self) -> None:
        """Until it is stopped or has sent its records, and all of them have an outcome."""
        settings = " ".join(f"{name}={value}" for name, value in self._settings.items())
        partitions = " ".join(each.name for each in self._evidence.values())
        self._world.events.note(self.name, f"{partitions} {settings}")
        while True:
            self._lives += 1
            name = f"{self.name}.{self._lives}"
            life = self._life = Life(self._world, name, self._evidence, self._settings, self._room_bytes)
            while life.is_well and not self.is_stopping and self._sent < self._limit:
                self._sent += 1
                await self._burst(life)
                if self._random.random() < self._stillness:
                    await life.stand_still(self._random.choice(STILL_S))
                await asyncio.sleep(self._random.choice(PAUSES_S))
            await life.until_told()
            if life.is_well:
                await life.close()
                return
            life.kill()

    async def _burst(self, life: Life) -> None:
        for _ in range(self._random.choice(RECORDS)):
            key, padding_bytes = self._random.choice(list(self._evidence)), self._random.choice(PADDING_BYTES)
            while life.is_well and not self.is_stopping:
                if len(life.open) < self._window and life.send(key, padding_bytes):
                    break
                await asyncio.sleep(REFUSED_S)

    def deletable(self, key: TopicPartition) -> int:
        """What a real producer makes of a log that has forgotten it is under test: all that it was told of may go."""
        return 0 if self._life is None else self._life.highest_offset(key)

    def be_reborn(self) -> None:
        """Crash and come back as a new producer: what was in flight is never heard of again."""
        if self._life is not None:
            self._life.kill()
