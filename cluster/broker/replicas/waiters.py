"""Who waits at one partition: produces for its high watermark, fetches for bytes or a commit.

Owns the queues. Does not own the decision whether a produce is settled, nor the lives of the requests (``purgatory``).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Protocol

from cluster.broker.replicas.fetch_checks import FetchedBy
from cluster.broker.replicas.purgatory import DelayedFetch, DelayedProduce, PartitionQueue
from cluster.protocol.errors import ErrorCode
from cluster.replication.leader import LeaderState, acknowledgement

#: (leadership, leader epoch of the append, required offset) -> the answer, None while it must wait.
Acknowledgement = Callable[[LeaderState | None, int, int], ErrorCode | None]

#: What was answered otherwise is swept out of a queue when it is this many and at least half of it.
_SWEEP_AT = 16


class Watcher(Protocol):
    """A fetch session that holds the partition: it is told of changes whether a fetch waits or not."""

    def changed(self, *, wakes: bool) -> None: ...


class Deletion(Protocol):
    """A DeleteRecords request that waits for replicas' logs to begin at an offset or above."""

    @property
    def is_done(self) -> bool: ...

    def began(self, index: int, low_watermark: int) -> None: ...

    def settle(self, index: int, error_code: ErrorCode) -> None: ...

    def waits_at(self, index: int, place: PartitionQueue) -> None: ...


class Waiters:
    """The requests that wait at one partition."""

    __slots__ = (
        "_acknowledgement",
        "_arrived",
        "_consumers",
        "_deletions",
        "_followers",
        "_left_deletions",
        "_left_produces",
        "_produces",
        "_watchers",
    )

    def __init__(self, acknowledgement: Acknowledgement = acknowledgement) -> None:
        self._acknowledgement = acknowledgement
        #: (required offset, arrival, leader epoch of the append, request, which part of it)
        self._produces: list[tuple[int, int, int, DelayedProduce, int]] = []
        self._arrived = 0
        #: How many of them were answered otherwise, and wait for nothing.
        self._left_produces = 0
        #: A fetch, and which of its partitions this one is.
        self._consumers: dict[DelayedFetch, int] = {}
        self._followers: dict[DelayedFetch, int] = {}
        self._watchers: dict[Watcher, None] = {}
        #: (offset, arrival, request, which part of it)
        self._deletions: list[tuple[int, int, Deletion, int]] = []
        self._left_deletions = 0

    def __repr__(self) -> str:
        return f"<Waiters {len(self._produces)} produces, {len(self._consumers) + len(self._followers)} fetches>"

    def add_produce(self, required_offset: int, append_epoch: int, produce: DelayedProduce, index: int) -> None:
        """Settle part ``index`` of ``produce`` when the high watermark reaches ``required_offset``, or this leadership
        ends."""
        self._arrived += 1
        heapq.heappush(self._produces, (required_offset, self._arrived, append_epoch, produce, index))
        produce.waits_at(index, self)

    def produce_left(self) -> None:
        """One of them was answered otherwise. Called when it is done."""
        self._left_produces += 1
        if self._left_produces >= max(_SWEEP_AT, len(self._produces) / 2):
            # In place: this may come from within an answer.
            self._produces[:] = [waiter for waiter in self._produces if not waiter[3].is_done]
            heapq.heapify(self._produces)
            self._left_produces = 0

    def settle_produces(self, leader: LeaderState | None) -> None:
        """Answer those whose fate is known now. When the leadership has ended, that is all of them."""
        produces = self._produces
        while produces:
            required_offset, _, append_epoch, produce, index = produces[0]
            code = self._acknowledgement(leader, append_epoch, required_offset)
            if code is None:
                return
            heapq.heappop(produces)
            if produce.is_done:
                self._left_produces -= 1
            else:
                produce.settle(index, code)

    def add_deletion(self, offset: int, deletion: Deletion, index: int) -> None:
        """Settle part ``index`` of ``deletion`` when no live replica's log begins below ``offset`` anymore."""
        self._arrived += 1
        heapq.heappush(self._deletions, (offset, self._arrived, deletion, index))
        deletion.waits_at(index, self)

    def deletion_left(self) -> None:
        """One of them was answered otherwise. Called when it is done."""
        self._left_deletions += 1
        if self._left_deletions >= max(_SWEEP_AT, len(self._deletions) / 2):
            self._deletions[:] = [waiter for waiter in self._deletions if not waiter[2].is_done]
            heapq.heapify(self._deletions)
            self._left_deletions = 0

    def settle_deletions(self, leader: LeaderState | None, log_start_offset: int) -> None:
        """Answer those that are done, or all if this replica does not lead anymore."""
        if not self._deletions:
            return
        if leader is None:
            waiting, self._deletions = self._deletions, []
            self._left_deletions = 0
            for _, _, deletion, index in waiting:
                deletion.settle(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        low_watermark = leader.low_watermark(log_start_offset)
        while self._deletions and self._deletions[0][0] <= low_watermark:
            _, _, deletion, index = heapq.heappop(self._deletions)
            if deletion.is_done:
                self._left_deletions -= 1
            else:
                deletion.began(index, low_watermark)

    def add_fetch(self, fetch: DelayedFetch, index: int, reader: FetchedBy) -> None:
        """Wake ``fetch`` when there may be more for it here, which is its partition number ``index``."""
        (self._followers if reader.is_follower else self._consumers)[fetch] = index

    def remove_fetch(self, fetch: DelayedFetch, reader: FetchedBy) -> None:
        (self._followers if reader.is_follower else self._consumers).pop(fetch, None)

    def add_watcher(self, watcher: Watcher) -> None:
        self._watchers[watcher] = None

    def remove_watcher(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def wake_followers(self) -> None:
        """Something was appended."""
        if self._followers:
            for fetch, index in self._followers.items():
                fetch.wake(index)
        if self._watchers:
            for watcher in self._watchers:
                watcher.changed(wakes=True)

    def tell_followers(self) -> None:
        """Something changed that followers should know, with their next answer."""
        for watcher in self._watchers:
            watcher.changed(wakes=False)

    def committed(self, leader: LeaderState | None) -> None:
        """The high watermark moved: who waits for it, or should know of it, hears so."""
        if self._produces:
            self.settle_produces(leader)
        if self._consumers:
            self.wake_consumers()
        if self._watchers:
            self.tell_followers()

    def wake_consumers(self) -> None:
        """Something was committed."""
        for fetch, index in self._consumers.items():
            fetch.wake(index)

    def wake_all(self) -> None:
        """The role of the replica changed."""
        self.wake_followers()
        self.wake_consumers()
