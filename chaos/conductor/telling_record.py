"""Writes the record of a manual fault, and tells the user what the first probe saw. Owns the wording of that message.

Does not own what is recorded, or when (``chaos.conductor.injector``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from chaos.faults.catalogue import FAULTS
from cluster.seams.storage import Storage
from verifier.evidence.probes import probe_words


class TellingRecord:
    """A ``FaultSink`` that passes lines on to ``storage`` and calls ``tell`` with a line about the first probe."""

    def __init__(self, storage: Storage, tell: Callable[[str], None]) -> None:
        self._storage, self._tell = storage, tell
        self._seen: Mapping[str, Any] = {}

    def missed(self, fault: str) -> str:
        """Why this fault did not bite, from what its first probe saw, or why it was skipped."""
        return str(self._seen.get("reason") or FAULTS[fault].missed(self._seen))

    def append_line(self, path: str, line: str) -> None:
        self._storage.append_line(path, line)
        entry = json.loads(line)
        if entry["phase"] in ("inject", "skip"):
            self._seen = entry["probe"]
        if entry["phase"] == "inject":
            seen = probe_words(entry["probe"])
            self._tell(f"  injected; {'it bites' if entry['effective'] else 'no effect seen so far'}: {seen}")
