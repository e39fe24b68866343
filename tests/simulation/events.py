"""What happened in one simulation: the event log, line by line, and how often each thing happened.

Owns both. The log is the same for the same seed, byte for byte; ``Traffic`` adds a digest of every frame on the network
to it, so that nothing can differ unseen.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import Counter
from contextvars import Context
from typing import Any

from cluster.broker.journal import JOURNAL_FILE
from cluster.seams.memory_storage import MemoryStorage

#: What a broker writes of its own part in control, and which of its fields say what.
JOURNAL_FIELDS = (
    *("topic", "partition", "leader", "leader_epoch", "isr", "before", "log_start_offset"),
    *("reason", "epoch", "broker_epoch", "broker"),
)


class EventLog:
    """One line an event: when, who, what."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.coverage: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<EventLog {len(self.lines)} lines>"

    def note(self, who: str, what: str) -> None:
        self.lines.append(f"{_now():11.6f} {who:<12} {what}")

    def count(self, what: str, times: int = 1) -> None:
        self.coverage[what] += times

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


class Traffic:
    """Every frame that is sent: how many, and a checksum over who sent how much to whom, when."""

    def __init__(self) -> None:
        self.frames = 0
        self.digest = 0

    def __repr__(self) -> str:
        return f"<Traffic {self}>"

    def __str__(self) -> str:
        return f"{self.frames} frames {self.digest:08x}"

    def sent(self, source: str, destination: str, size_bytes: int, delay_ms: float) -> None:
        self.frames += 1
        now = _now()
        self.digest = zlib.crc32(f"{now!r} {source} {destination} {size_bytes} {delay_ms!r}".encode(), self.digest)


class LoggedStorage(MemoryStorage):
    """A disk whose journal lines appear in the event log too."""

    def __init__(self, broker_id: int, log: EventLog) -> None:
        super().__init__()
        self._who = f"broker {broker_id}"
        self._log = log

    def append_line(self, path: str, line: str) -> None:
        super().append_line(path, line)
        if path.endswith(JOURNAL_FILE):
            entry = json.loads(line)
            self._log.note(self._who, f"{entry['event']} {_fields(entry)}".rstrip())
            self._count(entry)
            self.told(entry)

    def told(self, entry: dict[str, Any]) -> None:
        """The broker wrote this line into its journal."""

    def _count(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "controller-elected" and entry["epoch"] > 1:
            self._log.count("controller failover")
        elif entry["event"] == "session-expired":
            self._log.count("session expired")
        elif entry["event"] == "partition-changed":
            self._log.count(f"change of a partition: {entry['reason']}")
        elif entry["event"] == "log-start":
            self._log.count(f"log start moved by: {entry['reason']}")


def _fields(entry: dict[str, Any]) -> str:
    return " ".join(f"{field}={entry[field]}" for field in JOURNAL_FIELDS if field in entry)


def _now() -> float:
    """The time, whatever the clock of whoever says something shows."""
    return Context().run(asyncio.get_running_loop().time)
