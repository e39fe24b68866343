"""Story: one simulation from one integer: build it, let it go wrong, heal it, judge it.

Owns the phases. The outcome depends on the seed, the rules and the moves that are left out alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace

from cluster.broker.rules import Rules
from cluster.invariants import InvariantBroken
from cluster.protocol.batch import iter_batches
from cluster.seams.randomness import derive
from tests.simulation.clients import SimulatedClients
from tests.simulation.coordination.coordination import Coordination
from tests.simulation.evidence import Evidence
from tests.simulation.inspector import Inspector
from tests.simulation.kept import Finding
from tests.simulation.nemesis.base import Nemesis, draw
from tests.simulation.nemesis.catalogue import MOVES
from tests.simulation.nemesis.plan import Planned
from tests.simulation.oracle import judge
from tests.simulation.removals import Removal
from tests.simulation.topology import TOPIC, Topology, topology
from tests.simulation.world import World
from tests.support.virtual_time import run

#: Virtual seconds: how long the cluster has to become whole, and clients to be done, once everything is healed.
WHOLE_S, DRAIN_S = 60, 30
#: And how long a new write to each partition may take then.
WRITE_S = 5
#: And how long each thing is waited for that comes after one that was not reached.
LATE_S = 5
#: And how long until whoever waits for a finding looks again.
LOOK_S = 0.1
#: Virtual seconds after which a simulation is given up.
LONGEST_S = 600


@dataclass(frozen=True)
class Outcome:
    """What became of one seed. ``findings`` is empty if all is well."""

    seed: int
    findings: tuple[Finding, ...]
    text: str
    coverage: Counter[str] = field(default_factory=Counter)
    #: Those that were made.
    moves: tuple[Planned, ...] = ()

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.findings}


def tell(
    seed: int,
    removal: Removal | None = None,
    *,
    steps: int | None = None,
    kept: Container[int] | None = None,
    until: str | None = None,
) -> Outcome:
    """Run one seed in virtual time, with the correct rules or without what ``removal`` takes away.

    ``steps`` are as many moves instead of those that the seed draws; of them only those with the numbers ``kept``, or
    all, are made. It ends as soon as there is a finding of the name ``until``.
    """
    drawn = topology(seed)
    with (removal or Removal()).applied() as rules:
        return _tell(drawn if steps is None else replace(drawn, steps=steps), rules, kept, until)


def _tell(topology: Topology, rules: Rules, kept: Container[int] | None, until: str | None) -> Outcome:
    story = Story(topology, rules, kept)
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    collects = gc.isenabled()
    # once, at the end, is enough: the objects of a story live as long as it
    gc.disable()
    try:
        run(story.run(until), LONGEST_S)
    except (Exception, asyncio.CancelledError) as error:
        story.world.problems.append(("broken", f"{type(error).__name__}: {error}"))
    finally:
        logging.disable(level)
        if collects:
            gc.enable()
    world = story.world
    moves = tuple(each for each in story.nemesis.plan if kept is None or each.number in kept)
    outcome = Outcome(topology.seed, tuple(world.problems), world.events.text, world.events.coverage, moves)
    # The world is full of circles, and thousands of seeds may follow.
    del story, world
    gc.collect()
    return outcome


class Story:
    """One seed, with those of its moves that have the numbers ``kept``, or with all."""

    def __init__(self, topology: Topology, rules: Rules, kept: Container[int] | None = None) -> None:
        self.topology = topology
        self.world = World(topology, rules)
        self.inspector = Inspector(self.world, self._broken)
        self.clients = SimulatedClients(self.world, draw(derive(topology.seed, "moves"), MOVES, topology))
        self.nemesis = Nemesis(self.world, self.clients, MOVES, kept)
        drawn = topology.coordination
        self.coordination = None if drawn is None else Coordination(self.world, drawn)
        self._random = derive(topology.seed, "end")
        self._was_all_reached = True
        #: Then the end is near, and not interrupted.
        self._is_judged = False

    def __repr__(self) -> str:
        return f"<Story {self.topology}>"

    async def run(self, until: str | None = None) -> None:
        """From the start to the judgment, or to a finding of the name ``until``."""
        try:
            await (self._run() if until is None else self._run_until(until))
        finally:
            # Only if it went wrong is there anything left to end.
            for broker_id in sorted(self.world.processes):
                await self.world.bury(self.world.kill(broker_id))

    async def _run_until(self, finding: str) -> None:
        running = asyncio.ensure_future(self._run())
        while not running.done() and not self._is_judged:
            if any(name == finding for name, _ in self.world.problems):
                running.cancel()
                break
            await asyncio.sleep(LOOK_S)
        with contextlib.suppress(asyncio.CancelledError):
            await running

    async def _run(self) -> None:
        world = self.world
        world.events.note("story", str(self.topology))
        self.inspector.install()
        await asyncio.gather(*(world.raise_up(broker_id) for broker_id in world.broker_ids))
        await world.until(lambda: len(world.processes) == len(world.broker_ids) and world.controller() is not None)
        await world.create_topic(TOPIC, self.topology.partitions, replicas=3)
        for number in range(self.topology.partitions):
            self.clients.add_partition((TOPIC, number))
        for number in range(self.topology.writers):
            self.clients.add_writer((TOPIC, number % self.topology.partitions))
        if self.coordination is not None:
            await self.coordination.begin()
        await self.nemesis.run()
        await asyncio.sleep(self._random.choice((0.2, 1.0)))
        self.inspector.inspect_all()
        await self.nemesis.heal()
        await self._settle()
        self.inspector.inspect_all()
        self._judge()
        await self._end()

    def _broken(self, broker_id: int, error: InvariantBroken) -> None:
        self.world.problems.append(("invariant", f"broker {broker_id}: {error}"))

    # The end

    async def _settle(self) -> None:
        world = self.world
        await self._reach("every partition has its whole ISR", world.is_whole, WHOLE_S)
        world.events.note("story", f"whole; {world.traffic}")
        self.clients.stop_writing()
        if self.coordination is not None:
            self.coordination.stop_writing()
        await self._reach("writers are done", self.clients.all_is_written, DRAIN_S)
        self.clients.write_once()
        await self._reach("a new write to each partition is acknowledged", self.clients.all_is_written, WRITE_S)
        await self._reach("replicas are equal", world.are_equal, DRAIN_S)
        await self._reach("readers are at the end", self.clients.all_is_read, DRAIN_S)
        if self.coordination is not None:
            await self._settle_beside(self.coordination)

    async def _settle_beside(self, coordination: Coordination) -> None:
        for what, condition, timeout_s in coordination.steps():
            await self._reach(what, condition, timeout_s)
        await self._reach("replicas are equal", self.world.are_equal, DRAIN_S)
        await coordination.look()

    async def _reach(self, what: str, condition: Callable[[], bool], timeout_s: int) -> None:
        """Wait until it is so. What comes after something that was not reached is not waited for that long: it hardly
        can be, and a cluster that tries in vain costs far more than one that is done."""
        timeout_s = timeout_s if self._was_all_reached else min(timeout_s, LATE_S)
        try:
            await self.world.until(condition, timeout_s)
        except TimeoutError:
            self._was_all_reached = False
            self.world.problems.append(("unavailable", f"not within {timeout_s} s: {what}"))

    def _judge(self) -> None:
        self._is_judged = True
        world = self.world
        for key in world.partitions:
            evidence = self.clients.evidence[key]
            evidence.ledger, evidence.former = world.ledger(key), world.former_ledgers(key)
            replicas = {broker_id: world.replica(broker_id, key) for broker_id in world.assigned(*key)}
            evidence.logs = {broker_id: world.log_bytes(broker_id, *key) for broker_id in replicas}
            evidence.starts = {
                broker_id: 0 if replica is None else replica.log.log_start_offset
                for broker_id, replica in replicas.items()
            }
            for replica in replicas.values():
                evidence.ledger.descends(() if replica is None else replica.log.epochs.entries)
            world.problems += judge(evidence)
            self._count(evidence)
        if self.coordination is not None:
            world.problems += self.coordination.judge()
        for broker_id, failure in world.failures:
            world.problems.append(("broker-failed", f"broker {broker_id}: {failure}"))

    def _count(self, evidence: Evidence) -> None:
        count = self.world.events.count
        count("acknowledged", len(evidence.acknowledged))
        epochs = len(evidence.ledger.leaders)
        count(f"partition with {epochs if epochs < 5 else '5 or more'} epochs written in")
        if max(evidence.starts.values(), default=0) > 0:
            count("log start moved in the end")
        if evidence.is_compacted:
            count("record compacted away", sum(map(_gone, evidence.logs.values())))
        if evidence.ledger.cuts:
            count("partition cut by an unclean election")

    async def _end(self) -> None:
        """Everybody leaves in order, and leaves nothing behind."""
        world = self.world
        world.retire_all()
        self.clients.leave()
        if self.coordination is not None:
            self.coordination.leave()
        for broker_id in sorted(world.processes):
            await world.leave(broker_id)
        for name, text in world.problems:
            world.events.note("oracle", f"{name}: {text}")
        world.events.note("story", f"end; {world.traffic}; {len(world.problems)} findings")


def _gone(log: bytes) -> int:
    """How many offsets between the first and the last batch of a log have no record."""
    headers = [header for _, header in iter_batches(log)]
    return (
        headers[-1].next_offset - headers[0].base_offset - sum(each.record_count for each in headers) if headers else 0
    )
