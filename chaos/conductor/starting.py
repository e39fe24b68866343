"""Waits until a child process reports that it has started, and starts the proxy. Owns the message of a failed start.

Does not start brokers or ZooKeeper (``chaos.conductor.deployment``).
"""

from __future__ import annotations

import asyncio
from typing import Any

from chaos.conductor.fixed_ports import HOST
from cluster.process.supervisor import Child, Supervisor
from verifier.evidence.run_directory import RunDirectory

#: A busy machine may need most of a minute for a start that usually takes a second.
START_TIMEOUT_S = 90.0


class StartFailure(Exception):
    """A part of the cluster did not start. The message names the part and its log."""


async def message(child: Child, name: str, event: str) -> dict[str, Any]:
    """Wait for the child's message with this ``event``, and return it. Ignores others.

    ``name`` is the child's name for the error. Raises StartFailure if the child exits, reports ``failed``, or sends no
    message for ``START_TIMEOUT_S``.
    """
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
    """Start the proxy's server; returns its URL. Raises StartFailure."""
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
