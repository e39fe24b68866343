"""Fetchers: one ``Fetcher`` for each broker that leads something we replicate.

Owns which partition is followed from whom. Does not own roles: it is told them.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.broker.replicas.fetcher import Fetcher
from cluster.broker.replicas.replica import Replica
from cluster.topic_partition import TopicPartition


class Fetchers:
    """``make`` opens a fetcher for a leader's broker id."""

    def __init__(self, make: Callable[[int], Fetcher]) -> None:
        self._make = make
        self._fetchers: dict[int, Fetcher] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<Fetchers {sorted(self._fetchers)} for {len(self._leaders)} partitions>"

    def follow(self, partition: Replica) -> None:
        """Follow the leader that the partition names now, in the epoch and from the offset it has now.

        Nothing happens after ``close``: roles are taken in steps, some of which may come later.
        """
        if self._is_closed:
            return
        leader_id = partition.leader_id
        if self._leaders.get(partition.key) not in (None, leader_id):
            self.leave(partition.key)
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self._fetchers[leader_id] = self._make(leader_id)
        self._leaders[partition.key] = leader_id
        fetcher.add(partition)

    def leave(self, key: TopicPartition) -> None:
        """Stop following for this partition."""
        leader_id = self._leaders.pop(key, None)
        if leader_id is not None:
            fetcher = self._fetchers[leader_id]
            fetcher.remove(key)
            if fetcher.is_idle:
                fetcher.close()
                del self._fetchers[leader_id]

    def close(self) -> None:
        """Follow no one anymore."""
        self._is_closed = True
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._leaders.clear()
