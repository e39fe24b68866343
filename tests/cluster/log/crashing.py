"""A process that dies at the n-th operation on its disk, and a disk that is full from the n-th on."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.seams.memory_storage import MemoryFile, MemoryStorage

#: Every operation that changes something.
_OPERATIONS = (
    (MemoryStorage, "rename"),
    (MemoryStorage, "remove"),
    (MemoryStorage, "remove_tree"),
    (MemoryStorage, "makedirs"),
    (MemoryStorage, "write_atomic"),
    (MemoryStorage, "sync_directory"),
    (MemoryStorage, "open"),
    (MemoryFile, "append"),
    (MemoryFile, "pwrite"),
    (MemoryFile, "truncate"),
    (MemoryFile, "fsync"),
)


class Died(BaseException):
    """kill -9: nothing of the product may catch it."""


@contextmanager
def dying_after(operations: int) -> Iterator[list[int]]:
    """Let this many operations happen and no more; what is yielded counts those that did."""
    done = [0]

    def limited(real):
        def call(*args, **kwargs):
            if done[0] >= operations:
                raise Died
            done[0] += 1
            return real(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in _OPERATIONS:
            patch.setattr(owner, name, limited(getattr(owner, name)))
        yield done


@contextmanager
def full_after(operations: int) -> Iterator[list[int]]:
    """A disk that takes this many writes more and is then full: appends get half of their bytes in (ENOSPC)."""
    done = [0]

    def is_full() -> bool:
        done[0] += 1
        return done[0] > operations

    def limited(real, *, half: bool):
        def call(target, *args, **kwargs):
            if is_full():
                if half:
                    real(target, bytes(args[0])[: len(args[0]) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(target, *args, **kwargs)

        return call

    def opened(real):
        def call(storage, path, *, create=True, keep=False):
            if create and not storage.exists(path) and is_full():
                raise OSError(errno.ENOSPC, "No space left on device", path)
            return real(storage, path, create=create, keep=keep)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryFile, "append", limited(MemoryFile.append, half=True))
        patch.setattr(MemoryStorage, "write_atomic", limited(MemoryStorage.write_atomic, half=False))
        patch.setattr(MemoryStorage, "open", opened(MemoryStorage.open))
        yield done
