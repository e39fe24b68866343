"""OffsetFiles: the four checkpoints of a broker's data directory, each a map from partition to offset.

Owns what each file says and the lock that orders its writers: checkpoints may be written from another thread than the
one that appends, as they wait for the disk. Does not own the numbers: they are handed in, or looked up under the lock.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping

from cluster.log.checkpoints import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    offsets_text,
    parse_offsets,
    read_text,
)
from cluster.log.errors import CheckpointError, StorageFailed
from cluster.seams.storage import Storage
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

CHECKPOINT_FILES = (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE, CLEANER_FILE)


class OffsetFiles:
    """See the module's text. ``lock`` is held while a file is written."""

    def __init__(self, data_dir: str, storage: Storage) -> None:
        self.lock = threading.RLock()
        self._data_dir = data_dir
        self._storage = storage
        self._written: dict[str, dict[TopicPartition, int]] = {name: {} for name in CHECKPOINT_FILES}

    def __repr__(self) -> str:
        return f"OffsetFiles({self._data_dir}, { ({name: len(rows) for name, rows in self._written.items()}) })"

    def load(self) -> list[str]:
        """Read all files, and return the names of those that are not there or cannot be read.

        Such a file counts as empty: without it more is verified, and high watermarks are learned again.
        """
        missing = []
        for name in CHECKPOINT_FILES:
            path = f"{self._data_dir}/{name}"
            text: str | None = None
            try:
                text = read_text(self._storage, path)
                self._written[name] = parse_offsets(text or "")
                text = text or None  # an empty file says nothing, not that there is nothing to say
            except (CheckpointError, OSError) as error:
                logger.warning("passing over %s: %s", path, error)
                self._written[name] = {}
                text = None
            if text is None:
                missing.append(name)
        return missing

    def get(self, name: str, topic_partition: TopicPartition) -> int:
        """What a file says about a partition, 0 if nothing."""
        return self._written[name].get(topic_partition, 0)

    def rows(self, name: str) -> dict[TopicPartition, int]:
        """What a file says."""
        return dict(self._written[name])

    def write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace a file. Raises ``StorageFailed``."""
        path = f"{self._data_dir}/{name}"
        with self.lock:
            try:
                self._storage.write_atomic(path, offsets_text(offsets).encode())
            except OSError as error:
                raise StorageFailed(f"writing {path}: {error}") from error
            self._written[name] = dict(offsets)

    def update(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write a file with these rows changed and the others as they are. Raises ``StorageFailed``."""
        with self.lock:
            self.write(name, {**self._written[name], **offsets})

    def has(self, name: str, topic_partition: TopicPartition) -> bool:
        """Whether a file has a row of a partition."""
        return topic_partition in self._written[name]

    def forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Remove the rows of logs, so that the next ones of these names do not take them for their own. Each file is
        written once at most. Raises ``StorageFailed``."""
        with self.lock:
            for name, offsets in self._written.items():
                gone = {key: offsets[key] for key in topic_partitions if key in offsets}
                if not gone:
                    continue
                left = {key: offset for key, offset in offsets.items() if key not in gone}
                # A row of 0 says what its absence says, except that the cleaner's marks a log with holes.
                if name == CLEANER_FILE or any(offset > 0 for offset in gone.values()):
                    self.write(name, left)
                else:
                    self._written[name] = left
