"""Whether a broker is of use: ``python -m cluster.health HOST:PORT``, the probe of a container.

Owns the two questions: does the broker answer ApiVersions, and does it know a controller among live brokers? A
listening port alone says neither. Exit status 0 or 1, with one line that says why.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from cluster.client.async_admin import AsyncAdmin
from cluster.client.errors import AdminError
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock

TIMEOUT_MS = 1500
USAGE = "usage: python -m cluster.health HOST:PORT [TIMEOUT_MS]"


async def probe(address: str, timeout_ms: int = TIMEOUT_MS) -> str:
    """One line about a healthy broker. Raises ``OSError``, ``TimeoutError`` or AdminError for one that is not."""
    admin = AsyncAdmin([address], AsyncioTransport(), SystemClock(), timeout_ms, client_id="gapless-health")
    try:
        windows = await admin.api_versions(address)
        view = await admin.metadata([])
    finally:
        await admin.close()
    if view.controller_id not in view.brokers:
        raise ConnectionError(f"{address} answers, but knows no controller among {len(view.brokers)} live brokers")
    return f"{address} serves {len(windows)} APIs; {len(view.brokers)} brokers, controller {view.controller_id}"


def main(arguments: Sequence[str]) -> int:
    if not 1 <= len(arguments) <= 2 or not all(part.isascii() and part.isdigit() for part in arguments[1:]):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    try:
        line = asyncio.run(probe(arguments[0], *map(int, arguments[1:])))
    except (OSError, ValueError, AdminError) as error:
        sys.stderr.write(f"unhealthy: {error}\n")
        return 1
    sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
