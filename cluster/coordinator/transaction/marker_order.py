"""MarkerOrder: in which order the markers for one broker go into requests to it.

Owns that no transaction waits for all the markers of others: of those that wait the one that lacks the fewest is next,
and each fourth time the one that was served longest ago, a piece at a time. So a transaction of one partition is in the
next request, however many partitions others name, and the largest continues nevertheless. Does not own to which broker
markers go (``MarkerQueue``), nor the requests. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

from cluster.coordinator.transaction.decisions import TransactionMarkers
from cluster.topic_partition import TopicPartition

#: Partitions that one transaction may have in a row.
PIECE = 50
#: Of this many pieces one is for the transaction that was served longest ago.
OLDEST_EACH = 4


class MarkerOrder:
    """Markers of one transaction are one, whenever they were added."""

    def __init__(self) -> None:
        #: What each transaction lacks, which is named by its markers without partitions. The first was served longest
        #: ago.
        self._lacking: dict[TransactionMarkers, list[TopicPartition]] = {}
        #: (how many it lacks, when that was so, which transaction); what is no longer so is ignored.
        self._lightest: list[tuple[int, int, TransactionMarkers]] = []
        self._changes = 0
        self._taken = 0

    def __repr__(self) -> str:
        return f"MarkerOrder({len(self)} transactions)"

    def __len__(self) -> int:
        return len(self._lacking)

    def add(self, markers: TransactionMarkers) -> None:
        transaction = replace(markers, topic_partitions=frozenset())
        lacking = self._lacking.get(transaction, [])
        # They are taken from the end.
        self._put(transaction, sorted(markers.topic_partitions.union(lacking), reverse=True))

    def drop(self, transaction_partition: int) -> None:
        """Forget those of one partition of ``__transaction_state``."""
        for transaction in [each for each in self._lacking if each.transaction_partition == transaction_partition]:
            del self._lacking[transaction]

    def take(self, most_partitions: int) -> list[TransactionMarkers]:
        """The markers of the next request: that many partitions at least, if as many lack one, and less than a piece
        more."""
        found: dict[TransactionMarkers, list[TopicPartition]] = {}
        count = 0
        while self._lacking and count < most_partitions:
            transaction = self._next()
            lacking = self._lacking.pop(transaction)
            piece = lacking[-PIECE:]
            del lacking[-PIECE:]
            if lacking:
                self._put(transaction, lacking)
            found.setdefault(transaction, []).extend(piece)
            count += len(piece)
        return [replace(transaction, topic_partitions=frozenset(piece)) for transaction, piece in found.items()]

    def _next(self) -> TransactionMarkers:
        self._taken += 1
        if self._taken % OLDEST_EACH == 0:
            return next(iter(self._lacking))
        while True:
            count, _, transaction = heappop(self._lightest)
            if len(self._lacking.get(transaction, ())) == count:
                return transaction

    def _put(self, transaction: TransactionMarkers, lacking: list[TopicPartition]) -> None:
        self._changes += 1
        self._lacking[transaction] = lacking
        heappush(self._lightest, (len(lacking), self._changes, transaction))
