"""A disk that can be broken while it is in use: what is switched on, what it knows of power losses, what it counted.

Owns the switches of one process and the record of each call that they hit (``disk.jsonl``, beside the journal). The
calls themselves are ``cluster.seams.breakable_storage``'s. Paths outside ``root`` are another disk, which is well.
"""

from __future__ import annotations

import json
import os
import posixpath
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from cluster.seams.disk_fault import DiskFault
from cluster.seams.power_loss import FileTree, SyncedBytes, UnsyncedLoss, parents

RECORD = "disk.jsonl"
#: Calls of one life that are recorded one by one; the others are counted.
MOST_RECORDED = 1000


class BreakableDisk:
    """The switches. ``record`` appends a line to a file on a disk that never fails."""

    def __init__(self, root: str, record: Callable[[str], None]) -> None:
        self.root = posixpath.normpath(root)
        self.fault: DiskFault | None = None
        #: How much longer each sync takes.
        self.sync_delay_s = 0.0
        self.failed: Counter[str] = Counter()
        self.syncs = 0
        self.delayed_syncs = 0
        self.last_sync_ns = 0
        self.longest_sync_ns = 0
        self.tree: FileTree[SyncedBytes] = FileTree()
        #: The disk is mounted there, and no name above is its own.
        mounted = {self.root, *parents(self.root)}
        self.tree.directories |= mounted
        self.tree.named |= mounted
        #: Held for each change of the tree: syncs and renames come from several threads.
        self.lock = threading.RLock()
        self._record = record
        self._recorded = 0
        self._without_power: threading.Event | None = None

    def __repr__(self) -> str:
        return f"BreakableDisk({self.root}, {self.fault or 'well'})"

    def holds(self, path: str) -> bool:
        """Whether the path lies on this disk."""
        return path.startswith(self.root) and path[len(self.root) : len(self.root) + 1] in ("", "/")

    def check(self, call: str, path: str) -> None:
        """Called before each call. Raises ``OSError`` if it fails; never returns once there is no power."""
        self.wait_for_power()
        fault = self.fault
        if fault is not None and fault.hits(call, path):
            self.failed[call] += 1
            self._note({"call": call, "path": path, "errno": fault.number})
            raise fault.error(path)

    def wait_for_power(self) -> None:
        """A call to a disk without power waits until the process ends."""
        if self._without_power is not None:
            self._without_power.wait()

    def delay_sync(self) -> int:
        """Called before each sync: wait as long as is switched on; when it began, for ``synced``."""
        began_ns = time.monotonic_ns()
        if self.sync_delay_s > 0:
            time.sleep(self.sync_delay_s)
        return began_ns

    def synced(self, path: str, began_ns: int) -> None:
        """Called after each sync."""
        took_ns = self.last_sync_ns = time.monotonic_ns() - began_ns
        self.syncs += 1
        if self.sync_delay_s > 0:
            self.delayed_syncs += 1
            self.longest_sync_ns = max(self.longest_sync_ns, took_ns)
            self._note({"call": "fsync", "path": path, "took_ns": took_ns})
        self.wait_for_power()

    def unsynced(self) -> dict[str, int]:
        """The bytes of each file that a power loss could take now."""
        with self.lock:
            nodes = dict(self.tree.nodes)
        sizes = {path: _size_of(path) - max(node.synced, 0) for path, node in nodes.items()}
        return {path: size for path, size in sizes.items() if size > 0}

    def lose_power(self, random: Random, word: str = "") -> UnsyncedLoss:
        """From now on no call returns. What is lost, of paths with ``word`` in them: of each file's unsynced bytes
        all, none, or those behind a byte that is drawn.

        A write that is under way may still reach its file, so the files are cut when the process is gone. A sync that
        is under way is never known of by anyone.
        """
        self._without_power = threading.Event()
        with self.lock:
            tree = self.tree

            def survivors(_path: str, unsynced: int) -> int:
                return random.choice((0, 0, unsynced, random.randint(0, max(0, unsynced)))) if unsynced > 0 else 0

            sizes = {path: _size_of(path) for path in sorted(tree.nodes)}
            left = dict(tree.left(lambda path, _node: sizes[path], survivors))
            cut = {path: size for path, size in left.items() if word in path and size < sizes[path]}
            gone = tuple(path for path in sizes if word in path and path not in left)
            # a part of the tree loses no directory
            stay = tree.directories if word else tree.left_directories(left)
            return UnsyncedLoss(cut, gone, tuple(sorted(tree.directories - stay)))

    def _note(self, details: Mapping[str, Any]) -> None:
        if self._recorded < MOST_RECORDED:
            self._recorded += 1
            self._record(json.dumps({**details, "monotonic_ns": time.monotonic_ns()}))


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
