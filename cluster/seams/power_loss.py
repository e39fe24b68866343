"""What a power loss leaves of a tree of files: the model that every storage that can lose power keeps.

Owns it: a file's bytes survive as far as they were synced, and its name if its directory was synced since it got one;
the same holds for directories in theirs. Without its name a file is lost, however well it was synced. Renames,
removals and truncations survive at once (a journaling file system orders them soon enough). Does not own any bytes.
"""

from __future__ import annotations

import errno
import json
import posixpath
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cluster.seams.storage import Storage

#: What a process without power leaves in its broker's directory, so that another one can take the rest from its files.
POWER_LOSS = "power-loss.json"

#: How many of a file's unsynced bytes at its end survive a power loss: (path, unsynced bytes) -> survivors.
Survivors = Callable[[str, int], int]


class SyncedBytes:
    """Of one file: ``synced`` is -1 until the first sync, then the bytes that are safe."""

    __slots__ = ("synced",)

    def __init__(self) -> None:
        self.synced = -1

    def changed_from(self, offset: int) -> None:
        """Bytes from there on were overwritten or cut off: they are not safe."""
        self.synced = min(self.synced, offset)


N = TypeVar("N", bound=SyncedBytes)


class FileTree(Generic[N]):
    """The names of files and directories, and which of them are on the disk. Paths are normalized."""

    def __init__(self) -> None:
        self.nodes: dict[str, N] = {}
        self.directories: set[str] = {".", "/"}
        #: Files and directories whose names were synced.
        self.named: set[str] = {".", "/"}

    def __repr__(self) -> str:
        return f"FileTree({len(self.nodes)} files)"

    def makedirs(self, path: str) -> None:
        while path not in self.directories:
            self.directories.add(path)
            path = parent(path)

    def sync_directory(self, path: str) -> None:
        """Raises ``FileNotFoundError``."""
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        self.named.update(name for name in (*self.nodes, *self.directories) if parent(name) == path)

    def rename(self, source: str, target: str) -> None:
        """Raises ``FileNotFoundError``."""
        if source in self.nodes:
            self.nodes[target] = self.nodes.pop(source)
            self._name_anew(source, target)
            return
        if source not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", source)
        inside = source + "/"
        for path in [path for path in self.nodes if path.startswith(inside)]:
            self.nodes[target + path[len(source) :]] = self.nodes.pop(path)
            self._name_anew(path, target + path[len(source) :])
        for path in [path for path in self.directories if path == source or path.startswith(inside)]:
            self.directories.remove(path)
            self.directories.add(target + path[len(source) :])
            self._name_anew(path, target + path[len(source) :])

    def _name_anew(self, source: str, target: str) -> None:
        """The new name is as safe as the former one, or as the one that it replaces."""
        if source in self.named:
            self.named.remove(source)
            self.named.add(target)

    def remove(self, path: str) -> None:
        self.nodes.pop(path, None)
        self.named.discard(path)

    def remove_tree(self, path: str) -> None:
        inside = path + "/"
        for name in [name for name in self.nodes if name.startswith(inside)]:
            del self.nodes[name]
        self.directories = {name for name in self.directories if name != path and not name.startswith(inside)}
        self.named &= {*self.nodes, *self.directories}

    def left(self, size_of: Callable[[str, N], int], survivors: Survivors | None = None) -> Iterator[tuple[str, int]]:
        """Each file that survives a power loss, with how many of its bytes: what was synced, and of the rest what
        ``survivors`` spares. If any of its bytes are spared, so is its name."""
        for path, node in self.nodes.items():
            safe = max(node.synced, 0)
            spared = survivors(path, size_of(path, node) - safe) if survivors is not None else 0
            if spared or self.is_named(path):
                yield path, safe + spared

    def left_directories(self, files: Container[str]) -> set[str]:
        """The directories that survive a power loss that these files survive."""
        needed = {each for path in self.nodes if path in files for each in parents(path)}
        return {path for path in self.directories if path in needed or self.is_named(path)}

    def is_named(self, path: str) -> bool:
        """Whether its name is on the disk, and those of all directories that it lies in."""
        return path in self.named and all(each in self.named for each in parents(path))


@dataclass(frozen=True, slots=True)
class UnsyncedLoss:
    """What a power loss takes: files that it cuts, each to a size, and files and directories that are gone."""

    cut: Mapping[str, int] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()

    def as_text(self) -> str:
        return json.dumps({"cut": dict(self.cut), "gone": list(self.gone), "directories": list(self.directories)})

    @classmethod
    def from_text(cls, text: str) -> UnsyncedLoss:
        """Raises ``ValueError``, ``KeyError`` or ``TypeError`` for anything else."""
        found = json.loads(text)
        cut = {str(path): int(size) for path, size in found["cut"].items()}
        return cls(cut, tuple(map(str, found["gone"])), tuple(map(str, found["directories"])))

    def take(self, storage: Storage) -> int:
        """Remove it from the files of a process that has ended; returns the number of bytes. Raises ``OSError``."""
        lost = 0
        for path, size in self.cut.items():
            file = storage.open(path, create=False)
            lost += max(0, file.size_bytes - size)
            file.truncate(min(size, file.size_bytes))
            file.close()
        for path in self.gone:
            if storage.exists(path):
                lost += len(storage.read(path))
                storage.remove(path)
        for path in self.directories:
            storage.remove_tree(path)
        return lost


def parent(path: str) -> str:
    """The directory of a path."""
    return posixpath.dirname(path) or "."


def parents(path: str) -> list[str]:
    """All directories that a path lies in, but for the root of the tree."""
    found = []
    while (path := parent(path)) not in (".", "/"):
        found.append(path)
    return found
