"""Clocks: what a broker takes for the time of day jumps. Its monotonic clock goes on, as the operating system's does.

A jump stays below a day: producers that were last heard of a day ago are forgotten.
"""

from __future__ import annotations

from tests.simulation.nemesis.base import Nemesis

JUMPS_MS = (-6 * 3_600_000, -60_000, -1000, 1000, 60_000, 6 * 3_600_000)


async def jump(nemesis: Nemesis) -> None:
    """One broker's time of day, for a while or until it is set right."""
    world = nemesis.world
    broker_id = nemesis.random.choice(world.broker_ids)
    clock = world.clocks[broker_id]
    clock.ahead_ms = nemesis.random.choice(JUMPS_MS)
    nemesis.begin("clock-jump", f"{broker_id} by {clock.ahead_ms} ms")
    await nemesis.last(0.5, 3.0, 1000.0)
    clock.ahead_ms = 0
    world.events.note("nemesis", f"the clock of {broker_id} is set right")
