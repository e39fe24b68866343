"""``lose-index``: a partition has no indexes when the broker that led it is started again.

And no snapshots of producers, which are as derived as indexes are. The ``.txnindex`` stays: below what a start reads, a
segment that has none is one in which nothing was aborted, as in Kafka (docs/log.md "Starting").
"""

from __future__ import annotations

from collections.abc import Collection

from chaos.faults.lost_files import LostFiles


class LoseIndex(LostFiles):
    """All of them are built again from the batches."""

    name = "lose-index"
    summary = "SIGKILL the broker that leads a partition, and remove the partition's indexes and snapshots; restart it"

    def _what(self) -> str:
        return "its indexes"

    def _where(self) -> tuple[str, Collection[str]]:
        return f"{self.cluster.topic}-{self._partition}", (".index", ".timeindex", ".snapshot", ".producers")
