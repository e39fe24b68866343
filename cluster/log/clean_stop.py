"""CleanStop: the marker of a clean stop in a data directory, and what was noted of the logs then.

Owns that each holds for one start alone, and in which order they are written and removed. Does not own what is noted
(``clean_state.py``), nor whether a stop was clean (``manager.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from cluster.log.checkpoints import CLEAN_SHUTDOWN_FILE, clean_shutdown_text, read_text
from cluster.log.clean_state import CLEAN_STATE_FILE, LogState, clean_state_text, parse_clean_state
from cluster.log.errors import CheckpointError
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)


class CleanStop:
    """Of one data directory."""

    def __init__(self, data_dir: str, storage: Storage) -> None:
        self._marker = f"{data_dir}/{CLEAN_SHUTDOWN_FILE}"
        self._state = f"{data_dir}/{CLEAN_STATE_FILE}"
        self._storage = storage

    def __repr__(self) -> str:
        return f"CleanStop({self._marker})"

    def take(self) -> dict[str, LogState] | None:
        """What was noted of the logs, by their directories' names; None if the last stop was not clean. First of all at
        a start: a crash from here on is not clean anymore. Raises ``OSError``."""
        is_clean = self._storage.exists(self._marker)
        self._storage.remove(self._marker)
        return self._take_states() if is_clean else None

    def _take_states(self) -> dict[str, LogState]:
        try:
            text = read_text(self._storage, self._state)
            self._storage.remove(self._state)
            return {} if text is None else parse_clean_state(text)
        except CheckpointError as error:
            logger.warning("passing over %s: %s", self._state, error)
            self._storage.remove(self._state)
            return {}

    def write(self, states: Mapping[str, LogState]) -> None:
        """Everything is closed and synced: the marker comes last. Raises ``OSError`` and ``StorageFailed``."""
        self._storage.write_atomic(self._state, clean_state_text(states).encode())
        self._storage.write_atomic(self._marker, clean_shutdown_text().encode())
