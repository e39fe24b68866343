"""A process that dies at the n-th operation on its disk, for tests of what a crash leaves behind."""

from __future__ import annotations

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
