"""Snapshots of producers that a roll has put off, so that no append waits until they are written.

Owns which ones wait, and the writing of one, cut into what the loop does and what may run in another thread. Does not
own when that is (the broker's timers), nor the bytes (``snapshots.py``, ``producer_snapshot.py``).

What waits is what a mark holds anyway (``producers.py``). If a log rolls faster than snapshots can be written, the
oldest that waits is left out, so that no more than marks do is held in memory. A crash takes what waits. That is like
a power loss, which may take any snapshot: a start then reads more of the log. Only the producers that have no batch
left in the log would be lost, so no segment becomes the first of its log while its snapshot waits, or was left out.

The other thread writes under names of its own. What it wrote gets its real name on the loop, if it is still wanted:
what a truncation has removed meanwhile does not come back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cluster.log.checkpoints import write_new
from cluster.log.producer_marks import MARKS
from cluster.log.sequence import ProducerEntry
from cluster.seams.storage import Storage

#: At most this many wait in one log.
WAITING = MARKS
#: How a file's name ends while it is written; a start removes what a crash has left.
UNFINISHED_SUFFIX = ".waiting.tmp"


@dataclass(frozen=True, slots=True)
class NotedProducers:
    """What was known at a roll for records below ``offset``, of which the last is of ``leader_epoch``."""

    offset: int
    leader_epoch: int
    entries: Mapping[int, ProducerEntry]


@dataclass(frozen=True, slots=True)
class PendingSnapshot:
    """The writing of one. ``files`` are their names with what makes their bytes."""

    noted: NotedProducers
    files: tuple[tuple[str, Callable[[NotedProducers], bytes]], ...]
    storage: Storage

    def run(self) -> None:
        """Write the files under other names; blocks. Raises ``OSError``."""
        for path, encode in self.files:
            write_new(self.storage, path + UNFINISHED_SUFFIX, encode(self.noted))

    def keep(self) -> None:
        """Give the files their names. Raises ``OSError``."""
        for path, _ in self.files:
            self.storage.rename(path + UNFINISHED_SUFFIX, path)

    def discard(self) -> None:
        """Remove what was written. Raises ``OSError``."""
        for path, _ in self.files:
            self.storage.remove(path + UNFINISHED_SUFFIX)


class WaitingSnapshots:
    """Those of one log, the oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[int, NotedProducers] = {}
        self._left_out: set[int] = set()

    def __repr__(self) -> str:
        return f"WaitingSnapshots({sorted(self._waiting)}, without {sorted(self._left_out)})"

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, noted: NotedProducers) -> None:
        self._waiting[noted.offset] = noted
        if len(self._waiting) > WAITING:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            self._left_out.add(oldest)

    def first(self) -> NotedProducers | None:
        """The oldest, None if none waits."""
        return next(iter(self._waiting.values()), None)

    def take(self, noted: NotedProducers) -> bool:
        """It waits no longer; False if it has not waited anymore."""
        offset = noted.offset
        if self._waiting.get(offset) is noted:
            del self._waiting[offset]
            return True
        return False

    def keep_within(self, first: int, last: int) -> None:
        """Forget those whose offset is below ``first`` or above ``last``."""
        self._waiting = {offset: noted for offset, noted in self._waiting.items() if first <= offset <= last}
        self._left_out = {offset for offset in self._left_out if first <= offset <= last}

    def may_begin(self, base_offsets: Sequence[int], offset: int) -> int:
        """Where the log may begin if it is to begin at ``offset``: at a segment that has its snapshot."""
        at = bisect_right(base_offsets, offset) - 1
        while at > 0 and (base_offsets[at] in self._waiting or base_offsets[at] in self._left_out):
            at -= 1
        return base_offsets[max(0, at)]
