"""Disks: one loses what was not synced, one is replaced, one fails at some of its calls.

A disk that fails ends its broker (Kafka's ``LogDirFailureChannel``), and its warden starts it again and again. Nothing
on it is lost, but a write may have been done in part. How long: for a while, or until the healing.
"""

from __future__ import annotations

import asyncio
import errno

from cluster.seams.disk_fault import CALLS, DiskFault
from cluster.seams.randomness import Random
from tests.simulation.nemesis.base import Nemesis
from tests.simulation.nemesis.bounds import others_have_it, spare_the_others
from tests.simulation.nemesis.processes import kill_leader, stop

ERRNOS = {"append": errno.ENOSPC, "pwrite": errno.ENOSPC}
#: Parts of paths: a fault of everything hits the log first, and the rest only now and then.
WORDS = ("/data", "-0/", ".log", ".snapshot", "index", "checkpoint", *["leader-epoch-checkpoint"] * 2)
FOREVER_S = 1000.0


async def power_loss(nemesis: Nemesis) -> None:
    """The machine of a broker loses its power: of what was not synced, a part is left, cut at any byte."""
    world, random = nemesis.world, nemesis.random
    broker_id = nemesis.victim(nemesis.leader()) or nemesis.victim()
    if broker_id is None or not (world.topology.is_synced or others_have_it(nemesis, broker_id)):
        return
    nemesis.busy.add(broker_id)
    nemesis.begin("power-loss")

    def survivors(_path: str, unsynced: int) -> int:
        return random.choice((0, 0, unsynced, random.randint(0, unsynced)))

    if not world.topology.is_synced:
        spare_the_others(nemesis, broker_id)
    world.strike(broker_id, "power-loss", survivors)
    await nemesis.last(0.0, 1.0, 3.0)
    await world.raise_up(broker_id)
    nemesis.busy.discard(broker_id)


async def wipe(nemesis: Nemesis) -> None:
    """A broker dies and its disk is replaced by an empty one, or one of its replicas is erased."""
    world, random = nemesis.world, nemesis.random
    broker_id = nemesis.victim(nemesis.leader()) or nemesis.victim()
    if broker_id is None or not others_have_it(nemesis, broker_id):
        return
    nemesis.busy.add(broker_id)
    topic, partition = random.choice(world.everything)
    what = random.choice(("/data", f"/data/{topic}-{partition}"))
    nemesis.begin("wipe", f"{broker_id} {what}")
    spare_the_others(nemesis, broker_id)
    world.strike(broker_id, "wipe")
    world.storages[broker_id].remove_tree(what)
    await nemesis.last(0.0, 1.0, 3.0)
    await world.raise_up(broker_id)
    nemesis.busy.discard(broker_id)


def draw_fault(random: Random) -> DiskFault:
    """Which calls fail, for which paths, and how."""
    call = random.choice(CALLS)
    number = random.choice((errno.EIO, ERRNOS.get(call, errno.EIO)))
    return DiskFault(random.choice((frozenset({call}), frozenset(CALLS))), random.choice(WORDS), number, random)


async def disk_error(nemesis: Nemesis) -> None:
    """Calls of a broker's disk fail; mostly somebody else leaves meanwhile, so that roles are taken on that disk."""
    world, random = nemesis.world, nemesis.random
    broker_id = nemesis.victim(nemesis.leader()) if random.random() < 0.3 else nemesis.victim()
    if broker_id is None:
        return
    nemesis.busy.add(broker_id)
    fault = draw_fault(random)
    nemesis.begin("disk-error", f"{broker_id} {fault}")
    leaves = random.choice((None, stop, kill_leader, kill_leader))
    if leaves is not None:
        nemesis.in_background("another leaves", lambda: leaves(nemesis))
        # A leader that was killed is replaced when its session ends.
        await asyncio.sleep(random.choice((0.0, 1.7)) if leaves is kill_leader else 0.0)
    world.storages[broker_id].fault = fault
    await nemesis.last(0.3, 2.0, 4.0, FOREVER_S)
    world.events.note("nemesis", f"the disk of {broker_id} is well")
    world.storages[broker_id].fault = None
    await world.came_back(broker_id)
    nemesis.busy.discard(broker_id)
