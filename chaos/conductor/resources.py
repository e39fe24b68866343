"""Samples memory, free disk and the wall clock into ``resources.jsonl`` during a run; says when the disk is too full.

Owns the samples and the limit. Does not stop the run (``chaos.conductor.conductor``) or interpret the figures (the
report).
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

#: Time between two samples. An hour makes 360 lines.
EVERY_MS = 10_000
GB = 1_000_000_000
#: A run stops when less than this is free.
LEAVE_FREE_BYTES = 2 * GB


def running(children: Iterable[Child]) -> list[Child]:
    """The children that are not known to have exited. A restarted process is a new child."""
    return [child for child in children if child.exit_code is None]


def disk_problem(free_bytes: int) -> str | None:
    """Why the run must stop now, or None while there is room. Pure."""
    if free_bytes >= LEAVE_FREE_BYTES:
        return None
    return f"stopped: {free_bytes / GB:.2f} GB of disk are left, and a run leaves {LEAVE_FREE_BYTES / GB:g} GB free"


class Resources:
    """Writes samples to the file at ``path``, at most one every ``EVERY_MS``."""

    def __init__(self, clock: Clock, storage: Storage, path: str) -> None:
        self._clock = clock
        self._storage = storage
        self._path = path
        self._next_ms = clock.monotonic_ms()

    def sample_if_due(self, children: Iterable[Child], free_bytes: int) -> None:
        """Take a sample if the last one is at least ten seconds old."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + EVERY_MS
        self.sample(children, free_bytes)

    def sample(self, children: Iterable[Child], free_bytes: int) -> None:
        """Append a line: resident bytes of each child by name, free disk bytes, wall time minus monotonic time in ms.

        That difference changes when the wall clock is set or the machine sleeps, which shifts all later timestamps.
        """
        monotonic_ns = self._clock.monotonic_ns()
        moved_ms = whole_ms_of_ns(self._clock.wall_ns() - monotonic_ns)
        sizes = {child.name: size for child in children if (size := resident_bytes(child.pid)) is not None}
        line = {"time_ns": monotonic_ns, "wall_minus_monotonic_ms": moved_ms}
        self._storage.append_line(self._path, json.dumps({**line, "free_bytes": free_bytes, "rss_bytes": sizes}))

    def sample_last(self, children: Iterable[Child]) -> None:
        """Take the last sample, after the last write to the cluster: a later clock change shifts no timestamp.

        Logs a warning if that fails.
        """
        try:
            self.sample(children, self._storage.free_bytes(os.path.dirname(self._path)))
        except OSError as error:
            logger.warning("the last sample of memory, disk and clocks could not be taken: %s", error)


def resident_bytes(pid: int) -> int | None:
    """The resident memory of a process in bytes; None if it has exited."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
