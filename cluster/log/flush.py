"""PendingFlush: one flush of a log, cut into what the loop does and what may run in another thread.

Owns the plan. The log makes it (``begin_flush``), anybody runs it, the log takes note of it (``finish_flush``).
"""

from __future__ import annotations

from dataclasses import dataclass

from cluster.seams.storage import File


@dataclass(frozen=True, slots=True)
class PendingFlush:
    """Files to sync so that everything below ``offset`` is safe.

    ``cuts`` is how often the log had been cut, at either end, when the plan was made: if it is cut meanwhile, what was
    synced may be gone, and a file may be closed, so that the plan proves nothing.
    """

    files: tuple[File, ...]
    offset: int
    cuts: int

    def run(self) -> None:
        """Sync the files; blocks. Raises ``OSError``, after which nothing may be believed of them."""
        for file in self.files:
            file.fsync()
