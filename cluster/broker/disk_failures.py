"""What becomes of a broker whose disk fails: it cannot continue, no matter which part of it finds the failure.

Owns that too many open files are no such failure: they are counted and logged from time to time, and what was refused
may be asked again. Does not own how a broker ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cluster.log.errors import LogError, OutOfFiles
from cluster.seams.clock import Clock

logger = logging.getLogger(__name__)

#: It is said this often that files are refused because too many are open.
OUT_OF_FILES_EACH_MS = 10_000


class DiskFailures:
    """Of one broker. ``failed`` is called with each failure after which it cannot continue."""

    def __init__(self, clock: Clock, failed: Callable[[Exception], None]) -> None:
        self._clock = clock
        self._failed = failed
        self._out_of_files_ms = -OUT_OF_FILES_EACH_MS
        self._out_of_files = 0

    def __repr__(self) -> str:
        return "<DiskFailures>"

    def __call__(self, error: LogError) -> None:
        if isinstance(error, OutOfFiles):
            self._out_of_files += 1
            now_ms = self._clock.monotonic_ms()
            if now_ms >= self._out_of_files_ms + OUT_OF_FILES_EACH_MS:
                self._out_of_files_ms = now_ms
                logger.error(
                    "too many files are open, so this is not done now (%d times so far): %s", self._out_of_files, error
                )
            return
        logger.critical("the disk failed, this broker cannot continue: %s", error)
        self._failed(error)
