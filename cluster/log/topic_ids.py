"""TopicIds: ``partition.metadata`` of many new logs, on the disk together.

Owns which files are written, and that a log knows its topic id only when that is safe: a torn file would keep the
replica offline at the next start. A broker that is told of two thousand new partitions at once would else wait for the
disk four thousand times, one after the other. Does not own when this runs, nor the file of one log by itself
(``PartitionLog.set_topic_id``).
"""

from __future__ import annotations

import posixpath
from uuid import UUID

from cluster.log.checkpoints import PARTITION_METADATA_FILE, partition_metadata_text
from cluster.log.partition_log import PartitionLog
from cluster.seams.storage import Storage


class TopicIds:
    """Filled by ``add``; ``run`` may block another thread; ``finish`` must follow on the logs' own."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._ids: list[tuple[PartitionLog, UUID]] = []

    def __repr__(self) -> str:
        return f"TopicIds({len(self._ids)} logs)"

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, log: PartitionLog, topic_id: UUID) -> None:
        """A log that has no topic id yet."""
        self._ids.append((log, topic_id))

    def run(self) -> None:
        """Write and sync all files. Raises ``OSError``, and then some may be written and others not."""
        self._storage.write_atomic_all(
            {
                f"{log.directory}/{PARTITION_METADATA_FILE}": partition_metadata_text(topic_id).encode()
                for log, topic_id in self._ids
            }
        )
        for parent in sorted({posixpath.dirname(log.directory) or "." for log, _ in self._ids}):
            # The logs' own directories are new too.
            self._storage.sync_directory(parent)

    def finish(self) -> None:
        """After ``run``: the logs know it."""
        for log, topic_id in self._ids:
            log.topic_id = topic_id
