"""MemberLife: one of our Consumers as a member of a group, in the loop: what it is given, and where it began.

Owns that, and its crash. Does not own when it commits, leaves or comes back (``members``, ``copying``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from contextvars import copy_context
from random import Random

from cluster.client.consumer.consumer import Consumer
from cluster.client.consumer.group.rebalance_listener import RebalanceListener
from cluster.client.consumer.results import ConsumerRecord
from cluster.seams.memory_selector import LoopRunner, MemorySelector
from cluster.seams.memory_transport import MemoryTransport
from cluster.seams.randomness import derive
from tests.simulation.coordination.drawn import INPUT
from tests.simulation.coordination.told import Start, Told
from tests.simulation.nodes import CLIENT
from tests.simulation.seen import TopicPartition
from tests.simulation.world import World
from tests.support.virtual_time import OWNER, LoopClock


def settings_of(random: Random) -> dict[str, object]:
    """Of all members of one group."""
    return {
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": random.choice(("range", "cooperative-sticky")),
        "session.timeout.ms": random.choice((1000, 3000)),
        "heartbeat.interval.ms": 300,
        "max.poll.interval.ms": random.choice((3000, 6000)),
        "max.poll.records": random.choice((1, 10, 500)),
        "fetch.max.wait.ms": random.choice((100, 500)),
        "request.timeout.ms": random.choice((1000, 3000)),
        "retry.backoff.ms": random.choice((20, 50)),
        "retry.backoff.max.ms": random.choice((50, 400)),
        "reconnect.backoff.max.ms": random.choice((50, 400)),
        "socket.connection.setup.timeout.ms": random.choice((500, 2000)),
        "metadata.max.age.ms": random.choice((500, 5000, 300_000)),
    }


class MemberLife(RebalanceListener):
    """From its first JoinGroup to its end. ``positions`` are where it is in what it is assigned, as far as it knows;
    ``stored`` what it was told to be committed since it was assigned that."""

    def __init__(self, world: World, name: str, group_id: str, settings: Mapping[str, object], told: Told) -> None:
        self.name = name
        self.group_id = group_id
        self.positions: dict[TopicPartition, int] = {}
        self.stored: dict[TopicPartition, int] = {}
        self._world = world
        self._told = told
        #: Partition -> since when it is assigned, until something of it was given.
        self._unread: dict[TopicPartition, float] = {}
        self._has_come = asyncio.Event()
        self._transport = MemoryTransport(world.network, CLIENT)
        context = copy_context()
        context.run(OWNER.set, name)
        selector = context.run(MemorySelector, self._transport)
        selector.on_event = self._has_come.set
        own = context.run(MemorySelector, self._transport)
        self._runner = context.run(LoopRunner, own)
        self.consumer = Consumer(
            {"bootstrap.servers": world.bootstrap, "group.id": group_id, **settings},
            selector=selector,
            clock=LoopClock(),
            random=derive(world.topology.seed, name),
            group_selector=own,
            group_runner=self._runner,
        )
        self.consumer.subscribe([INPUT], self)

    def __repr__(self) -> str:
        return f"<MemberLife {self.name}, {self.positions}>"

    async def something(self, longest_s: float) -> None:
        """Wait until there may be something to do, for so long at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._has_come.wait()
        self._has_come.clear()

    def poll(self) -> list[ConsumerRecord]:
        """What has come. Raises ``ConsumerError``."""
        records = self.consumer.poll(0)
        for record in records:
            key = (record.topic, record.partition)
            since_s = self._unread.pop(key, None)
            if since_s is not None:
                self._told.starts.append(Start(self.group_id, key, since_s, record.offset))
            delivered = self._told.delivered.setdefault((self.group_id, key), {})
            delivered[record.offset] = record.value or b""
        if records:
            self._world.events.count("records consumed by a group", len(records))
            self._world.events.note(self.name, f"was given {_ranges(records)}")
            self._has_come.set()
        for key in self.consumer.assignment():
            with contextlib.suppress(TimeoutError):
                self.positions[key] = self.consumer.position(key, 0)
        return records

    def kill(self) -> None:
        """Crash."""
        self._runner.kill()
        self._transport.kill()

    async def leave(self) -> None:
        """In order."""
        self.consumer.close()
        await asyncio.sleep(0.1)

    # What the consumer calls

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        for key in partitions:
            self.positions.pop(key, None)
            self.stored.pop(key, None)
            self._unread[key] = self._world.loop.now
        self._note("is assigned", partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions)
        self._note("gives away", partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions)
        self._world.events.count("member lost its partitions")
        self._note("has lost", partitions)

    def _give_up(self, partitions: list[TopicPartition]) -> None:
        for key in partitions:
            self.positions.pop(key, None)
            self._unread.pop(key, None)

    def _note(self, what: str, partitions: list[TopicPartition]) -> None:
        self._world.events.count("rebalance of a member")
        names = " ".join(f"{topic}-{number}" for topic, number in partitions) or "nothing"
        self._world.events.note(self.name, f"{what} {names}")


def _ranges(records: list[ConsumerRecord]) -> str:
    found: dict[str, list[int]] = {}
    for record in records:
        found.setdefault(f"{record.topic}-{record.partition}", []).append(record.offset)
    return " ".join(f"{name}@{offsets[0]}..{offsets[-1]}" for name, offsets in found.items())
