"""FileNames: whether the names of a log's files would survive a power loss.

Owns how many names were given, how many of them are known to be synced, and which directories have the others. Does not
own the files (``local_log.py``), nor when a flush runs (``flush.py``).
"""

from __future__ import annotations

import posixpath

from cluster.seams.storage import Storage


class FileNames:
    """Of the files in ``directory``; ``is_synced`` unless the name of the directory itself may be lost too."""

    def __init__(self, directory: str, storage: Storage, *, is_synced: bool) -> None:
        self._directory = directory
        self._storage = storage
        #: How often a file was given a name here.
        self.count = 0
        #: How many of these are known to be synced; -1 while the name of the directory itself may not be.
        self._synced = 0 if is_synced else -1

    def __repr__(self) -> str:
        return f"FileNames({self._directory}, {self._synced} of {self.count} synced)"

    def given(self, count: int) -> None:
        """This many files got a name."""
        self.count += count

    def unsynced_directories(self) -> tuple[str, ...]:
        """Where new segments, and the log as a whole, have their names: without these the files are lost however well
        they were synced (KAFKA-3968, Kafka's ``LocalLog.flush``)."""
        if self._synced == self.count:
            return ()
        parent = posixpath.dirname(self._directory) or "."
        return (self._directory, parent) if self._synced < 0 else (self._directory,)

    def sync(self) -> None:
        """Sync what is not. Raises ``OSError``."""
        for directory in self.unsynced_directories():
            self._storage.sync_directory(directory)
        self._synced = self.count

    def synced_to(self, count: int) -> None:
        """The first ``count`` names were synced by a flush."""
        self._synced = max(self._synced, count)
