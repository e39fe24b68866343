"""Story: one simulation from one integer: build it, let it go wrong, heal it, judge it.

Owns the phases. The outcome depends on the seed and the rules alone.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from cluster.broker.rules import Rules
from cluster.invariants import InvariantBroken
from cluster.seams.randomness import derive
from tests.cluster.control.virtual_time import run
from tests.simulation.inspector import Inspector
from tests.simulation.nemesis import Nemesis
from tests.simulation.oracle import Evidence, Finding, judge
from tests.simulation.readers import Reader
from tests.simulation.topology import TOPIC, Topology, topology
from tests.simulation.world import TopicPartition, World
from tests.simulation.writers import Writer

#: Virtual seconds: how long the cluster has to become whole, and clients to be done, once everything is healed.
WHOLE_S, DRAIN_S = 60, 30
#: Virtual seconds after which a simulation is given up.
LONGEST_S = 600
#: The batches of one writer, about: fewer of each if there are more of them.
BATCHES = 120


@dataclass(frozen=True)
class Outcome:
    """What became of one seed. ``findings`` is empty if all is well."""

    seed: int
    findings: tuple[Finding, ...]
    text: str
    coverage: Counter[str] = field(default_factory=Counter)

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.findings}


def tell(seed: int, rules: Rules | None = None) -> Outcome:
    """Run one seed in virtual time."""
    story = Story(topology(seed), rules or Rules())
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    collects = gc.isenabled()
    # once, at the end, is enough: the objects of a story live as long as it
    gc.disable()
    try:
        run(story.run(), LONGEST_S)
    except (Exception, asyncio.CancelledError) as error:
        story.world.problems.append(("broken", f"{type(error).__name__}: {error}"))
    finally:
        logging.disable(level)
        if collects:
            gc.enable()
    world = story.world
    outcome = Outcome(seed, tuple(world.problems), world.events.text, world.events.coverage)
    # The world is full of circles, and thousands of seeds may follow.
    del story, world
    gc.collect()
    return outcome


class Story:
    """One seed."""

    def __init__(self, topology: Topology, rules: Rules) -> None:
        self.topology = topology
        self.world = World(topology, rules)
        self.inspector = Inspector(self.world, self._broken)
        self.evidence: dict[TopicPartition, Evidence] = {}
        self._writers: list[Writer] = []
        self._readers: list[Reader] = []
        self._writing: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []
        self._random = derive(topology.seed, "story")

    def __repr__(self) -> str:
        return f"<Story {self.topology}>"

    async def run(self) -> None:
        """From the start to the judgment."""
        try:
            await self._run()
        finally:
            # Only if it went wrong is there anything left to end.
            for broker_id in sorted(self.world.processes):
                await self.world.bury(self.world.kill(broker_id))

    async def _run(self) -> None:
        world = self.world
        world.events.note("story", str(self.topology))
        self.inspector.install()
        await asyncio.gather(*(world.raise_up(broker_id) for broker_id in world.broker_ids))
        await world.until(lambda: len(world.processes) == 3 and world.controller() is not None)
        await world.create_topic(TOPIC, self.topology.partitions)
        for number in range(self.topology.partitions):
            self._add_partition(TOPIC, number)
        for number in range(self.topology.writers):
            self._add_writer((TOPIC, number % self.topology.partitions))
        nemesis = Nemesis(world, self._grown, self._reborn)
        await nemesis.run()
        await asyncio.sleep(self._random.choice((0.2, 1.0)))
        self.inspector.inspect_all()
        await nemesis.heal()
        await self._settle()
        self.inspector.inspect_all()
        self._judge()
        await self._end()

    def _broken(self, broker_id: int, error: InvariantBroken) -> None:
        self.world.problems.append(("invariant", f"broker {broker_id}: {error}"))

    # Partitions and their clients

    def _grown(self, topic: str, partition: int) -> None:
        self._add_partition(topic, partition)
        self._add_writer((topic, partition))

    def _add_partition(self, topic: str, partition: int) -> None:
        key = (topic, partition)
        self.world.partitions.append(key)
        evidence = self.evidence[key] = Evidence(f"{topic}-{partition}")
        reader = Reader(self.world, len(self._readers), key, evidence)
        self._readers.append(reader)
        self._reading.append(self.world.background(reader.run, reader.name))

    def _add_writer(self, key: TopicPartition) -> None:
        limit = BATCHES // self.topology.writers
        writer = Writer(self.world, len(self._writers), key, self.evidence[key], limit)
        self._writers.append(writer)
        self._writing.append(self.world.background(writer.run, writer.name))

    def _reborn(self) -> None:
        self._random.choice(self._writers).be_reborn()

    # The end

    async def _settle(self) -> None:
        world = self.world
        await self._reach("every partition has its whole ISR", world.is_whole, WHOLE_S)
        world.events.note("story", f"whole; {world.traffic}")
        for writer in self._writers:
            writer.is_stopping = True
        await self._reach("writers are done", lambda: all(task.done() for task in self._writing), DRAIN_S)
        await self._reach("replicas are equal", world.are_equal, DRAIN_S)
        await self._reach("readers are at the end", self._all_is_read, DRAIN_S)

    async def _reach(self, what: str, condition: Callable[[], bool], timeout_s: int) -> None:
        try:
            await self.world.until(condition, timeout_s)
        except TimeoutError:
            self.world.problems.append(("unavailable", f"not within {timeout_s} s: {what}"))

    def _all_is_read(self) -> bool:
        for reader in self._readers:
            replica = self.world.replica(1, reader.key)
            if replica is None or reader.position != replica.log.log_end_offset:
                return False
        return True

    def _judge(self) -> None:
        world = self.world
        for key, evidence in self.evidence.items():
            evidence.logs = {broker_id: world.log_bytes(broker_id, *key) for broker_id in world.broker_ids}
            evidence.leaders = {
                epoch: brokers
                for (topic, partition, epoch), brokers in world.leaders.items()
                if (topic, partition) == key
            }
            world.problems += judge(evidence)
            world.events.count("acknowledged", len(evidence.acknowledged))
        for broker_id, failure in world.failures:
            world.problems.append(("broker-failed", f"broker {broker_id}: {failure}"))

    async def _end(self) -> None:
        """Everybody leaves in order, and leaves nothing behind."""
        world = self.world
        world.retire_all()
        for task in (*self._writing, *self._reading):
            task.cancel()
        for broker_id in sorted(world.processes):
            await world.leave(broker_id)
        for name, text in world.problems:
            world.events.note("oracle", f"{name}: {text}")
        world.events.note("story", f"end; {world.traffic}; {len(world.problems)} findings")
