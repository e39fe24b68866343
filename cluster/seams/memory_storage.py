"""MemoryStorage: the Storage seam in one dictionary, which knows what a power loss would leave.

Owns that model: a file's bytes survive as far as they were synced, and its name if its directory was synced since it
got one, as ``write_atomic`` does; the same holds for directories in theirs. Without its name a file is lost, however
well it was synced. Renames, removals and truncations survive at once (a journaling file system orders them soon
enough). A crash of the process alone loses nothing: open the same storage again.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Callable, Mapping
from copy import copy
from typing import Self

from cluster.seams.storage import Bytes, File, Lock

#: How many of a file's unsynced bytes at its end survive a power loss: (path, unsynced bytes) -> survivors.
Survivors = Callable[[str, int], int]


class _Node:
    """The bytes of one file. ``synced`` is -1 until the first sync, then the bytes that are safe."""

    __slots__ = ("data", "synced")

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = -1


class MemoryFile:
    """One open file. It lives on after removal or power loss, as a descriptor does, but then no one else sees it."""

    def __init__(self, path: str, node: _Node) -> None:
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
        node.synced = min(node.synced, offset)

    def pread(self, size: int, offset: int) -> bytes:
        return bytes(self._open_node().data[offset : offset + size])

    def truncate(self, size: int) -> None:
        node = self._open_node()
        if size < len(node.data):
            self._cuts += 1
            del node.data[size:]
            node.synced = min(node.synced, size)
        else:
            node.data += bytes(size - len(node.data))

    def fsync(self) -> None:
        node = self._open_node()
        node.synced = len(node.data)

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        self._closed = True

    def _open_node(self) -> _Node:
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
        self._nodes: dict[str, _Node] = {}
        self._directories: set[str] = {".", "/"}
        #: Files and directories whose names were synced.
        self._named: set[str] = {".", "/"}
        self._locked: set[str] = set()

    def __repr__(self) -> str:
        return f"MemoryStorage({len(self._nodes)} files)"

    def survivor(self) -> Self:
        """What a new process finds on the disk after this one was killed: nothing that is still written here gets
        there, by whatever handle."""
        other = copy(self)
        other._nodes = {}
        other._directories = set(self._directories)
        other._named = set(self._named)
        other._locked = set()
        for path, node in self._nodes.items():
            survivor = other._nodes[path] = _Node()
            survivor.data = bytearray(node.data)
            survivor.synced = node.synced
        return other

    def power_loss(self, survivors: Survivors | None = None) -> None:
        """Keep what was synced and drop the rest, or of the rest what ``survivors`` does not spare.

        Files that were open before are cut off: what is still written to them reaches no one.
        """
        left: dict[str, _Node] = {}
        for path, node in self._nodes.items():
            safe = max(node.synced, 0)
            spared = survivors(path, len(node.data) - safe) if survivors is not None else 0
            # What is spared of its bytes is spared of its name.
            if spared or self._is_named(path):
                rest = left[path] = _Node()
                rest.data = node.data[: safe + spared]
                rest.synced = len(rest.data)
        self._nodes = left
        needed = {parent for path in left for parent in _parents(path)}
        self._directories = {path for path in self._directories if path in needed or self._is_named(path)}
        self._named = {*self._nodes, *self._directories}
        self._locked.clear()

    def _is_named(self, path: str) -> bool:
        return path in self._named and all(parent in self._named for parent in _parents(path))

    def sync_directory(self, path: str) -> None:
        path = posixpath.normpath(path)
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        self._named.update(name for name in (*self._nodes, *self._directories) if _parent(name) == path)

    def open(self, path: str, *, create: bool = True, keep: bool = False) -> File:
        path = posixpath.normpath(path)
        node = self._nodes.get(path)
        if node is None:
            if not create or _parent(path) not in self._directories:
                raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
            node = self._nodes[path] = _Node()
        return MemoryFile(path, node)

    def exists(self, path: str) -> bool:
        path = posixpath.normpath(path)
        return path in self._nodes or path in self._directories

    def listdir(self, path: str) -> list[str]:
        path = posixpath.normpath(path)
        everything = [*self._nodes, *(self._directories - {".", "/"})]
        return sorted(posixpath.basename(name) for name in everything if _parent(name) == path)

    def makedirs(self, path: str) -> None:
        path = posixpath.normpath(path)
        while path not in self._directories:
            self._directories.add(path)
            path = _parent(path)

    def read(self, path: str) -> bytes:
        node = self._nodes.get(posixpath.normpath(path))
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
        self.sync_directory(_parent(posixpath.normpath(path)))

    def write_atomic_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            self.write_atomic(path, data)

    def append_line(self, path: str, line: str) -> None:
        file = self.open(path)
        file.append(line.rstrip("\n").encode() + b"\n")
        file.close()

    def rename(self, source: str, target: str) -> None:
        source, target = posixpath.normpath(source), posixpath.normpath(target)
        if source in self._nodes:
            self._nodes[target] = self._nodes.pop(source)
            self._name_anew(source, target)
            return
        if source not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", source)
        inside = source + "/"
        for path in [path for path in self._nodes if path.startswith(inside)]:
            self._nodes[target + path[len(source) :]] = self._nodes.pop(path)
            self._name_anew(path, target + path[len(source) :])
        for path in [path for path in self._directories if path == source or path.startswith(inside)]:
            self._directories.remove(path)
            self._directories.add(target + path[len(source) :])
            self._name_anew(path, target + path[len(source) :])

    def _name_anew(self, source: str, target: str) -> None:
        """The new name is as safe as the former one, or as the one that it replaces."""
        if source in self._named:
            self._named.remove(source)
            self._named.add(target)

    def remove(self, path: str) -> None:
        self._nodes.pop(posixpath.normpath(path), None)
        self._named.discard(posixpath.normpath(path))

    def remove_tree(self, path: str) -> None:
        path = posixpath.normpath(path)
        inside = path + "/"
        for name in [name for name in self._nodes if name.startswith(inside)]:
            del self._nodes[name]
        self._directories = {name for name in self._directories if name != path and not name.startswith(inside)}
        self._named &= {*self._nodes, *self._directories}

    def lock(self, path: str) -> Lock:
        path = posixpath.normpath(path)
        if path in self._locked:
            raise BlockingIOError(errno.EAGAIN, "another process has locked it", path)
        self.open(path).close()
        self._locked.add(path)
        return MemoryLock(path, self._locked)

    def free_bytes(self, path: str) -> int:
        return max(0, self._capacity_bytes - sum(len(node.data) for node in self._nodes.values()))


def _parent(path: str) -> str:
    return posixpath.dirname(path) or "."


def _parents(path: str) -> list[str]:
    """All directories that a path lies in, but for the root of the tree."""
    found = []
    while (path := _parent(path)) not in (".", "/"):
        found.append(path)
    return found
