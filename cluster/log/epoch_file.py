"""EpochFile: ``leader-epoch-checkpoint`` of one log on its disk.

Owns when it is written and when it is synced. Kafka syncs it at each new epoch (``LeaderEpochFileCache.assign``); here
the epochs are rebuilt from the batches after a power loss (``opening.py``), so a failover does not wait for a sync of
each partition. But a log whose batches were all deleted has no other trace of its epochs: there the file is synced
before the last batch is deleted, and at each change until there is a batch again. Does not own what epochs are
(``epochs.py``).
"""

from __future__ import annotations

from cluster.log.checkpoints import LEADER_EPOCH_FILE, write_unsynced
from cluster.log.epochs import LeaderEpochCache
from cluster.log.errors import not_opened
from cluster.log.segments import Segments
from cluster.seams.storage import Storage


class EpochFile:
    """Unchanged while the log is opened; from then on, it follows the cache."""

    def __init__(self, directory: str, storage: Storage) -> None:
        self._directory = directory
        self._path = f"{directory}/{LEADER_EPOCH_FILE}"
        self._storage = storage
        self._segments: Segments | None = None
        #: Whether its current content, and whether its name, would survive a power loss.
        self._is_synced = self._is_named = False

    def __repr__(self) -> str:
        return f"EpochFile({self._path}, {'synced' if self._is_synced else 'not synced'})"

    def keep(self, epochs: LeaderEpochCache, segments: Segments) -> None:
        """Follow ``epochs``, of a log with these segments, from now on. Raises ``LogError``."""
        self._segments = segments
        storage, path = self._storage, self._path
        if not storage.exists(path) or storage.read(path) != epochs.to_text().encode():
            self.write(epochs)

    def write(self, epochs: LeaderEpochCache) -> None:
        """They have changed. Raises ``LogError``."""
        if self._segments is None:
            return
        self._is_synced = False
        try:
            write_unsynced(self._storage, self._path, epochs.to_text().encode())
            if epochs.latest is not None and _is_emptied(self._segments):
                # If a rename is lost, the previous epoch is there: just as good as long as nothing was appended.
                self._sync(with_name=not self._is_named)
        except OSError as error:
            raise not_opened(f"writing {self._path}", error) from error

    def outlast(self, offset: int) -> None:
        """Segments below ``offset`` are deleted next: if no batch is left then, this must stay. Raises ``LogError``."""
        segments = self._segments
        if self._is_synced or segments is None or segments.active.size_bytes or not segments.any_below(offset):
            return
        try:
            self._sync(with_name=True)
        except OSError as error:
            raise not_opened(f"syncing {self._path}", error) from error

    def _sync(self, *, with_name: bool) -> None:
        file = self._storage.open(self._path, create=False)
        try:
            file.fsync()
        finally:
            file.close()
        if with_name:
            self._storage.sync_directory(self._directory)
            self._is_named = True
        self._is_synced = True


def _is_emptied(segments: Segments) -> bool:
    """Whether a log had batches and has none: of a new one, which ends at 0, no one needs to know an epoch."""
    return segments.active.next_offset > 0 and segments.size_bytes == 0
