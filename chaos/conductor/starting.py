"""How a part of a run comes up: what its process says, and the proxy's. Owns the waiting and a failure's words."""

from __future__ import annotations

import asyncio
from typing import Any

from chaos.conductor.fixed_ports import HOST
from cluster.process.supervisor import Child, Supervisor
from verifier.evidence.run_directory import RunDirectory

#: A machine that does much else may take most of a minute for what takes a second.
START_TIMEOUT_S = 90.0


class StartFailure(Exception):
    """A part of the cluster did not come up; the message names it and its log."""


async def message(child: Child, name: str, event: str) -> dict[str, Any]:
    """Wait for one message of a child, by its event. Raises StartFailure."""
    while True:
        try:
            told = await asyncio.to_thread(child.wait_message, START_TIMEOUT_S)
        except (TimeoutError, EOFError) as error:
            raise StartFailure(f"{name} did not come up ({error}); see its log: {child.log_path}") from error
        if told.get("event") == event:
            return told
        if told.get("event") == "failed":
            raise StartFailure(f"{name} did not come up: {told.get('error')}; see its log: {child.log_path}")


async def start_proxy(supervisor: Supervisor, directory: RunDirectory, seed: int) -> str:
    """Start the proxy's server; its URL. Raises StartFailure."""
    child = await asyncio.to_thread(
        supervisor.start_python,
        "proxy",
        "chaos.proxy.server:serve",
        {"host": HOST, "port": 0, "seed": seed},
        str(directory.path / "proxy.log"),
        service=True,
    )
    told = await message(child, "proxy", "bound")
    return f"http://{HOST}:{told['port']}"
