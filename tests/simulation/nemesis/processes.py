"""Processes that die, one or several, leave in order, or stand still."""

from __future__ import annotations

import asyncio

from tests.simulation.nemesis.base import Nemesis


async def down(nemesis: Nemesis, name: str, broker_id: int | None) -> None:
    """Kill this broker if it is free, and start it again after a while."""
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
    await down(nemesis, "kill", nemesis.victim())


async def kill_leader(nemesis: Nemesis) -> None:
    await down(nemesis, "kill-leader", nemesis.leader())


async def kill_controller(nemesis: Nemesis) -> None:
    await down(nemesis, "kill-controller", nemesis.world.controller())


async def kill_two(nemesis: Nemesis) -> None:
    """A leader, and who leads after it, before the first is back in any ISR."""
    first = nemesis.victim(nemesis.leader())
    if first is None:
        return
    nemesis.begin("kill-two")
    nemesis.in_background("kill-two", lambda: down(nemesis, "first-of-two", first))
    await asyncio.sleep(nemesis.random.choice((0.05, 1.0, 2.3, 2.6)))
    await down(nemesis, "second-of-two", nemesis.victim(nemesis.leader()) or nemesis.victim())


async def kill_all(nemesis: Nemesis) -> None:
    """All brokers at once: their disks keep what was written. Where each append is synced the power may go too."""
    world, random = nemesis.world, nemesis.random
    if not nemesis.is_calm:
        return
    nemesis.begin("kill-all")
    nemesis.busy.update(world.broker_ids)
    survivors = (lambda _path, _unsynced: 0) if world.topology.is_synced and random.random() < 0.5 else None
    order = random.sample(world.broker_ids, len(world.broker_ids))
    for broker_id in order:
        # A disk that fails ends its broker whenever it likes.
        if world.is_running(broker_id):
            world.strike(broker_id, "kill", survivors)
        await asyncio.sleep(random.choice((0.0, 0.0, 0.2)))
    await nemesis.last(0.0, 1.0, 3.0)

    async def back(broker_id: int, after_s: float) -> None:
        await asyncio.sleep(after_s)
        await world.raise_up(broker_id)
        nemesis.busy.discard(broker_id)

    random.shuffle(order)
    for number, broker_id in enumerate(order):
        after_s = number * random.choice((0.0, 0.5, 2.5))
        nemesis.in_background("back", lambda broker_id=broker_id, after_s=after_s: back(broker_id, after_s))


async def stop(nemesis: Nemesis) -> None:
    """A controlled shutdown."""
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
