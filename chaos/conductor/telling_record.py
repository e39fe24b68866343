"""The record of a manual fault, which also tells its caller what the first probe saw. Owns those words.

What is recorded, and when, is the injector's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from chaos.faults.catalogue import FAULTS
from cluster.seams.storage import Storage
from verifier.evidence.probes import probe_words


class TellingRecord:
    """A storage's ``append_line`` for the injector, which also tells the caller a line on the first probe."""

    def __init__(self, storage: Storage, tell: Callable[[str], None]) -> None:
        self._storage, self._tell = storage, tell
        self._seen: Mapping[str, Any] = {}

    def missed(self, fault: str) -> str:
        """Why this fault did not bite: as the probe that was to show it saw it, or why there was none."""
        return str(self._seen.get("reason") or FAULTS[fault].missed(self._seen))

    def append_line(self, path: str, line: str) -> None:
        self._storage.append_line(path, line)
        entry = json.loads(line)
        if entry["phase"] in ("inject", "skip"):
            self._seen = entry["probe"]
        if entry["phase"] == "inject":
            seen = probe_words(entry["probe"])
            self._tell(f"  injected; {'it bites' if entry['effective'] else 'no effect seen so far'}: {seen}")
