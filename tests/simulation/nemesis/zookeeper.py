"""ZooKeeper: a broker loses it, a session ends, and the controller is deposed and hears of it late."""

from __future__ import annotations

import asyncio
import contextlib

from cluster.metadata.paths import CONTROLLER
from cluster.metadata.store import Delete, NoNodeError
from tests.simulation.nemesis.base import Nemesis


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
