"""ProducerLife: one of our Producers with a transactional id, in the loop: made, made to stand still, killed, closed.

Owns that, and that calls which cannot wait are made again. Does not own what a program does with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from random import Random

from cluster.client.producer.delivery import ProduceError, RecordMetadata
from cluster.client.producer.producer import Producer
from cluster.client.producer.transaction.transaction_errors import TransactionTimeout
from cluster.seams.memory_selector import LoopRunner, MemorySelector
from cluster.seams.memory_transport import MemoryTransport
from cluster.seams.randomness import derive
from tests.simulation.coordination.told import Transaction
from tests.simulation.nodes import CLIENT
from tests.simulation.producing import LAST_STEP_S
from tests.simulation.world import World
from tests.support.virtual_time import OWNER, LoopClock

#: Until a call that has no outcome yet is made again.
AGAIN_S = 0.02


def settings_of(random: Random) -> dict[str, object]:
    """Of all producers with one transactional id."""
    return {
        "transaction.timeout.ms": random.choice((1000, 2000, 5000)),
        "linger.ms": random.choice((0, 0, 5, 50)),
        "batch.size": random.choice((120, 16_384)),
        "request.timeout.ms": random.choice((500, 1000, 3000)),
        "delivery.timeout.ms": random.choice((4000, 30_000)),
        "retry.backoff.ms": random.choice((10, 50)),
        "retry.backoff.max.ms": random.choice((50, 400)),
        "reconnect.backoff.max.ms": random.choice((50, 400)),
        "socket.connection.setup.timeout.ms": random.choice((500, 2000)),
        "metadata.max.age.ms": random.choice((500, 5000, 300_000)),
    }


class ProducerLife:
    """From its making to its end."""

    def __init__(self, world: World, name: str, transactional_id: str, settings: dict[str, object]) -> None:
        self.name = name
        self._world = world
        self._transport = MemoryTransport(world.network, CLIENT)
        context = copy_context()
        context.run(OWNER.set, name)
        selector = context.run(MemorySelector, self._transport)
        self._runner = context.run(LoopRunner, selector)
        self.producer = Producer(
            {"bootstrap.servers": world.bootstrap, "transactional.id": transactional_id, **settings},
            selector=selector,
            clock=LoopClock(),
            random=derive(world.topology.seed, name),
            runner=self._runner,
        )

    def __repr__(self) -> str:
        return f"<ProducerLife {self.name}>"

    async def initialize(self, topic: str) -> None:
        """Get the id, and know a topic. Raises ``TransactionError``."""
        await self.repeat(self.producer.init_transactions)
        while True:
            try:
                self.producer.partitions_for(topic)
                return
            except ProduceError:
                await asyncio.sleep(AGAIN_S)

    async def repeat(self, call: Callable[[], None]) -> None:
        """A program in the loop cannot wait in a call: it makes the same call again until that has its outcome."""
        while True:
            try:
                return call()
            except TransactionTimeout:
                await asyncio.sleep(AGAIN_S)

    def send(self, transaction: Transaction, value: bytes, topic: str, partition: int) -> None:
        """Send a record of the transaction that is open."""
        transaction.values[value] = (topic, partition)
        self.producer.send(topic, value, partition=partition, on_delivery=partial(_told, transaction, value))

    async def stand_still(self, for_s: float) -> None:
        """SIGSTOP, and SIGCONT."""
        self._world.events.note(self.name, f"stands still for {for_s:g} s")
        self._world.loop.pause(self.name)
        try:
            await asyncio.sleep(for_s)
        finally:
            self._world.loop.resume(self.name)

    def kill(self) -> None:
        """Crash."""
        self._runner.kill()
        self._transport.kill()

    async def close(self) -> None:
        """In order; nothing may be left of it."""
        self.producer.close()
        await asyncio.sleep(LAST_STEP_S)
        for what in self._world.loop.left_of(self.name):
            # What is on its way to it is the network's.
            if "MemoryWires." not in what:
                self._world.problems.append(("leftover", f"{self.name}: {what}"))


def _told(transaction: Transaction, value: bytes, error: ProduceError | None, metadata: RecordMetadata) -> None:
    if error is None:
        transaction.acknowledged[value] = metadata.offset
