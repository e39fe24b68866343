"""Requests of an administrator: asked of the controller once, or until they are done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from cluster.protocol.errors import ErrorCode
from tests.simulation.nemesis.base import Nemesis

#: How often a request that must be done is tried, and the pause between.
TRIES, PAUSE_S = 150, 0.3

#: An answer -> its results, each with an ``error_code``.
Results = Callable[[Any], Iterable[Any]]


async def ask(nemesis: Nemesis, message: Any, version: int, results: Results) -> ErrorCode | None:
    """Ask the controller once; the code of the only result, None if nothing is known of its fate."""
    world = nemesis.world
    name = type(message).__name__
    controller = world.controller()
    try:
        if controller is None or controller not in world.processes:
            raise ConnectionError("there is no controller")
        connection = await world.connect(controller, timeout_ms=1500)
        [result] = results(await connection.send(message, version))
        connection.close()
    except (OSError, TimeoutError) as error:
        world.events.note("admin", f"{name} {type(error).__name__}")
        return None
    code = ErrorCode(result.error_code)
    world.events.note("admin", f"{name} {code.name}")
    world.events.count(f"asked {name} {code.name}")
    return code


async def administer(nemesis: Nemesis, message: Any, version: int, done: Iterable[ErrorCode], results: Results) -> bool:
    """Ask until it is answered well. A first attempt may have done it already."""
    for _ in range(TRIES):
        if await ask(nemesis, message, version, results) in done:
            return True
        await asyncio.sleep(PAUSE_S)
    nemesis.world.problems.append(("unavailable", f"{type(message).__name__} was never done"))
    return False
