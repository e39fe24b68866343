"""Memory, free disk and the wall clock: sampled into ``resources.jsonl`` during a run; the disk's limit.

Owns the sampling and the limit. What follows from a full disk is the conductor's, what the figures say the report's.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable

import psutil

from cluster.process.supervisor import Child
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage
from cluster.seams.units import whole_ms_of_ns

logger = logging.getLogger(__name__)

#: An hour of samples is a few hundred lines.
EVERY_MS = 10_000
GB = 1_000_000_000
#: What a run leaves free, whatever it was going to write.
LEAVE_FREE_BYTES = 2 * GB


def running(children: Iterable[Child]) -> list[Child]:
    """Those that have not ended, as far as is known: restarted ones are in the list again."""
    return [child for child in children if child.exit_code is None]


def disk_problem(free_bytes: int) -> str | None:
    """Why the run must stop now, or None while there is room. Pure."""
    if free_bytes >= LEAVE_FREE_BYTES:
        return None
    return f"stopped: {free_bytes / GB:.2f} GB of disk are left, and a run leaves {LEAVE_FREE_BYTES / GB:g} GB free"


class Resources:
    """Takes a sample when one is due."""

    def __init__(self, clock: Clock, storage: Storage, path: str) -> None:
        self._clock = clock
        self._storage = storage
        self._path = path
        self._next_ms = clock.monotonic_ms()

    def sample_if_due(self, children: Iterable[Child], free_bytes: int) -> None:
        """As ``sample``, at most every ten seconds."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + EVERY_MS
        self.sample(children, free_bytes)

    def sample(self, children: Iterable[Child], free_bytes: int) -> None:
        """Append a line: the resident bytes of each running child by its name, free disk, wall minus monotonic time.

        It changes when the wall clock is set or the machine sleeps, and moves all timestamps from then on.
        """
        monotonic_ns = self._clock.monotonic_ns()
        moved_ms = whole_ms_of_ns(self._clock.wall_ns() - monotonic_ns)
        sizes = {child.name: size for child in children if (size := resident_bytes(child.pid)) is not None}
        line = {"time_ns": monotonic_ns, "wall_minus_monotonic_ms": moved_ms}
        self._storage.append_line(self._path, json.dumps({**line, "free_bytes": free_bytes, "rss_bytes": sizes}))

    def sample_last(self, children: Iterable[Child]) -> None:
        """One more sample when all is written to the cluster: a clock that moves later moves no timestamp."""
        try:
            self.sample(children, self._storage.free_bytes(os.path.dirname(self._path)))
        except OSError as error:
            logger.warning("the last sample of memory, disk and clocks could not be taken: %s", error)


def resident_bytes(pid: int) -> int | None:
    """The resident memory of a process, None if it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
