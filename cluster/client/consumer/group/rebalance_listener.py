"""RebalanceListener: what a program is told of partitions that come and go. Kafka's ConsumerRebalanceListener.

Owns the shape. Called by ``poll``, ``unsubscribe`` and ``close``, in the program's thread.
"""

from __future__ import annotations

from cluster.topic_partition import TopicPartition


class RebalanceListener:
    """A listener that does nothing: override what is of interest. Each may commit, seek, and ask for positions."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """These are given away as soon as this returns: commit what was processed. With an eager protocol these are
        all, with a cooperative one only those that another member gets.
        """

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """These are read from now on, besides those that the member had."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """These may be another member's already: a commit would fail. By default the same as revoked."""
        self.on_partitions_revoked(partitions)
