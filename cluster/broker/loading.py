"""How a broker's logs came up at its start: how long it took, and over how many bytes that were not yet synced.

Owns the measuring. What is done to the logs is ``cluster.log``'s; the figures go to the broker's journal, where a run
collects them (recovery after a kill is to take less than a second per 100 MB of unflushed log).
"""

from __future__ import annotations

from typing import Any

from cluster.log.manager import LogManager
from cluster.seams.clock import Clock
from cluster.seams.units import ms_of_ns

LOADED = "logs-loaded"


def load_logs(logs: LogManager, clock: Clock) -> dict[str, Any]:
    """Load all logs; what the journal says about it.

    ``clean``: the stop before was clean; ``logs``, ``bytes``: how many; ``unflushed_bytes``: the size of the
    segments from each log's recovery point on, as the recovery found them; ``elapsed_ms``. Raises ``LogError``.
    """
    began_ns = clock.monotonic_ns()
    clean = logs.load()
    elapsed_ms = ms_of_ns(clock.monotonic_ns() - began_ns)
    return {
        "clean": clean,
        "logs": len(logs),
        "bytes": sum(log.size_bytes for log in logs),
        "unflushed_bytes": sum(log.verified_bytes for log in logs),
        "elapsed_ms": round(elapsed_ms, 1),
    }
