"""Clocks: what a broker takes for the time of day jumps; its monotonic clock goes on, as the operating system's does.
Or both run fast or slow, with all its timers, more than any quartz does.

A jump stays below a day: producers that were last heard of a day ago are forgotten.
"""

from __future__ import annotations

from tests.simulation.nemesis.base import Nemesis

RATES = (0.7, 0.95, 1.05, 1.5)
#: A transaction is open until its time is over, by the clock of its coordinator.
SMALL_JUMPS_MS = (-3000, -1000, 1000, 3000, 60_000)
JUMPS_MS = (-6 * 3_600_000, -60_000, -1000, 1000, 60_000, 6 * 3_600_000)


async def jump(nemesis: Nemesis) -> None:
    """One broker's time of day, for a while or until it is set right."""
    world = nemesis.world
    broker_id = nemesis.random.choice(world.broker_ids)
    clock = world.clocks[broker_id]
    clock.ahead_ms = nemesis.random.choice(JUMPS_MS if world.topology.coordination is None else SMALL_JUMPS_MS)
    nemesis.begin("clock-jump", f"{broker_id} by {clock.ahead_ms} ms")
    await nemesis.last(0.5, 3.0, 1000.0)
    clock.ahead_ms = 0
    world.events.note("nemesis", f"the clock of {broker_id} is set right")


async def drift(nemesis: Nemesis) -> None:
    """One broker's clocks run at another rate, as long as it lives. They are never set back."""
    world = nemesis.world
    running = sorted(world.processes)
    if not running:
        return
    broker_id = nemesis.random.choice(running)
    life, rate = world.processes[broker_id].life, nemesis.random.choice(RATES)
    nemesis.begin("clock-drift", f"{broker_id} at {rate:g}")
    world.loop.drift(life, rate)
    await nemesis.last(1.0, 5.0, 1000.0)
    world.loop.drift(life, 1.0)
    world.events.note("nemesis", f"the clock of {broker_id} runs as others do")
