"""ZooKeeper: brokers lose it, or it is slow or behind for them; a session ends, and the controller is deposed and hears
of it late.
"""

from __future__ import annotations

import asyncio
import contextlib

from cluster.metadata.paths import CONTROLLER
from cluster.metadata.store import Delete, NoNodeError
from tests.simulation.nemesis.base import Nemesis

#: How long a request and its answer take, each, and how far a follower may be behind.
LATENCIES_S = (0.02, 0.2, 0.6)
LAGS_S = (0.05, 0.3, 1.0, 3.0)


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


async def slow_zookeeper(nemesis: Nemesis) -> None:
    """Requests, answers and events take long, each: for one broker, or for all that run."""
    world, random = nemesis.world, nemesis.random
    running = sorted(world.processes)
    if not running:
        return
    chosen = random.choice((running, [random.choice(running)]))
    latency_s = random.choice(LATENCIES_S)
    nemesis.begin("slow-zookeeper", f"{chosen} {latency_s:g} s")
    stores = [world.processes[broker_id].store for broker_id in chosen]
    for store in stores:
        store.slow(latency_s)
    await nemesis.last(0.5, 2.0, 5.0)
    world.events.note("nemesis", f"heal slow-zookeeper {chosen}")
    for store in stores:
        store.slow(None)


async def stale_zookeeper(nemesis: Nemesis) -> None:
    """A broker's session is served by a follower that lags: it reads what is old, but for its own writes."""
    world, random = nemesis.world, nemesis.random
    running = sorted(world.processes)
    broker_id = random.choice((world.controller(), *running)) if running else None
    process = None if broker_id is None else world.processes.get(broker_id)
    if process is None:
        return
    lag_s = random.choice(LAGS_S)
    nemesis.begin("stale-zookeeper", f"{broker_id} {lag_s:g} s")
    process.store.lag(lag_s)
    await nemesis.last(0.5, 2.0, 5.0)
    world.events.note("nemesis", f"heal stale-zookeeper {broker_id}")
    process.store.keep_up()


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
