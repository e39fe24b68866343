"""BreakableStorage: a storage whose calls can be made to fail, to take longer, and to end without power.

Owns the calls; which of them fail is up to ``cluster.seams.breakable_disk``. It wraps another storage and adds nothing
to its files. What it finds when it first looks counts as synced: during the restart, the kernel had time to write it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from cluster.seams.breakable_disk import BreakableDisk
from cluster.seams.power_loss import SyncedBytes, parent
from cluster.seams.storage import Bytes, File, Storage
from cluster.seams.wrapped_storage import WrappedFile, WrappedStorage


class BreakableFile(WrappedFile):
    """An open file of such a disk."""

    def __init__(self, file: File, node: SyncedBytes, disk: BreakableDisk) -> None:
        super().__init__(file)
        self._node = node
        self._disk = disk

    def __repr__(self) -> str:
        return f"BreakableFile({self._file!r}, {self._node.synced} synced)"

    def append(self, *buffers: Bytes) -> int:
        fault = self._disk.fault
        try:
            self._disk.check("append", self.path)
        except OSError:
            if fault is not None:
                self._file.append(fault.written(b"".join(buffers)))
            raise
        return self._file.append(*buffers)

    def pwrite(self, data: Bytes, offset: int) -> None:
        self._disk.check("pwrite", self.path)
        self._file.pwrite(data, offset)
        self._node.changed_from(offset)

    def pread(self, size: int, offset: int) -> bytes:
        self._disk.check("pread", self.path)
        return self._file.pread(size, offset)

    def truncate(self, size: int) -> None:
        self._disk.check("truncate", self.path)
        self._file.truncate(size)
        self._node.changed_from(size)

    def fsync(self) -> None:
        self._disk.check("fsync", self.path)
        began_ns = self._disk.delay_sync()
        size = self._file.size_bytes
        self._file.fsync()
        self._node.synced = size
        self._disk.synced(self.path, began_ns)

    def fileno(self) -> int | None:
        # what is sent by sendfile is read by no call of ours
        self._disk.check("pread", self.path)
        return self._file.fileno()


class BreakableStorage(WrappedStorage):
    """``storage`` with ``disk`` in it."""

    def __init__(self, storage: Storage, disk: BreakableDisk) -> None:
        super().__init__(storage)
        self._disk = disk

    def __repr__(self) -> str:
        return f"BreakableStorage({self._storage!r}, {self._disk!r})"

    def open(self, path: str, *, create: bool = True, keep: bool = False) -> File:
        path = posixpath.normpath(path)
        disk = self._disk
        if not disk.holds(path):
            return self._storage.open(path, create=create, keep=keep)
        disk.check("open", path)
        with disk.lock:
            node = disk.tree.nodes.get(path)
            is_found = node is None and self._storage.exists(path)
            file = self._storage.open(path, create=create, keep=keep)
            if node is None:
                node = disk.tree.nodes[path] = SyncedBytes()
                self._know(parent(path))
            if is_found:
                node.synced = file.size_bytes
                disk.tree.named.add(path)
        return BreakableFile(file, node, disk)

    def _know(self, directory: str) -> None:
        """Note directories that this process found and did not make: their names are on the disk."""
        tree = self._disk.tree
        while directory not in tree.directories:
            tree.directories.add(directory)
            tree.named.add(directory)
            directory = parent(directory)

    def listdir(self, path: str) -> list[str]:
        self._disk.wait_for_power()
        return self._storage.listdir(path)

    def makedirs(self, path: str) -> None:
        path = posixpath.normpath(path)
        disk = self._disk
        if not disk.holds(path):
            self._storage.makedirs(path)
            return
        disk.wait_for_power()
        with disk.lock:
            at = path
            while not self._storage.exists(at):
                at = parent(at)
            self._know(at)
            self._storage.makedirs(path)
            disk.tree.makedirs(path)

    def sync_directory(self, path: str) -> None:
        path = posixpath.normpath(path)
        disk = self._disk
        if disk.holds(path):
            disk.check("sync_directory", path)
            began_ns = disk.delay_sync()
            with disk.lock:
                self._storage.sync_directory(path)
                self._know(path)
                disk.tree.sync_directory(path)
            disk.synced(path, began_ns)
        else:
            self._storage.sync_directory(path)

    def read(self, path: str) -> bytes:
        if self._disk.holds(path):
            self._disk.check("read", path)
        return self._storage.read(path)

    def write_atomic(self, path: str, data: bytes) -> None:
        path = posixpath.normpath(path)
        if not self._disk.holds(path):
            self._storage.write_atomic(path, data)
            return
        file = self.open(path + ".tmp")
        try:
            file.truncate(0)
            file.append(data)
            file.fsync()
        finally:
            file.close()
        self.rename(path + ".tmp", path)
        self.sync_directory(parent(path))

    def write_atomic_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            self.write_atomic(path, data)

    def rename(self, source: str, target: str) -> None:
        source, target = posixpath.normpath(source), posixpath.normpath(target)
        disk = self._disk
        if not disk.holds(source):
            self._storage.rename(source, target)
            return
        disk.check("rename", source)
        with disk.lock:
            self._storage.rename(source, target)
            tree = disk.tree
            if source in tree.nodes or source in tree.directories:
                tree.rename(source, target)
            else:
                tree.remove(target)

    def remove(self, path: str) -> None:
        path = posixpath.normpath(path)
        disk = self._disk
        if not disk.holds(path):
            self._storage.remove(path)
            return
        disk.check("remove", path)
        with disk.lock:
            self._storage.remove(path)
            disk.tree.remove(path)

    def remove_tree(self, path: str) -> None:
        path = posixpath.normpath(path)
        disk = self._disk
        disk.wait_for_power()
        with disk.lock:
            self._storage.remove_tree(path)
            if disk.holds(path):
                disk.tree.remove_tree(path)
