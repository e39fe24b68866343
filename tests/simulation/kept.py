"""Kept: what a compacted log must have kept, by what leaders appended.

Owns that judgment: offsets never change, and a record may be missing only if a newer one of its key stands in the same
log, or if the newest of its key is a tombstone whose time may have passed. Kafka's rules, written a second time; shares
nothing with ``cluster.log.compaction``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tests.simulation.ledger import Entry

#: (name, what was seen): what all parts of the oracle tell.
Finding = tuple[str, str]


class Kept:
    """``history`` maps all offsets to what was appended there and counts. ``tombstones_go``: some may be gone."""

    def __init__(self, history: Mapping[int, Entry], *, tombstones_go: bool) -> None:
        self._history = history
        self._tombstones_go = tombstones_go
        #: Key -> the newest offset of it.
        self._newest: dict[bytes | None, int] = {}
        for offset in sorted(history):
            self._newest[history[offset].key] = offset

    def __repr__(self) -> str:
        return f"<Kept of {len(self._history)} records, {len(self._newest)} keys>"

    def stood(self, offset: int, value: bytes) -> bool:
        """Whether a record stood at an offset."""
        entry = self._history.get(offset)
        return entry is not None and entry.value == value

    def missing(self, records: Mapping[int, Entry], start: int, end: int) -> list[Finding]:
        """What is missing in ``[start, end)`` of a log with these records, and should stand there; and what stands
        there that nobody appended, or should have gone before a tombstone did.
        """
        findings: list[Finding] = []
        newest: dict[bytes | None, int] = {}
        for offset, entry in records.items():
            newest[entry.key] = max(offset, newest.get(entry.key, -1))
            if self._history.get(offset) != entry:
                findings.append(("phantom", f"{entry} stands at {offset}, where {self._history.get(offset)} was put"))
        for offset in range(start, end):
            entry = self._history.get(offset)
            if offset in records:
                continue
            if entry is None:
                findings.append(("log-gap", f"nothing stands at {offset}, and nothing was put there"))
            elif entry.key is None or (newest.get(entry.key, -1) < offset and not self._is_dead(entry.key)):
                findings.append(("compacted-away", f"{entry} is missing at {offset}, and nothing of its key follows"))
        return findings

    def _is_dead(self, key: bytes) -> bool:
        """Whether the newest record of a key is a tombstone that may be gone."""
        return self._tombstones_go and self._history[self._newest[key]].is_tombstone

    def may_be_skipped(self, first: int, end: int) -> bool:
        """Whether a reader may have been given nothing of ``[first, end)``."""
        for offset in range(first, end):
            entry = self._history.get(offset)
            if entry is None or entry.key is None:
                return False
            if self._newest[entry.key] == offset and not self._is_dead(entry.key):
                return False
        return True


def compacted_replicas_differ(replicas: Mapping[int, Mapping[int, Entry]]) -> list[Finding]:
    """Each replica is compacted when it likes: what stands in two of them at one offset is the same."""
    findings: list[Finding] = []
    ids = sorted(replicas)
    for one, other in pairwise(ids):
        for offset in sorted(replicas[one].keys() & replicas[other].keys()):
            if replicas[one][offset] != replicas[other][offset]:
                findings.append(("log-divergence", f"replicas {one} and {other} differ at {offset}"))
                break
    return findings
