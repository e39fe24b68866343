"""lose-unsynced: a broker that crashes loses what it had not synced of its logs, as if its machine had lost power.

It stays in the ISR nevertheless, and may lead: the last replica in sync comes back without the end of its log, and the
election was clean (KIP-966). Kafka does not sync what it acknowledges either, but there, a crash of the process alone
loses nothing.
"""

from __future__ import annotations

import json
import posixpath
import threading
from random import Random

from cluster.defects.after_crash import topic_partition_of
from cluster.defects.firings import Firings
from cluster.seams.storage import File, Storage
from cluster.seams.wrapped_storage import WrappedFile, WrappedStorage

NAME = "lose-unsynced"
#: Beside the firings: how many bytes of each segment are synced, a line at each change.
SYNCED_FILE = "synced.jsonl"


class _Forgetful(WrappedStorage):
    """When a segment is first opened in a life, it ends where the former life had synced it. What is there then counts
    as synced: the kernel had the time to write it."""

    def __init__(self, storage: Storage, probability: float, random: Random, firings: Firings) -> None:
        super().__init__(storage)
        self._probability = probability
        self._random = random
        self._firings = firings
        self._synced_file = f"{firings.directory}/{SYNCED_FILE}"
        self._synced: dict[str, int] = {}
        if storage.exists(self._synced_file):
            for line in storage.read(self._synced_file).splitlines():
                found = json.loads(line)
                self._synced[found["path"]] = found["size_bytes"]
        self._opened: set[str] = set()
        #: Syncs run in threads.
        self._lock = threading.Lock()

    def open(self, path: str, *, create: bool = True, keep: bool = False) -> File:
        path = posixpath.normpath(path)
        if not path.endswith(".log") or topic_partition_of(posixpath.dirname(path)) is None:
            return super().open(path, create=create, keep=keep)
        file = super().open(path, create=create, keep=keep)
        if path not in self._opened:
            self._opened.add(path)
            self._take(file)
            self.synced(path, file.size_bytes)
        return _SyncedSegment(file, path, self)

    def remove(self, path: str) -> None:
        super().remove(path)
        self._left(path)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self._left(source)

    def _left(self, path: str) -> None:
        """What is made in its place is another file."""
        path = posixpath.normpath(path)
        self._opened.discard(path)
        if path in self._synced:
            self.synced(path, 0)

    def _take(self, file: File) -> None:
        """What a former life left unsynced; a file that it did not know is as it was before."""
        path = posixpath.normpath(file.path)
        whose = topic_partition_of(posixpath.dirname(path))
        size, synced = file.size_bytes, self._synced.get(path, file.size_bytes)
        if whose is None or size <= synced or self._random.random() >= self._probability:
            return
        topic, partition = whose
        self._firings.note(
            NAME,
            topic=topic,
            partition=partition,
            segment=posixpath.basename(path),
            synced_bytes=synced,
            lost_bytes=size - synced,
        )
        file.truncate(synced)

    def synced(self, path: str, size_bytes: int) -> None:
        """This many bytes of a segment are safe from now on."""
        with self._lock:
            self._note(path, size_bytes)

    def cut(self, path: str, size_bytes: int) -> None:
        """A segment was cut: what follows is not safe, though it may lie below its former end."""
        with self._lock:
            self._note(path, min(size_bytes, self._synced[path]))

    def _note(self, path: str, size_bytes: int) -> None:
        if self._synced.get(path) != size_bytes:
            self._synced[path] = size_bytes
            self._storage.append_line(self._synced_file, json.dumps({"path": path, "size_bytes": size_bytes}))


class _SyncedSegment(WrappedFile):
    def __init__(self, file: File, path: str, storage: _Forgetful) -> None:
        super().__init__(file)
        self._synced_path = path
        self._of = storage

    def pwrite(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        super().pwrite(data, offset)
        self._of.cut(self._synced_path, offset)

    def truncate(self, size: int) -> None:
        super().truncate(size)
        self._of.cut(self._synced_path, size)

    def fsync(self) -> None:
        size = self.size_bytes
        super().fsync()
        self._of.synced(self._synced_path, size)


def plant(storage: Storage, probability: float, random: Random, firings: Firings) -> Storage:
    """A firing is a segment that lost its end, with ``probability``."""
    return _Forgetful(storage, probability, random, firings)
