"""Which calls of a disk fail, for which paths, and what a write that fails has done nevertheless. Pure but for draws.

Owns the decision. A storage that can be broken asks it before each call; which part of the tree is that disk is the
storage's own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from random import Random

#: What of the Storage seam can fail.
CALLS = ("open", "append", "pwrite", "pread", "truncate", "fsync", "read", "rename", "remove", "sync_directory")


@dataclass
class DiskFault:
    """``calls`` fail with ``number`` for paths with ``word`` in them."""

    calls: frozenset[str]
    word: str
    number: int
    random: Random = field(repr=False)

    def __str__(self) -> str:
        calls = "all calls" if len(self.calls) > 1 else min(self.calls)
        return f"{calls} of {self.word}: {os.strerror(self.number)}"

    def hits(self, call: str, path: str) -> bool:
        """Whether this call fails."""
        return call in self.calls and self.word in path

    def error(self, path: str) -> OSError:
        """What it fails with."""
        return OSError(self.number, os.strerror(self.number), path)

    def written(self, whole: bytes) -> bytes:
        """What an append that fails has written: nothing, half of it or all, as a full disk does it."""
        return whole[: self.random.choice((0, len(whole) // 2, len(whole)))]
