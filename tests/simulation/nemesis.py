"""Nemesis: what goes wrong in a simulation, and when, drawn from the seed.

Owns the actions and their bounds. Each is injected, lasts, and is healed; several may overlap, but a broker has at most
one fault of its process at a time. Everything is whole again after ``heal``.

One bound is of substance: without a sync of each append, a broker that lost its power has lost acknowledged records.
Replication makes up for that if another member of each of its in-sync sets is well until it has been taken out of them,
and it has not asked to be alone in one (KIP-966 is about what happens otherwise). It may come back at any time. Where
each append is synced there is no such bound.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from cluster.metadata.paths import CONTROLLER
from cluster.metadata.store import Delete, NoNodeError
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.seams.randomness import derive
from tests.simulation.world import World

CLIENT = "client"
#: How long a broker may take to leave in order before it is killed.
STOP_TIMEOUT_S = 12.0

Grow = Callable[[str, int], None]


class Nemesis:
    """``grow`` is told of each partition that was added."""

    def __init__(self, world: World, grow: Grow, reborn: Callable[[], None]) -> None:
        self.world = world
        self.random = derive(world.topology.seed, "nemesis")
        self.grow = grow
        self.reborn = reborn
        #: Brokers with a fault of their process.
        self.busy: set[int] = set()
        #: Brokers whose disk lost what others still count on.
        self.poorer: set[int] = set()
        self._faults: set[asyncio.Task[None]] = set()
        self._is_healing = asyncio.Event()
        self._topics = 0

    def __repr__(self) -> str:
        return f"<Nemesis {len(self._faults)} faults, busy {sorted(self.busy)}>"

    async def run(self) -> None:
        """All the steps of the seed."""
        names = list(ACTIONS)
        weights = [weight for _, weight in ACTIONS.values()]
        for _ in range(self.world.topology.steps):
            await asyncio.sleep(self.random.choice((0.0, 0.1, 0.5, 1.0, 2.0)))
            name = self.random.choices(names, weights)[0]
            self._launch(name)

    def _launch(self, name: str) -> None:
        action, _ = ACTIONS[name]
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
        state = self.world.state(*self.random.choice(self.world.partitions))
        return None if state is None or state.leader < 0 else state.leader


# Processes


async def _down(nemesis: Nemesis, name: str, broker_id: int | None) -> None:
    broker_id = None if broker_id is None else nemesis.victim(broker_id)
    if broker_id is None:
        return
    nemesis.busy.add(broker_id)
    nemesis.begin(name)
    nemesis.world.strike(broker_id, "kill")
    await nemesis.last(0.0, 0.3, 1.0, 3.0)
    await nemesis.world.raise_up(broker_id)
    nemesis.busy.discard(broker_id)


async def kill(nemesis: Nemesis) -> None:
    await _down(nemesis, "kill", nemesis.victim())


async def kill_leader(nemesis: Nemesis) -> None:
    await _down(nemesis, "kill-leader", nemesis.leader())


async def kill_controller(nemesis: Nemesis) -> None:
    await _down(nemesis, "kill-controller", nemesis.world.controller())


async def power_loss(nemesis: Nemesis) -> None:
    """The machine of a broker loses its power: of what was not synced, a part is left, cut at any byte."""
    world = nemesis.world
    broker_id = nemesis.victim(nemesis.leader()) or nemesis.victim()
    if broker_id is None or not (world.topology.is_synced or _others_have_it(nemesis, broker_id)):
        return
    nemesis.busy.add(broker_id)
    nemesis.begin("power-loss")
    random = nemesis.random
    poorer = nemesis.poorer

    def survivors(_path: str, unsynced: int) -> int:
        return random.choice((0, 0, unsynced, random.randint(0, unsynced)))

    world.strike(broker_id, "power-loss", survivors)
    epochs = {key: state.leader_epoch for key in world.partitions if (state := world.state(*key)) is not None}

    async def spare_the_others() -> None:
        poorer.add(broker_id)
        while not _went_on_without(world, broker_id, epochs):  # noqa: ASYNC110 - ZooKeeper signals nothing to a test
            await asyncio.sleep(0.02)
        poorer.discard(broker_id)

    if not world.topology.is_synced:
        nemesis.in_background("spare the others", spare_the_others)
    await nemesis.last(0.0, 1.0, 3.0)
    await world.raise_up(broker_id)
    nemesis.busy.discard(broker_id)


def _others_have_it(nemesis: Nemesis, broker_id: int) -> bool:
    """Whether all others are well, known to the controller as they are, and one of them is in each in-sync set."""
    world = nemesis.world
    if nemesis.busy or not all(world.is_known(each) for each in world.broker_ids):
        return False
    states = [world.state(*key) for key in world.partitions]
    if not all(state is None or broker_id not in state.isr or len(state.isr) > 1 for state in states):
        return False
    # What it has asked for may still arrive after its end, and leave it alone in a set.
    leaderships = [partition.leader for partition in world.nodes[broker_id].replicas.partitions.values()]
    asked = [leader.isr.pending for leader in leaderships if leader is not None]
    return all(proposal is None or len(proposal.new_isr) > 1 for proposal in asked)


def _went_on_without(world: World, broker_id: int, epochs: dict[tuple[str, int], int]) -> bool:
    """Whether each partition is, or since has been, without that broker in its in-sync set."""
    states = [(world.state(*key), epoch) for key, epoch in epochs.items()]
    return all(state is None or broker_id not in state.isr or state.leader_epoch > epoch for state, epoch in states)


async def stop(nemesis: Nemesis) -> None:
    """A controlled shutdown; one that lasts too long is ended by force."""
    world, broker_id = nemesis.world, nemesis.victim()
    if broker_id is None:
        return
    nemesis.busy.add(broker_id)
    nemesis.begin("stop")
    await world.leave(broker_id)
    await nemesis.last(0.0, 0.5, 3.0)
    await world.raise_up(broker_id)
    nemesis.busy.discard(broker_id)


async def pause(nemesis: Nemesis) -> None:
    """A broker stands still, for a moment or for longer than its session."""
    world = nemesis.world
    candidates = (nemesis.victim(), nemesis.victim(nemesis.leader()), nemesis.victim(world.controller()))
    broker_id = nemesis.random.choice(candidates)
    if broker_id is None:
        return
    nemesis.busy.add(broker_id)
    nemesis.begin("pause", str(broker_id))
    world.pause(broker_id)
    await nemesis.last(0.2, 1.0, 2.5, 5.0)
    world.events.note("nemesis", f"resume {broker_id}")
    world.resume(broker_id)
    nemesis.busy.discard(broker_id)


# The network


async def _cut(nemesis: Nemesis, name: str, links: list[tuple[str, str]], *, lossy: bool) -> None:
    network = nemesis.world.network
    links = [link for link in links if not network.is_cut(*link)]
    nemesis.begin(name, " ".join("->".join(link) for link in links))
    for link in links:
        network.cut(*link, lossy=lossy)
    await nemesis.last(0.2, 1.0, 3.0, 6.0)
    nemesis.world.events.note("nemesis", f"heal {name} {' '.join('->'.join(link) for link in links)}")
    for link in links:
        network.heal(*link)


def _node(broker_id: int) -> str:
    return f"b{broker_id}"


async def cut(nemesis: Nemesis) -> None:
    """One direction between two brokers: what is sent is held."""
    await _cut(nemesis, "cut", [_pair(nemesis)], lossy=False)


async def cut_lossy(nemesis: Nemesis) -> None:
    """One direction between two brokers: what is sent is lost, and the connections end."""
    await _cut(nemesis, "cut-lossy", [_pair(nemesis)], lossy=True)


def _pair(nemesis: Nemesis) -> tuple[str, str]:
    source, destination = nemesis.random.sample(nemesis.world.broker_ids, 2)
    return _node(source), _node(destination)


async def cut_client(nemesis: Nemesis) -> None:
    """Between the clients and a broker, one direction: requests or answers are lost."""
    broker = _node(nemesis.leader() or nemesis.random.choice(nemesis.world.broker_ids))
    link = nemesis.random.choice([(CLIENT, broker), (broker, CLIENT)])
    await _cut(nemesis, "cut-client", [link], lossy=nemesis.random.random() < 0.7)


async def isolate(nemesis: Nemesis) -> None:
    """A broker and the others, both directions; clients still reach it."""
    broker_id = nemesis.leader() or nemesis.random.choice(nemesis.world.broker_ids)
    me = _node(broker_id)
    others = [_node(each) for each in nemesis.world.broker_ids if each != broker_id]
    links = [link for other in others for link in ((me, other), (other, me))]
    await _cut(nemesis, "isolate", links, lossy=nemesis.random.random() < 0.5)


async def slow_link(nemesis: Nemesis) -> None:
    """What goes one way between two nodes takes long, differently from connection to connection."""
    slow = nemesis.world.slow
    link = _pair(nemesis)
    if link in slow:
        return
    slow[link] = nemesis.random.choice((20.0, 100.0, 400.0))
    nemesis.begin("slow-link", f"{link[0]}->{link[1]} {slow[link]:g} ms")
    await nemesis.last(0.5, 2.0, 4.0)
    del slow[link]


# ZooKeeper


async def cut_zookeeper(nemesis: Nemesis) -> None:
    """A broker and ZooKeeper: for a moment, or for longer than the session."""
    broker_id = nemesis.random.choice([nemesis.victim(), nemesis.victim(nemesis.world.controller())])
    if broker_id is None:
        return
    nemesis.busy.add(broker_id)
    nemesis.begin("cut-zookeeper", str(broker_id))
    process = nemesis.world.processes[broker_id]
    process.store.cut()
    await nemesis.last(0.3, 1.5, 3.0, 5.0)
    nemesis.world.events.note("nemesis", f"heal cut-zookeeper {broker_id}")
    process.store.heal()
    nemesis.busy.discard(broker_id)


async def expire(nemesis: Nemesis) -> None:
    """ZooKeeper ends a session that was well."""
    broker_id = nemesis.victim()
    if broker_id is not None:
        nemesis.begin("expire", str(broker_id))
        nemesis.world.processes[broker_id].store.expire()


async def change_controller(nemesis: Nemesis) -> None:
    """/controller is deleted under a controller that hears of it late: for a while there are two.

    Mostly it was about to act on the end of another's session; and its successor may not last either.
    """
    world, random = nemesis.world, nemesis.random
    broker_id = world.controller()
    process = None if broker_id is None else world.processes.get(broker_id)
    if process is None:
        return
    if broker_id in nemesis.busy or nemesis.poorer:
        return
    nemesis.busy.add(broker_id)
    nemesis.begin("change-controller", str(broker_id))
    others = [each for each in sorted(world.processes) if each != broker_id]
    if others and random.random() < 0.7:
        await _end_session(nemesis, random.choice(others))
        await asyncio.sleep(random.uniform(0.0, 0.008))
    process.store.deafen()
    with contextlib.suppress(NoNodeError):
        world.tree.multi(0, [Delete(CONTROLLER)])
    await nemesis.last(0.05, 0.2, 0.5)
    if others and random.random() < 0.7:
        # Its successor acts on something that it cannot know of.
        await _end_session(nemesis, random.choice(others))
    await nemesis.last(0.05, 0.3, 0.8)
    process.store.hear()
    if random.random() < 0.5:
        await asyncio.sleep(random.uniform(0.0, 0.05))
        await _end_session(nemesis, world.controller())
    nemesis.busy.discard(broker_id)


async def _end_session(nemesis: Nemesis, broker_id: int | None) -> None:
    process = None if broker_id is None else nemesis.world.processes.get(broker_id)
    if process is not None and not nemesis.poorer:
        nemesis.world.events.note("nemesis", f"end the session of {broker_id}")
        process.store.expire()


# Clients


async def create_topic(nemesis: Nemesis) -> None:
    nemesis._topics += 1
    name = f"t{nemesis._topics}"
    request = request_class(ApiKey.CREATE_TOPICS)
    topic = request.CreatableTopic(name=name, num_partitions=1, replication_factor=3, assignments=[], configs=[])
    message = request(topics=[topic], timeout_ms=1000, validate_only=False)
    done = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    nemesis.begin("create-topic", name)
    if await _administer(nemesis, message, 5, done, lambda answer: answer.topics):
        nemesis.grow(name, 0)


async def add_partition(nemesis: Nemesis) -> None:
    if "add-partition" in nemesis.world.events.coverage:
        return
    nemesis.world.events.count("add-partition")
    count = nemesis.world.topology.partitions + 1
    request = request_class(ApiKey.CREATE_PARTITIONS)
    topic = request.CreatePartitionsTopic(name="t", count=count, assignments=None)
    message = request(topics=[topic], timeout_ms=1000, validate_only=False)
    nemesis.begin("add-partition", f"t to {count}")
    done = (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS)
    if await _administer(nemesis, message, 2, done, lambda answer: answer.results):
        nemesis.grow("t", count - 1)


async def _administer(nemesis: Nemesis, message, version: int, done: tuple[ErrorCode, ...], results) -> bool:
    """Ask the controller until it has answered well. A first attempt may have done it already."""
    world = nemesis.world
    for _ in range(100):
        controller = world.controller()
        try:
            if controller is None or controller not in world.processes:
                raise ConnectionError("there is no controller")
            connection = await world.connect(controller, timeout_ms=1500)
            [result] = results(await connection.send(message, version))
            connection.close()
            world.events.note("admin", f"{type(message).__name__} {ErrorCode(result.error_code).name}")
            if result.error_code in done:
                return True
        except (OSError, TimeoutError) as error:
            world.events.note("admin", f"{type(message).__name__} {type(error).__name__}")
        await asyncio.sleep(0.3)
    world.problems.append(("unavailable", f"{type(message).__name__} was never done"))
    return False


async def rebirth(nemesis: Nemesis) -> None:
    """A writer crashes and comes back as another producer."""
    nemesis.begin("rebirth")
    nemesis.reborn()


#: Name -> what it does, and how often compared to others.
ACTIONS: dict[str, tuple[Callable[[Nemesis], Awaitable[None]], int]] = {
    "kill": (kill, 2),
    "kill-leader": (kill_leader, 4),
    "kill-controller": (kill_controller, 2),
    "power-loss": (power_loss, 4),
    "stop": (stop, 2),
    "pause": (pause, 3),
    "cut": (cut, 2),
    "cut-lossy": (cut_lossy, 2),
    "cut-client": (cut_client, 3),
    "isolate": (isolate, 3),
    "slow-link": (slow_link, 2),
    "cut-zookeeper": (cut_zookeeper, 2),
    "expire": (expire, 2),
    "change-controller": (change_controller, 3),
    "create-topic": (create_topic, 1),
    "add-partition": (add_partition, 1),
    "rebirth": (rebirth, 1),
}
