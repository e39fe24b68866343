"""How a broker's logs came up at its start: how long it took, and over how many bytes that were not yet synced.

Owns the measuring. What is done to the logs is ``cluster.log``'s; the figures go to the broker's journal, where a run
collects them (recovery after a kill is to take less than a second per 100 MB of unflushed log).
"""

from __future__ import annotations

from typing import Any

from cluster.log.checkpoints import CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_FILE, parse_offsets, read_text
from cluster.log.directories import parse_replica_directory_name
from cluster.log.errors import CheckpointError
from cluster.log.manager import LogManager
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage

LOADED = "logs-loaded"


def load_logs(logs: LogManager, storage: Storage, clock: Clock) -> dict[str, Any]:
    """Load all logs; what the journal says of it.

    ``clean``: the stop before was clean; ``logs``, ``bytes``: what there is; ``unflushed_bytes``: the size of the
    segments from each log's recovery point on, as they were found; ``elapsed_ms``. Raises ``LogError``.
    """
    clean, unflushed = unflushed_bytes(storage, logs.data_dir)
    began_ns = clock.monotonic_ns()
    logs.load()
    elapsed_ms = (clock.monotonic_ns() - began_ns) / 1e6
    return {
        "clean": clean,
        "logs": len(logs),
        "bytes": sum(log.size_bytes for log in logs),
        "unflushed_bytes": unflushed,
        "elapsed_ms": round(elapsed_ms, 1),
    }


def unflushed_bytes(storage: Storage, data_dir: str) -> tuple[bool, int]:
    """Whether the last stop was clean, and the bytes of all segments that were not synced as a whole.

    Nothing is repaired or complained of here; what cannot be read is not counted.
    """
    try:
        if storage.exists(f"{data_dir}/{CLEAN_SHUTDOWN_FILE}"):
            return True, 0
        points = parse_offsets(read_text(storage, f"{data_dir}/{RECOVERY_POINT_FILE}") or "")
    except (CheckpointError, OSError):
        points = {}
    total = 0
    try:
        for name in storage.listdir(data_dir):
            topic_partition = parse_replica_directory_name(name)
            if topic_partition is not None:
                total += _unflushed_of(storage, f"{data_dir}/{name}", points.get(topic_partition, 0))
    except OSError:
        return False, total
    return False, total


def _unflushed_of(storage: Storage, directory: str, recovery_point: int) -> int:
    names = (name.removesuffix(".log") for name in storage.listdir(directory) if name.endswith(".log"))
    bases = sorted(int(name) for name in names if name.isdecimal())
    total = 0
    for number, base_offset in enumerate(bases):
        if number + 1 == len(bases) or bases[number + 1] > recovery_point:
            file = storage.open(f"{directory}/{base_offset:020d}.log", create=False)
            total += file.size_bytes
            file.close()
    return total
