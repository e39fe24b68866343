"""PendingFlush: one flush of a log, cut into what the loop does and what may run in another thread.

Owns the plan. The log makes it (``begin_flush``), anyone runs it, the log takes note of it (``finish_flush``).
"""

from __future__ import annotations

from dataclasses import dataclass

from cluster.seams.storage import File, Storage


@dataclass(frozen=True, slots=True)
class PendingFlush:
    """Files to sync so that everything below ``offset`` is safe, then directories that have their names.

    ``cuts`` is how often the log had been cut, at either end, when the plan was made: if it is cut meanwhile, what was
    synced may be gone, and a file may be closed, so that the plan proves nothing.
    """

    files: tuple[File, ...]
    offset: int
    cuts: int
    #: How many names had been given in the log's directory; the directories are those that may not know all of them.
    names: int
    directories: tuple[str, ...]
    storage: Storage

    def run(self) -> None:
        """Sync the files; blocks. Raises ``OSError``, after which nothing may be believed of them."""
        for file in self.files:
            file.fsync()
        for directory in self.directories:
            self.storage.sync_directory(directory)
