"""A log that was there when the broker started, and could not be opened.

Owns whether it may be tried again: it may if only a file descriptor was lacking (``OutOfFiles``), and then it is opened
as it would have been at the start. Does not own what else holds of logs that are not open (``log_checkpoints``).
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.log.config import LogConfig
from cluster.log.errors import LogError, LogOffline, OutOfFiles
from cluster.log.partition_log import PartitionLog


class OfflineLog:
    """``opening`` opens it as at the start. ``opened`` is the log once that succeeded, until someone takes it."""

    def __init__(self, opening: Callable[[LogConfig], PartitionLog], error: LogError) -> None:
        self._opening = opening
        self.error: LogError = _lasting(error)
        self.opened: PartitionLog | None = None
        self._is_prepared = False

    def __repr__(self) -> str:
        return f"OfflineLog({'open' if self.opened is not None else self.error})"

    def prepare(self, config: LogConfig) -> None:
        """Try it again. This may take as long as a start, so it may run in another thread: from now on ``take`` does
        not try it itself."""
        self._is_prepared = True
        self._try_again(config)

    def _try_again(self, config: LogConfig) -> None:
        if self.opened is None and isinstance(self.error, OutOfFiles):
            try:
                self.opened = self._opening(config)
            except LogError as error:
                self.error = _lasting(error)

    def take(self, config: LogConfig) -> PartitionLog:
        """The open log. Raises ``OutOfFiles`` or ``LogOffline``."""
        if not self._is_prepared:
            self._try_again(config)
        if self.opened is None:
            raise self.error.with_traceback(None)
        return self.opened


def _lasting(error: LogError) -> LogError:
    """Only what lacked a descriptor is well; all else keeps the log offline."""
    return error if isinstance(error, OutOfFiles) else LogOffline(error.message)
