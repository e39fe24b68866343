"""Nemesis: the frame in which things go wrong: which moves a seed has, when they begin, and that all of them end.

Owns the draws and what moves must know of each other: a broker has at most one fault of its process at a time, and
while one's disk is poorer than the others count on, the others are spared (``bounds``). Does not own the moves, nor
which of them begins when (``plan``). Everything is whole again after ``heal``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from cluster.seams.randomness import Random, derive
from tests.simulation.nemesis.plan import Planned, plan
from tests.simulation.topology import Topology
from tests.simulation.world import TopicPartition, World

#: The share of the moves that a seed does without, and by what the weights of the others are multiplied.
ABSENT = 0.4
FACTORS = (1, 1, 4)

#: The generator of the move that runs, and of what it does in the background.
_RANDOM: ContextVar[Random] = ContextVar("random of a move")


class Clients(Protocol):
    """What the nemesis asks of those who write and read."""

    def grow(self, key: TopicPartition) -> None:
        """There is a new partition: write to it and read it."""
        ...

    def close(self, key: TopicPartition) -> None:
        """A partition is about to be deleted: leave it."""
        ...

    def reborn(self, random: Random) -> None:
        """One of the writers crashes and comes back as a new producer."""
        ...

    def deletable(self, key: TopicPartition) -> int:
        """The offset below which records may be deleted and no writer is forgotten by the log."""
        ...

    def deleting(self, key: TopicPartition, offset: int) -> None:
        """All below this offset may be deleted from now on."""
        ...


class Move(NamedTuple):
    """``weight`` says how often compared to others; ``fits`` whether a seed can have it."""

    action: Callable[[Nemesis], Awaitable[None]]
    weight: int
    fits: Callable[[Topology], bool] = lambda topology: True


def draw(random: Random, moves: Mapping[str, Move], topology: Topology) -> dict[str, int]:
    """The moves of one seed with their weights (swarm testing: what all seeds have, hides what few would show)."""
    fitting = [name for name, move in moves.items() if move.fits(topology)]
    drawn = {name: moves[name].weight * random.choice(FACTORS) for name in fitting if random.random() >= ABSENT}
    return drawn or {name: moves[name].weight for name in fitting}


class Nemesis:
    """``moves`` are those that there are; the seed draws from them. With ``kept``, only the moves of its plan that have
    these numbers are made."""

    def __init__(
        self, world: World, clients: Clients, moves: Mapping[str, Move], kept: Container[int] | None = None
    ) -> None:
        self.world = world
        self.clients = clients
        self.moves = moves
        seed = world.topology.seed
        self.weights = draw(derive(seed, "moves"), moves, world.topology)
        self.plan = plan(derive(seed, "nemesis"), self.weights, world.topology.steps)
        self._kept = kept
        #: Brokers with a fault of their process.
        self.busy: set[int] = set()
        #: Brokers whose disk lost what others still count on.
        self.poorer: set[int] = set()
        #: How many topics it has made.
        self.topics = 0
        self._faults: set[asyncio.Task[None]] = set()
        self._is_healing = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Nemesis {len(self._faults)} faults, busy {sorted(self.busy)}>"

    @property
    def random(self) -> Random:
        """What the move that runs draws from: no move disturbs the draws of another."""
        return _RANDOM.get()

    async def run(self) -> None:
        """All the steps of the seed."""
        self.world.events.note("nemesis", "moves " + " ".join(f"{name}:{n}" for name, n in self.weights.items()))
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for planned in self.plan:
            await asyncio.sleep(began_s + planned.at_s - loop.time())
            if self._kept is None or planned.number in self._kept:
                self._make(planned)

    def _make(self, planned: Planned) -> None:
        self.world.events.note("nemesis", f"move {planned.number} {planned.name}")
        before = _RANDOM.set(derive(self.world.topology.seed, "move", planned.number))
        # Its task, and whatever that starts, runs in a copy of this context.
        self.launch(planned.name)
        _RANDOM.reset(before)

    def launch(self, name: str) -> None:
        """Make a move, and do not wait for its end."""
        action = self.moves[name].action
        self.in_background(name, lambda: action(self))

    def in_background(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._faults.add(self.world.background(work, f"nemesis {name}"))

    async def heal(self) -> None:
        """End everything that lasts, and wait until it is undone."""
        self.world.events.note("nemesis", "heal")
        self._is_healing.set()
        while pending := {fault for fault in self._faults if not fault.done()}:
            await asyncio.wait(pending)

    async def last(self, *choices_s: float) -> None:
        """Let a fault last for one of these times, or until the healing."""
        try:
            async with asyncio.timeout(self.random.choice(choices_s)):
                await self._is_healing.wait()
        except TimeoutError:
            pass

    def begin(self, name: str, text: str = "") -> None:
        self.world.events.count(f"nemesis {name}")
        self.world.events.note("nemesis", f"{name} {text}".rstrip())

    def victim(self, broker_id: int | None = None) -> int | None:
        """A running broker without a fault, or this one if it is so. While a disk is poorer, the others are spared."""
        if self.poorer:
            return None
        free = [each for each in sorted(self.world.processes) if each not in self.busy]
        if broker_id is not None:
            return broker_id if broker_id in free else None
        return self.random.choice(free) if free else None

    def leader(self) -> int | None:
        """Who leads one of the partitions."""
        state = self.world.state(*self.random.choice(self.world.everything))
        return None if state is None or state.leader < 0 else state.leader

    @property
    def is_calm(self) -> bool:
        """Whether all brokers run, none has a fault of its process and no disk is poorer."""
        return not self.busy and not self.poorer and len(self.world.processes) == len(self.world.broker_ids)
