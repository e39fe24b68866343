"""MemoryStorage: the Storage seam in one dictionary, which knows what a power loss would leave.

Owns the bytes; what of them would be left is the model's of ``cluster.seams.power_loss``. A crash of the process alone
loses nothing: open the same storage again.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Mapping
from copy import copy
from typing import Self

from cluster.seams.power_loss import FileTree, Survivors, SyncedBytes, parent
from cluster.seams.storage import Bytes, File, Lock


class _StoredFile(SyncedBytes):
    """The bytes of one file."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()


class MemoryFile:
    """One open file. It lives on after removal or power loss, as a descriptor does, but then no one else sees it."""

    def __init__(self, path: str, node: _StoredFile) -> None:
        self._path = path
        self._node = node
        self._closed = False
        self._cuts = 0

    def __repr__(self) -> str:
        return f"MemoryFile({self._path}, {len(self._node.data)} bytes, {self._node.synced} synced)"

    @property
    def path(self) -> str:
        return self._path

    @property
    def size_bytes(self) -> int:
        return len(self._node.data)

    @property
    def cuts(self) -> int:
        return self._cuts

    def append(self, *buffers: Bytes) -> int:
        data = self._open_node().data
        before = len(data)
        for buffer in buffers:
            data += buffer
        return len(data) - before

    def pwrite(self, data: Bytes, offset: int) -> None:
        node = self._open_node()
        if offset > len(node.data):
            node.data += bytes(offset - len(node.data))
        node.data[offset : offset + len(data)] = data
        node.changed_from(offset)

    def pread(self, size: int, offset: int) -> bytes:
        return bytes(self._open_node().data[offset : offset + size])

    def truncate(self, size: int) -> None:
        node = self._open_node()
        if size < len(node.data):
            self._cuts += 1
            del node.data[size:]
            node.changed_from(size)
        else:
            node.data += bytes(size - len(node.data))

    def fsync(self) -> None:
        node = self._open_node()
        node.synced = len(node.data)

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        self._closed = True

    def _open_node(self) -> _StoredFile:
        if self._closed:
            raise OSError(errno.EBADF, "the file is closed", self._path)
        return self._node


class MemoryLock:
    """A lock on a file, held until it is released or the power fails."""

    def __init__(self, path: str, locked: set[str]) -> None:
        self._path = path
        self._locked = locked

    def __repr__(self) -> str:
        return f"MemoryLock({self._path})"

    def release(self) -> None:
        self._locked.discard(self._path)


class MemoryStorage:
    """A tree of files in memory. ``capacity_bytes`` is what ``free_bytes`` counts down from; it limits nothing."""

    def __init__(self, capacity_bytes: int = 1 << 40) -> None:
        self._capacity_bytes = capacity_bytes
        self._tree: FileTree[_StoredFile] = FileTree()
        self._locked: set[str] = set()

    def __repr__(self) -> str:
        return f"MemoryStorage({len(self._tree.nodes)} files)"

    def survivor(self) -> Self:
        """What a new process finds on the disk after this one was killed: nothing that is still written here gets
        there, by whatever handle."""
        other = copy(self)
        other._tree = FileTree()
        other._tree.directories = set(self._tree.directories)
        other._tree.named = set(self._tree.named)
        other._locked = set()
        for path, node in self._tree.nodes.items():
            survivor = other._tree.nodes[path] = _StoredFile()
            survivor.data = bytearray(node.data)
            survivor.synced = node.synced
        return other

    def power_loss(self, survivors: Survivors | None = None) -> None:
        """Keep what was synced and drop the rest, or of the rest what ``survivors`` does not spare.

        Files that were open before are cut off: what is still written to them reaches no one.
        """
        tree = self._tree
        left: dict[str, _StoredFile] = {}
        for path, size in tree.left(lambda _path, node: len(node.data), survivors):
            rest = left[path] = _StoredFile()
            rest.data = tree.nodes[path].data[:size]
            rest.synced = len(rest.data)
        directories = tree.left_directories(left)
        self._tree = FileTree()
        self._tree.nodes, self._tree.directories = left, directories
        self._tree.named = {*left, *directories}
        self._locked.clear()

    def sync_directory(self, path: str) -> None:
        self._tree.sync_directory(posixpath.normpath(path))

    def open(self, path: str, *, create: bool = True, keep: bool = False) -> File:
        path = posixpath.normpath(path)
        node = self._tree.nodes.get(path)
        if node is None:
            if not create or parent(path) not in self._tree.directories:
                raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
            node = self._tree.nodes[path] = _StoredFile()
        return MemoryFile(path, node)

    def exists(self, path: str) -> bool:
        path = posixpath.normpath(path)
        return path in self._tree.nodes or path in self._tree.directories

    def listdir(self, path: str) -> list[str]:
        path = posixpath.normpath(path)
        everything = [*self._tree.nodes, *(self._tree.directories - {".", "/"})]
        return sorted(posixpath.basename(name) for name in everything if parent(name) == path)

    def makedirs(self, path: str) -> None:
        self._tree.makedirs(posixpath.normpath(path))

    def read(self, path: str) -> bytes:
        node = self._tree.nodes.get(posixpath.normpath(path))
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
        return bytes(node.data)

    def write_atomic(self, path: str, data: bytes) -> None:
        file = self.open(path + ".tmp")
        file.truncate(0)
        file.append(data)
        file.fsync()
        file.close()
        self.rename(path + ".tmp", path)
        self.sync_directory(parent(posixpath.normpath(path)))

    def write_atomic_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            self.write_atomic(path, data)

    def append_line(self, path: str, line: str) -> None:
        file = self.open(path)
        file.append(line.rstrip("\n").encode() + b"\n")
        file.close()

    def rename(self, source: str, target: str) -> None:
        source, target = posixpath.normpath(source), posixpath.normpath(target)
        if parent(target) not in self._tree.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", target)
        self._tree.rename(source, target)

    def remove(self, path: str) -> None:
        self._tree.remove(posixpath.normpath(path))

    def remove_tree(self, path: str) -> None:
        self._tree.remove_tree(posixpath.normpath(path))

    def lock(self, path: str) -> Lock:
        path = posixpath.normpath(path)
        if path in self._locked:
            raise BlockingIOError(errno.EAGAIN, "another process has locked it", path)
        self.open(path).close()
        self._locked.add(path)
        return MemoryLock(path, self._locked)

    def free_bytes(self, path: str) -> int:
        return max(0, self._capacity_bytes - sum(len(node.data) for node in self._tree.nodes.values()))
