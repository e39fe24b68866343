"""Who may take the last file descriptors of this process: connections stop first, then the files of logs.

Owns the shares. What is kept back is for what a broker must be able to do at any time: write a checkpoint, sync a
directory, reach ZooKeeper. The kernel hands out the lowest free number, so the number of a new descriptor tells how
many there are; nothing has to be counted.
"""

from __future__ import annotations

import resource

#: Kept back: this many, or an eighth of few.
MOST_KEPT = 512
_SHARE = 8


def limit() -> int:
    """How many descriptors this process may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _kept(most: int) -> int:
    return min(MOST_KEPT, most // _SHARE)


def is_for_files(descriptor: int) -> bool:
    """Whether a file of a log may keep the descriptor that it was given."""
    most = limit()
    return descriptor < most - _kept(most)


def is_for_connections(descriptor: int) -> bool:
    """Whether an accepted connection may keep the descriptor that it was given."""
    most = limit()
    return descriptor < most - 2 * _kept(most)
