"""Records: what lies below an offset is deleted on request, and writers are reborn.

A log that begins above 0 takes a producer that it does not know at any sequence (KIP-360), so that with several batches
in flight the order may be lost. The bound is that each writer keeps an acknowledged batch in the log, and
has no more batches in flight than a broker remembers (``Writer.deletable``).
"""

from __future__ import annotations

from tests.simulation.client import Client
from tests.simulation.nemesis.base import Nemesis

TIMEOUT_MS = 1000


async def delete_records(nemesis: Nemesis) -> None:
    """The start of a log moves, in its leader first, in the followers as they fetch, on their disks now and then."""
    world = nemesis.world
    key = nemesis.random.choice(world.partitions)
    most = nemesis.clients.deletable(key)
    believers = world.believers(*key)
    if most <= 0 or not believers:
        return
    offset = nemesis.random.choice((most, nemesis.random.randint(1, most)))
    nemesis.begin("delete-records", f"of {key[0]}-{key[1]} below {offset}")
    nemesis.clients.deleting(key, offset)
    try:
        client = Client(await world.connect(believers[0], timeout_ms=2 * TIMEOUT_MS))
        error, low_watermark = await client.delete_records(key[0], offset, partition=key[1], timeout_ms=TIMEOUT_MS)
        client.connection.close()
    except (OSError, TimeoutError) as failure:
        world.events.note("admin", f"delete-records {type(failure).__name__}")
        return
    world.events.note("admin", f"delete-records {error.name} {low_watermark}")
    world.events.count(f"log start moved: {error.name}")


async def rebirth(nemesis: Nemesis) -> None:
    """A writer crashes and comes back as another producer."""
    nemesis.begin("rebirth")
    nemesis.clients.reborn(nemesis.random)
