"""EpochFile: ``leader-epoch-checkpoint`` of one log on its disk.

Owns when it is written and when it is synced. Kafka syncs it at each new epoch (``LeaderEpochFileCache.assign``); here
the epochs are rebuilt from the batches after a power loss (``opening.py``), so a failover does not wait for a sync of
each partition. But a log whose batches were all deleted has no other trace of its epochs: there the file is synced
before the last batch is deleted, and again before the next one is appended. Epochs in between have no batch, and no
one needs to know them: a broker that comes to lead very many empty logs at once does not wait for a sync of each. Does
not own what epochs are (``epochs.py``).
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
        self._is_synced = False
        #: Whether the log is empty and has begun an epoch that the file lacks: ``catch_up`` before the next batch.
        self.lags = False

    def __repr__(self) -> str:
        synced = "synced" if self._is_synced else "not synced"
        return f"EpochFile({self._path}, {synced}{', lags' if self.lags else ''})"

    def keep(self, epochs: LeaderEpochCache, segments: Segments) -> None:
        """Follow ``epochs``, of a log with these segments, from now on. Raises ``LogError``."""
        self._segments = segments
        storage, path = self._storage, self._path
        if not storage.exists(path) or storage.read(path) != epochs.to_text().encode():
            self.write(epochs)
        else:
            # It was synced before the last batch was deleted.
            self._is_synced = epochs.latest is not None and _is_emptied(segments)

    def write(self, epochs: LeaderEpochCache) -> None:
        """They have changed. Raises ``LogError``."""
        segments = self._segments
        if segments is None:
            return
        is_only_trace = epochs.latest is not None and _is_emptied(segments)
        if is_only_trace and self._is_synced:
            self.lags = True
        else:
            self._write(epochs, is_synced=is_only_trace)

    def catch_up(self, epochs: LeaderEpochCache) -> None:
        """A batch is appended next: what it is read with must tell its epoch. Raises ``LogError``."""
        if self.lags:
            self._write(epochs, is_synced=True)

    def outlast(self, offset: int) -> None:
        """Segments below ``offset`` are deleted next: if no batch is left then, this must stay. Raises ``LogError``."""
        segments = self._segments
        if self._is_synced or segments is None or segments.active.size_bytes or not segments.any_below(offset):
            return
        try:
            self._sync()
        except OSError as error:
            raise not_opened(f"syncing {self._path}", error) from error

    def _write(self, epochs: LeaderEpochCache, *, is_synced: bool) -> None:
        self._is_synced = False
        try:
            write_unsynced(self._storage, self._path, epochs.to_text().encode())
            if is_synced:
                self._sync()
        except OSError as error:
            raise not_opened(f"writing {self._path}", error) from error
        self.lags = False

    def _sync(self) -> None:
        file = self._storage.open(self._path, create=False)
        try:
            file.fsync()
        finally:
            file.close()
        self._storage.sync_directory(self._directory)
        self._is_synced = True


def _is_emptied(segments: Segments) -> bool:
    """Whether a log had batches and has none: of a new one, which ends at 0, no one needs to know an epoch."""
    return segments.active.next_offset > 0 and segments.size_bytes == 0
