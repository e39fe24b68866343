"""How a broker's logs came up at its start: how long it took, and over how many bytes that were not yet synced.

Owns the measuring. What is done to the logs is ``cluster.log``'s; the figures go to the broker's journal, where a run
collects them (recovery after a kill is to take less than a second per 100 MB of unflushed log).
"""

from __future__ import annotations

from typing import Any

from cluster.broker.checkpoints import Blocking, unbroken
from cluster.log.manager import LogManager
from cluster.seams.clock import Clock
from cluster.seams.units import ms_of_ns

LOADED = "logs-loaded"


async def load_logs(logs: LogManager, clock: Clock, blocking: Blocking) -> dict[str, Any]:
    """Load all logs, off the loop; what the journal says about it.

    After a crash that may take longer than the session with ZooKeeper, which needs its heartbeats. If it is canceled,
    it ends only when the logs are loaded: no one is to close what a thread is opening.

    ``clean``: the stop before was clean; ``logs``, ``bytes``: how many; ``unflushed_bytes``: the size of the
    segments from each log's recovery point on, as the recovery found them; ``elapsed_ms``. Raises ``LogError``.
    """
    began_ns = clock.monotonic_ns()
    stops: list[bool] = []
    await unbroken(blocking, lambda: stops.append(logs.load()))
    elapsed_ms = ms_of_ns(clock.monotonic_ns() - began_ns)
    return {
        "clean": stops == [True],
        "logs": len(logs),
        "bytes": sum(log.size_bytes for log in logs),
        "unflushed_bytes": sum(log.verified_bytes for log in logs),
        "elapsed_ms": round(elapsed_ms, 1),
    }
