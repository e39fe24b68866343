"""Storage: the only place that touches files. Owns the seam's shape.

The forms are ``cluster.seams.os_storage`` (real files) and ``cluster.seams.memory_storage`` (a dictionary that
knows which bytes were synced, so that a power loss can drop the others).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

#: What can be written: anything with a buffer that we use (3.11 has no ``collections.abc.Buffer``).
Bytes = bytes | bytearray | memoryview


class File(Protocol):
    """One open file. All calls are blocking; errors are ``OSError``."""

    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int:
        """The size as this handle knows it (it is the only writer), without a system call."""
        ...

    @property
    def cuts(self) -> int:
        """How often its end was cut off through this handle (see ``FileRange``)."""
        ...

    def append(self, *buffers: Bytes) -> int:
        """Write all buffers at the end, whole, and return the bytes written. Not synced."""
        ...

    def pwrite(self, data: Bytes, offset: int) -> None:
        """Write all of ``data`` at ``offset``."""
        ...

    def pread(self, size: int, offset: int) -> bytes:
        """Up to ``size`` bytes from ``offset``; fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None: ...

    def fsync(self) -> None: ...

    def fileno(self) -> int | None:
        """The descriptor for sendfile, or None where there is none (memory)."""
        ...

    def close(self) -> None:
        """Close; a second call does nothing."""
        ...


class Lock(Protocol):
    """A file that is ours alone."""

    def release(self) -> None:
        """Let others have it; a second call does nothing."""
        ...


class Storage(Protocol):
    """A tree of files. Paths are strings, absolute or relative to the process."""

    def open(self, path: str, *, create: bool = True, keep: bool = False) -> File:
        """Open for reading and appending. ``keep``: it stays open for long, so that such files have a limit of their
        own; what is closed again at once may always be opened.

        Raises ``FileNotFoundError`` if absent and not ``create``, ``OSError`` with EMFILE for a file too many.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def listdir(self, path: str) -> list[str]:
        """Names in a directory, sorted; empty if there is no such directory."""
        ...

    def makedirs(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None:
        """Wait until the names in a directory are on the disk: a file that is synced may still be without its name."""
        ...

    def read(self, path: str) -> bytes:
        """A whole small file. Raises ``FileNotFoundError``."""
        ...

    def write_atomic(self, path: str, data: bytes) -> None:
        """Write ``path + '.tmp'``, fsync, rename over ``path``, fsync the directory (Kafka's checkpoint rule)."""
        ...

    def write_atomic_all(self, files: Mapping[str, bytes]) -> None:
        """``write_atomic`` for many files (path to content), whose syncs wait for the disk together.

        After an error any of them may be written or not.
        """
        ...

    def append_line(self, path: str, line: str) -> None:
        """Append one line to a text file and push it to the kernel before returning (journals, defect firings)."""
        ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens if it is absent."""
        ...

    def remove_tree(self, path: str) -> None: ...

    def lock(self, path: str) -> Lock:
        """Take the file ``path`` (made if absent) for this process alone, until released or the process ends.

        Raises ``BlockingIOError`` if another process has it, ``OSError`` if it cannot be made.
        """
        ...

    def free_bytes(self, path: str) -> int:
        """Free space on the file system that holds ``path``."""
        ...


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes ``[position, position + size)`` of an open file as they were when it had been cut ``cuts`` times, to be
    sent without copying them (sendfile).

    Once the file is cut, other bytes may be written where these stood: then the range is worth nothing anymore.
    """

    file: File
    position: int
    size: int
    cuts: int

    def check(self) -> None:
        """Raises ``OSError`` if the file was cut since. One that is closed raises at its next use."""
        if self.file.cuts != self.cuts:
            raise OSError(f"{self.file.path} was cut after a range of it was promised")

    def read(self) -> bytes:
        """The bytes. Raises ``OSError`` if they are not there anymore."""
        self.check()
        data = self.file.pread(self.size, self.position)
        if len(data) != self.size:
            raise OSError(f"{self.file.path} ends {self.size - len(data)} bytes before a range that was promised")
        return data

    def first(self, size: int) -> FileRange:
        """Its first bytes, at most ``size``."""
        return FileRange(self.file, self.position, min(self.size, size), self.cuts)

    def after(self, size: int) -> FileRange:
        """What comes after the first ``size`` bytes, which are not more than there are."""
        return FileRange(self.file, self.position + size, self.size - size, self.cuts)


def range_of(file: File, position: int, size: int) -> FileRange:
    """A range of a file as it is now."""
    return FileRange(file, position, size, file.cuts)


Payload = Bytes | FileRange


def payload_size(parts: Iterable[Payload]) -> int:
    """The bytes that ``parts`` will put on the wire."""
    total = 0
    for part in parts:
        total += part.size if isinstance(part, FileRange) else len(part)
    return total
