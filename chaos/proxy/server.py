"""Runs the proxy: as an object in a running event loop, as a coroutine that ends with a signal, or as a child process.

Owns starting and stopping in the right order. Does not own the command line (``gapless proxy`` calls :func:`run`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from chaos.proxy import sockets
from chaos.proxy.api import ProxyApi
from chaos.proxy.http_server import HttpServer
from chaos.proxy.registry import Registry
from chaos.proxy.stats import LagMonitor
from cluster.seams.clock import Clock, SystemClock

logger = logging.getLogger(__name__)

#: Go has no such timeout, so an unreachable upstream keeps a connection for minutes. Longer than any timeout of a run.
DIAL_TIMEOUT_MS = 10_000


class ReadyChannel(Protocol):
    """The channel on which a supervised child reports that it is ready."""

    def ready(self, message: dict[str, Any]) -> None: ...


class ProxyServer:
    """The whole server, inside a running event loop. Call ``start`` once and ``stop`` once."""

    def __init__(self, seed: int, *, clock: Clock | None = None, dial_timeout_ms: int = DIAL_TIMEOUT_MS) -> None:
        self.registry = Registry(seed, dial_timeout_ms)
        self._lag = LagMonitor()
        self._http = HttpServer(ProxyApi(self.registry, self._lag).handle, clock or SystemClock())

    def __repr__(self) -> str:
        return f"ProxyServer({self.registry!r})"

    async def start(self, host: str, port: int) -> int:
        """Serve the API; returns its port. Raises ``OSError`` if the port is taken."""
        return await self._http.start(host, port)

    async def stop(self) -> None:
        """Close the API, then every proxy."""
        await self._http.stop()
        await self.registry.close()
        self._lag.stop()


async def run(
    host: str,
    port: int,
    seed: int,
    on_bound: Callable[[int], None],
    *,
    populate: bytes | None = None,
    dial_timeout_ms: int = DIAL_TIMEOUT_MS,
) -> None:
    """Serve until SIGTERM or SIGINT. ``on_bound`` is called with the port of the API once it listens.

    ``populate`` is the body of a ``POST /populate`` (Toxiproxy's configuration file), carried out before that. Raises
    ``OSError`` if the port is taken, and ``registry.PopulateError`` if the proxies cannot be created.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    sockets.raise_open_file_limit()
    server = ProxyServer(seed, dial_timeout_ms=dial_timeout_ms)
    try:
        if populate is not None:
            await server.registry.populate(populate)
        bound = await server.start(host, port)
        logger.info("the proxy's API listens on %s:%d, seed %d", host, bound, seed)
        on_bound(bound)
        await stopping.wait()
    finally:
        await server.stop()


def serve(arguments: Mapping[str, Any], channel: ReadyChannel) -> None:
    """Run as a supervised child, with the arguments ``{"host", "port", "seed"}``.

    Reports ``{"event": "bound", "port": N}`` on ``channel``.
    """

    def bound(port: int) -> None:
        channel.ready({"event": "bound", "port": port})

    asyncio.run(run(str(arguments["host"]), int(arguments["port"]), int(arguments["seed"]), bound))
