"""Why an ensemble could not be reached: the first of its hosts whose name no one knows."""

from __future__ import annotations

import asyncio

#: How long to look for the cause of a failed start.
RESOLVE_S = 5.0


async def unresolved(hosts: str) -> str:
    """``: NAME: REASON`` of the first host of ``hosts`` whose name has no address; "" if all have one, or may.

    ``hosts`` is a ``zookeeper.connect``.
    """
    for each in hosts.partition("/")[0].split(","):
        name = each.strip().rpartition(":")[0] or each.strip()
        try:
            async with asyncio.timeout(RESOLVE_S):
                await asyncio.get_running_loop().getaddrinfo(name.strip("[]"), None)
        except TimeoutError:
            continue
        except (OSError, UnicodeError) as error:
            why = str(getattr(error, "strerror", None) or error)
            return f": {name}: {why[:1].lower()}{why[1:]}"
    return ""
