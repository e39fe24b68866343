"""Doomed: files that have their last name already and are removed later, as ``file.delete.delay.ms`` says.

Owns the list of what waits, and the ``.deleted`` names; also which logs have more to delete than one turn allows. A
file that holds something stays open for a few seconds, so that an answer which is still being sent from it ends well,
and no longer, however long its removal is put off: descriptors are few. Removing large files takes the disk's time, so
``Removal.run`` may be called in another thread. What a crash leaves is removed at the next
start (``recovery.tidy``, ``LogManager.load``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from cluster.seams.clock import Clock
from cluster.seams.storage import File, Storage

logger = logging.getLogger(__name__)

DELETED_SUFFIX = ".deleted"
#: How long a file that is removed later stays open: as long as a closing connection has for what it is owed.
OPEN_MS = 5000


@dataclass(frozen=True, slots=True)
class Removal:
    """Files to close and to remove, and a directory, if any, from ``due_ms`` (monotonic) on."""

    due_ms: int
    paths: tuple[str, ...]
    files: tuple[File, ...]
    directory: str | None

    def run(self, storage: Storage) -> None:
        """Close and remove. Blocks. What cannot be removed is said and left to the next start."""
        self.close()
        try:
            for path in self.paths:
                storage.remove(path)
            if self.directory is not None:
                storage.remove_tree(self.directory)
        except OSError as error:
            logger.warning("cannot remove %s: %s", self.directory or self.paths[0], error)

    def close(self) -> None:
        for file in self.files:
            file.close()


class Shrinking(Protocol):
    """A log with segments below its start."""

    @property
    def is_failed(self) -> bool: ...

    def shrink(self) -> None:
        """Retire some of them, and ``postpone`` what is left."""
        ...


class Doomed:
    """What waits for its removal, of one broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[Removal] = []
        self._postponed: dict[Shrinking, None] = {}

    def __repr__(self) -> str:
        return f"Doomed({len(self._waiting)} waiting)"

    def __len__(self) -> int:
        return len(self._waiting)

    def add(
        self, delay_ms: int, *, paths: Iterable[str] = (), files: Iterable[File] = (), directory: str | None = None
    ) -> None:
        """Close these files in ``OPEN_MS`` at the latest, those that hold nothing now, and remove all after
        ``delay_ms``."""
        now_ms = self._clock.monotonic_ms()
        still_read = []
        for file in files:
            if file.size_bytes:
                still_read.append(file)
            else:
                file.close()
        if still_read and delay_ms > OPEN_MS:
            self._waiting.append(Removal(now_ms + OPEN_MS, (), tuple(still_read), None))
            still_read = []
        self._waiting.append(Removal(now_ms + delay_ms, tuple(paths), tuple(still_read), directory))

    def take_due(self) -> list[Removal]:
        """Those whose time has come; anyone who takes them runs them."""
        now_ms = self._clock.monotonic_ms()
        due = [removal for removal in self._waiting if removal.due_ms <= now_ms]
        if due:
            self._waiting = [removal for removal in self._waiting if removal.due_ms > now_ms]
        return due

    def postpone(self, log: Shrinking) -> None:
        """It has more segments to retire than others would wait for."""
        self._postponed[log] = None

    def next_postponed(self) -> Shrinking | None:
        """One of those, which anyone who takes it lets shrink; None if there is none."""
        return self._postponed.popitem()[0] if self._postponed else None

    def close(self) -> None:
        """Close the files of all that wait, and leave them to the next start."""
        for removal in self._waiting:
            removal.close()
        self._waiting.clear()
        self._postponed.clear()


def retire_file(storage: Storage, path: str) -> str | None:
    """Give a file its last name and return that, None if there is no such file. Raises ``OSError``."""
    try:
        storage.rename(path, path + DELETED_SUFFIX)
    except FileNotFoundError:
        return None
    return path + DELETED_SUFFIX
