"""OsStorage: the Storage seam on real files.

Owns the system calls. A file keeps its own write position instead of O_APPEND: a write that failed halfway is
overwritten by the next one, and what is beyond ``size_bytes`` never counted.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from cluster.seams.descriptors import FILES, limit
from cluster.seams.storage import Bytes, File, Lock

#: Syncs that wait for the disk at the same time: a journal commits them together.
_SYNCS_AT_ONCE = 16
#: ``IOV_MAX`` of Linux: the most buffers that one pwritev takes.
_MOST_BUFFERS = 1024


class OsFile:
    """One open file. Made by ``OsStorage.open``; the only writer of its path."""

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size = size
        self._cuts = 0

    def __repr__(self) -> str:
        state = "closed" if self._descriptor < 0 else f"fd {self._descriptor}"
        return f"OsFile({self._path}, {self._size} bytes, {state})"

    @property
    def path(self) -> str:
        return self._path

    @property
    def size_bytes(self) -> int:
        return self._size

    @property
    def cuts(self) -> int:
        return self._cuts

    def append(self, *buffers: Bytes) -> int:
        size = self._size
        if len(buffers) == 1:
            total = len(buffers[0])
            written = os.pwrite(self._descriptor, buffers[0], size)
        else:
            total = sum(map(len, buffers))
            written = os.pwritev(self._descriptor, buffers, size) if 0 < len(buffers) <= _MOST_BUFFERS else 0
        if written != total:  # a short write, or very many buffers: the whole again, one by one
            position = size
            for data in buffers:
                self._write_all(data, position)
                position += len(data)
        # Only now: what a failed append left beyond the size is overwritten by the next one.
        self._size = size + total
        return total

    def pwrite(self, data: Bytes, offset: int) -> None:
        self._write_all(data, offset)
        self._size = max(self._size, offset + len(data))

    def _write_all(self, data: Bytes, position: int) -> None:
        rest = memoryview(data)
        while len(rest):
            written = os.pwrite(self._descriptor, rest, position)
            if written <= 0:
                raise OSError(errno.EIO, "the file takes no more bytes", self._path)
            rest = rest[written:]
            position += written

    def pread(self, size: int, offset: int) -> bytes:
        data = os.pread(self._descriptor, size, offset)
        if len(data) == size or not data:
            return data
        parts = [data]  # Linux reads at most 2 GiB at once, and a signal may cut a read short
        missing = size - len(data)
        while missing > 0:
            data = os.pread(self._descriptor, missing, offset + size - missing)
            if not data:
                break
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def truncate(self, size: int) -> None:
        if size < self._size:
            # Before the cut: even one that fails must not leave a range that seems to hold.
            self._cuts += 1
        os.ftruncate(self._descriptor, size)
        self._size = size

    def fsync(self) -> None:
        os.fsync(self._descriptor)

    def fileno(self) -> int | None:
        """The descriptor. Raises ``OSError`` once closed: its number may belong to another file by then."""
        if self._descriptor < 0:
            raise OSError(errno.EBADF, "the file is closed", self._path)
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            FILES.give(descriptor)
            os.close(descriptor)


class OsLock:
    """A lock on a file. Made by ``OsStorage.lock``."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def __repr__(self) -> str:
        return f"OsLock({self._path}, {'released' if self._descriptor < 0 else 'held'})"

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def raise_open_file_limit() -> int:
    """Let this process have as many files open as the machine allows it, and return how many that is.

    Each segment is an open file, and many systems begin with a limit of 1,024.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


class OsStorage:
    """The machine's file system."""

    def __repr__(self) -> str:
        return "OsStorage()"

    def open(self, path: str, *, create: bool = True, keep: bool = False) -> File:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            descriptor = os.open(path, flags, 0o644)
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            raise _too_many(path, "files open and has") from error
        if keep and not FILES.take(descriptor):
            os.close(descriptor)
            raise _too_many(path, "files open, and as many as are not kept for connections are")
        return OsFile(path, descriptor, os.fstat(descriptor).st_size)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def listdir(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def makedirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def sync_directory(self, path: str) -> None:
        _sync(path)

    def read(self, path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = [os.read(descriptor, os.fstat(descriptor).st_size + 1)]
            while parts[-1]:
                parts.append(os.read(descriptor, 1 << 20))
        finally:
            os.close(descriptor)
        return b"".join(parts)

    def write_atomic(self, path: str, data: bytes) -> None:
        temporary = path + ".tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync(os.path.dirname(path) or ".")

    def write_atomic_all(self, files: Mapping[str, bytes]) -> None:
        temporaries = {path + ".tmp": path for path in files}
        for temporary, path in temporaries.items():
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            with os.fdopen(descriptor, "wb") as file:
                file.write(files[path])
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
            list(pool.map(_sync, temporaries))
            for temporary, path in temporaries.items():
                os.replace(temporary, path)
            list(pool.map(_sync, sorted({os.path.dirname(path) or "." for path in files})))

    def append_line(self, path: str, line: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        # Unbuffered: the bytes are the kernel's when write returns.
        with os.fdopen(descriptor, "ab", buffering=0) as file:
            file.write(line.rstrip("\n").encode() + b"\n")

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return

    def lock(self, path: str) -> Lock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # flock keeps out another user of this process, the record lock what knows no other kind (Java, NFS).
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise BlockingIOError(errno.EAGAIN, "another process has locked it", path) from error
            raise
        return OsLock(path, descriptor)

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize


def _too_many(path: str, and_has: str) -> OSError:
    return OSError(errno.EMFILE, f"this process may have {limit()} {and_has}; raise that with ulimit -n", path)


def _sync(path: str) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
