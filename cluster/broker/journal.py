"""A broker's journal: what it did in its part in control, one JSON line each. Owns the file, not what is told."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from cluster.seams.clock import Clock
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)

JOURNAL_FILE = "control.jsonl"

#: Told an event and its details.
Journal = Callable[[str, dict[str, Any]], None]


class JournalFile:
    """The journal in ``node_directory``."""

    def __init__(self, node_directory: str, storage: Storage, clock: Clock) -> None:
        self._path = f"{node_directory}/{JOURNAL_FILE}"
        self._storage = storage
        self._clock = clock

    def __repr__(self) -> str:
        return f"JournalFile({self._path})"

    def write(self, event: str, details: dict[str, Any]) -> None:
        """Add a line, with both times. A ``Journal``. A broker continues without it if it cannot be written."""
        clock = self._clock
        line = {"event": event, "wall_ms": clock.wall_ms(), "monotonic_ns": clock.monotonic_ns(), **details}
        try:
            self._storage.append_line(self._path, json.dumps(line))
        except OSError as error:
            logger.error("the journal cannot be written: %s", error)
