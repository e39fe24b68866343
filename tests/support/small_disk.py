"""A broker process on a disk that is as large as a file says: a wrapper of the storage seam. Owns no broker, no test.

The disk holds what the data directory holds. A write that finds too little room is done in part, as a full disk does
it, and fails with ENOSPC. Whoever writes another number into the file makes the disk smaller or larger at once.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster.broker import main
from cluster.process.child import ChildChannel
from cluster.seams import os_storage
from cluster.seams.os_storage import OsFile, OsStorage
from cluster.seams.storage import Bytes

#: In a node's directory: how many bytes its data directory may hold. Without the file there is no limit.
SIZE = "disk-size"


class _Room:
    """What is left on the disk of this process."""

    def __init__(self) -> None:
        self.data = ""
        self._asked_ns = -1
        self._size_bytes = self._used_bytes = 0

    def take(self, path: str, wanted: int) -> int:
        """How many of these bytes may be written to a file of the data directory."""
        if not path.startswith(self.data):
            return wanted
        try:
            changed_ns = os.stat(self._size_file).st_mtime_ns
        except FileNotFoundError:
            return wanted
        if changed_ns != self._asked_ns or self._used_bytes + wanted > self._size_bytes:
            # what was removed meanwhile is free again
            self._asked_ns = changed_ns
            self._size_bytes = int(Path(self._size_file).read_text(encoding="ascii"))
            self._used_bytes = used_bytes(Path(self.data))
        taken = max(0, min(wanted, self._size_bytes - self._used_bytes))
        self._used_bytes += taken
        return taken

    @property
    def _size_file(self) -> str:
        return os.path.join(os.path.dirname(self.data), SIZE)


def used_bytes(data: Path) -> int:
    """What the files of a directory hold."""
    found = 0
    for directory, _, names in os.walk(data):
        for name in names:
            try:
                found += os.stat(os.path.join(directory, name)).st_size
            except FileNotFoundError:
                continue
    return found


_ROOM = _Room()


def _full(path: str) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


class SmallFile(OsFile):
    """A file of such a disk."""

    def append(self, *buffers: Bytes) -> int:
        whole = b"".join(buffers)
        taken = _ROOM.take(self.path, len(whole))
        if taken < len(whole):
            os.pwrite(self._descriptor, whole[:taken], self.size_bytes)
            raise _full(self.path)
        return super().append(whole)

    def pwrite(self, data: Bytes, offset: int) -> None:
        grown = max(0, offset + len(data) - self.size_bytes)
        if _ROOM.take(self.path, grown) < grown:
            raise _full(self.path)
        super().pwrite(data, offset)


class SmallDisk(OsStorage):
    """The storage of such a disk."""

    def write_atomic(self, path: str, data: bytes) -> None:
        self.write_atomic_all({path: data})

    def write_atomic_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            if _ROOM.take(path, len(data)) < len(data):
                raise _full(path)
        super().write_atomic_all(files)


def serve(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """``cluster.broker.main:serve`` on such a disk."""
    _ROOM.data = arguments["properties"]["log.dirs"]
    vars(main)["OsStorage"] = SmallDisk
    vars(os_storage)["OsFile"] = SmallFile
    main.serve(arguments, channel)
