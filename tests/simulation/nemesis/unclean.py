"""Unclean elections: a broker that was left behind comes back alone. Only where the seed's topics allow it."""

from __future__ import annotations

import asyncio

from tests.simulation.nemesis.base import Nemesis

#: How long to wait until nobody counts on a broker any more, and until it leads.
LEFT_S, LEADS_S = 5.0, 5.0


async def leave_behind(nemesis: Nemesis) -> None:
    """One broker dies and the others go on without it; they die too, and it comes back first.

    Its disk may be lost meanwhile: nobody counts on it by then, and the election that brings it back is unclean.
    """
    world, random = nemesis.world, nemesis.random
    if not nemesis.is_calm:
        return
    nemesis.busy.update(world.broker_ids)
    one = random.choice(world.broker_ids)
    others = [each for each in world.broker_ids if each != one]
    nemesis.begin("leave-behind", str(one))
    world.strike(one, "leave-behind")
    if await _wait(nemesis, lambda: not _is_counted_on(nemesis, one), LEFT_S):
        if random.random() < 0.5:
            nemesis.world.events.note("nemesis", f"the disk of {one} is replaced")
            world.storages[one].remove_tree("/data")
        await nemesis.last(0.3, 1.0, 2.0)
        if random.random() < 0.7:
            # The survivors' logs begin above the end of the one that is left behind, on their disks too.
            nemesis.launch("delete-records")
            await asyncio.sleep(random.choice((0.3, 1.2)))
        for other in others:
            if world.is_running(other):
                world.strike(other, "kill")
    else:
        others = []
    await world.raise_up(one)
    await _wait(nemesis, lambda: any(one in world.believers(*key) for key in world.partitions), LEADS_S)
    await nemesis.last(0.2, 1.0)
    for other in others:
        await world.raise_up(other)
    nemesis.busy.clear()


def _is_counted_on(nemesis: Nemesis, broker_id: int) -> bool:
    states = [nemesis.world.state(*key) for key in nemesis.world.partitions]
    return any(state is not None and broker_id in state.isr for state in states)


async def _wait(nemesis: Nemesis, condition, timeout_s: float) -> bool:
    try:
        await nemesis.world.until(condition, timeout_s)
    except TimeoutError:
        return False
    return True
