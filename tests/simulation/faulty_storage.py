"""FaultyStorage: a disk in memory that fails at the calls it is told to.

Owns what of a fault (``cluster.seams.disk_fault``) a simulation sees. It concerns the data directory alone: the journal
and ZooKeeper are elsewhere.
A write that fails may have been done in part, as a full disk does it; a sync that fails has lost nothing that a kill
would not lose.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Self

from cluster.seams.disk_fault import DiskFault
from cluster.seams.memory_storage import MemoryFile
from cluster.seams.storage import Bytes, File
from tests.simulation.events import EventLog, LoggedStorage

DATA = "/data"


class FaultyStorage(LoggedStorage):
    """``start_moved`` is told (broker, the journal's line) when the start of a log has moved and its files are still
    there."""

    def __init__(
        self,
        broker_id: int,
        log: EventLog,
        start_moved: Callable[[int, dict[str, Any]], None] = lambda *_: None,
    ) -> None:
        super().__init__(broker_id, log)
        self.broker_id = broker_id
        self.fault: DiskFault | None = None
        #: How often it has failed in this life of its broker.
        self.failed = 0
        self._start_moved = start_moved

    def told(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "log-start":
            self._start_moved(self.broker_id, entry)

    def survivor(self) -> Self:
        """The next life's; a fault goes with the disk, so that nothing hinders the clearing away of this life."""
        other = super().survivor()
        other.failed = 0
        self.fault = None
        return other

    @contextlib.contextmanager
    def well(self) -> Iterator[None]:
        """Nothing fails in here: it is the simulation that looks at the disk."""
        fault, self.fault = self.fault, None
        try:
            yield
        finally:
            self.fault = fault

    def check(self, call: str, path: str) -> None:
        """Raises ``OSError`` if this call fails."""
        fault = self.fault
        if fault is not None and path.startswith(DATA) and fault.hits(call, path):
            if not self.failed:
                self._log.note(self._who, f"disk error: {call} {path}")
            self.failed += 1
            self._log.count(f"disk error at {call}")
            raise fault.error(path)

    def open(self, path: str, *, create: bool = True, keep: bool = False) -> File:
        self.check("open", path)
        file = super().open(path, create=create, keep=keep)
        assert isinstance(file, MemoryFile)
        return FaultyFile(file, self)

    def read(self, path: str) -> bytes:
        self.check("read", path)
        return super().read(path)

    def remove(self, path: str) -> None:
        self.check("remove", path)
        super().remove(path)

    def sync_directory(self, path: str) -> None:
        self.check("sync_directory", path)
        super().sync_directory(path)

    def rename(self, source: str, target: str) -> None:
        self.check("rename", source)
        super().rename(source, target)
        if target.endswith(".log.swap"):
            self._log.count("segment compacted")


class FaultyFile(MemoryFile):
    """An open file of a disk that may fail."""

    def __init__(self, file: MemoryFile, storage: FaultyStorage) -> None:
        super().__init__(file._path, file._node)
        self._storage = storage

    def append(self, *buffers: Bytes) -> int:
        storage = self._storage
        if storage.fault is not None:
            try:
                storage.check("append", self._path)
            except OSError:
                super().append(storage.fault.written(b"".join(buffers)))
                raise
        return super().append(*buffers)

    def pwrite(self, data: Bytes, offset: int) -> None:
        self._storage.check("pwrite", self._path)
        super().pwrite(data, offset)

    def pread(self, size: int, offset: int) -> bytes:
        self._storage.check("pread", self._path)
        return super().pread(size, offset)

    def truncate(self, size: int) -> None:
        self._storage.check("truncate", self._path)
        super().truncate(size)

    def fsync(self) -> None:
        self._storage.check("fsync", self._path)
        super().fsync()
