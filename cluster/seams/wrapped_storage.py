"""A storage and a file that delegate every call to another one: bases for wrappers that change a call or two.

Owns the delegation, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.seams.storage import Bytes, File, Lock, Storage


class WrappedFile:
    """A file that delegates to another file."""

    def __init__(self, file: File) -> None:
        self._file = file

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._file!r})"

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    @property
    def cuts(self) -> int:
        return self._file.cuts

    def append(self, *buffers: Bytes) -> int:
        return self._file.append(*buffers)

    def pwrite(self, data: Bytes, offset: int) -> None:
        self._file.pwrite(data, offset)

    def pread(self, size: int, offset: int) -> bytes:
        return self._file.pread(size, offset)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def fsync(self) -> None:
        self._file.fsync()

    def fileno(self) -> int | None:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


class WrappedStorage:
    """A storage that delegates to another storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._storage!r})"

    def open(self, path: str, *, create: bool = True, keep: bool = False) -> File:
        return self._storage.open(path, create=create, keep=keep)

    def exists(self, path: str) -> bool:
        return self._storage.exists(path)

    def listdir(self, path: str) -> list[str]:
        return self._storage.listdir(path)

    def makedirs(self, path: str) -> None:
        self._storage.makedirs(path)

    def sync_directory(self, path: str) -> None:
        self._storage.sync_directory(path)

    def read(self, path: str) -> bytes:
        return self._storage.read(path)

    def write_atomic(self, path: str, data: bytes) -> None:
        self._storage.write_atomic(path, data)

    def write_atomic_all(self, files: Mapping[str, bytes]) -> None:
        self._storage.write_atomic_all(files)

    def append_line(self, path: str, line: str) -> None:
        self._storage.append_line(path, line)

    def rename(self, source: str, target: str) -> None:
        self._storage.rename(source, target)

    def remove(self, path: str) -> None:
        self._storage.remove(path)

    def remove_tree(self, path: str) -> None:
        self._storage.remove_tree(path)

    def lock(self, path: str) -> Lock:
        return self._storage.lock(path)

    def free_bytes(self, path: str) -> int:
        return self._storage.free_bytes(path)
