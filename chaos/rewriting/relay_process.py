"""The process of the relays: started by the conductor, ended by it. Owns the start and the end alone."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping
from typing import Any

from chaos.rewriting.relay import Relays
from chaos.rewriting.rewriter import ToldAddress
from cluster.process.child import ChildChannel
from cluster.process.one_line import log_to
from cluster.seams.asyncio_transport import AsyncioTransport


def serve(arguments: Mapping[str, Any], channel: ChildChannel) -> None:
    """The entry of a supervised child: ``{"links": {group: {broker: [host, port]}}}``.

    Says ``{"event": "bound", "ports": {group: {broker: port}}}``.
    """
    log_to(logging.StreamHandler(sys.stderr))
    links = {
        group: {int(broker): ToldAddress(*address) for broker, address in brokers.items()}
        for group, brokers in arguments["links"].items()
    }
    asyncio.run(_serve(links, channel))


async def _serve(links: Mapping[str, Mapping[int, ToldAddress]], channel: ChildChannel) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    relays = Relays(AsyncioTransport())
    try:
        channel.ready({"event": "bound", "ports": await relays.start(links)})
        await stopping.wait()
    finally:
        await relays.stop()
