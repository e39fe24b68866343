"""Reads the leaders over time, and the lines of the brokers' logs around a time.

Owns which entries and lines are taken. Does not own these files: the conductor and the brokers write them. Leaders come
from the conductor's ``leaders.jsonl`` if it exists, or else from the controllers' own journals.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from verifier.evidence.bounded import size_of
from verifier.evidence.run_directory import RunDirectory, read_json_lines
from verifier.surroundings.model import LeaderChange, LogLines

LEADERS = "leaders.jsonl"

#: The most lines of one broker's log around one place, the most characters of each line, and the seconds before and
#: after the time.
MOST_LINES = 12
LONGEST_LINE = 300
SECONDS = 3

#: The most bytes that are read from one log.
MOST_LOG_BYTES = 64 << 20

_TIMES = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")


def changes(directory: RunDirectory) -> tuple[list[LeaderChange], str]:
    """All changes of leadership in order of time, and the name of the files they come from; both may be empty."""
    conducted = directory.path / LEADERS
    if conducted.exists():
        return _sorted(_changes(_tolerant(conducted), "time_ns")), LEADERS
    found: list[LeaderChange] = []
    for broker in directory.broker_ids():
        found += _changes(_tolerant(directory.control_jsonl(broker)), "monotonic_ns")
    return _sorted(found), "nodes/*/control.jsonl" if found else ""


def _tolerant(path: Path) -> list[dict[str, Any]]:
    """The entries of a file, up to the first one that cannot be read. Never raises: the report only shows them."""
    entries: list[dict[str, Any]] = []
    with contextlib.suppress(OSError, ValueError):
        # extends entry by entry, so that the entries before the damage are kept
        entries.extend(read_json_lines(path))
    return entries


def _changes(entries: Iterable[Mapping[str, Any]], time: str) -> list[LeaderChange]:
    """The changes of leadership among these entries. ``time`` is the key of their time. Skips malformed entries."""
    found = []
    for entry in entries:
        if entry.get("event", "partition-changed") != "partition-changed":
            continue
        try:
            leader = entry["leader"]
            found.append(
                LeaderChange(
                    int(entry[time]),
                    (str(entry["topic"]), int(entry["partition"])),
                    -1 if leader is None else int(leader),
                    int(entry["leader_epoch"]),
                    tuple(int(each) for each in entry.get("isr") or ()),
                    str(entry.get("reason", "")),
                )
            )
        except (KeyError, TypeError, ValueError):
            continue
    return found


def _sorted(found: Iterable[LeaderChange]) -> list[LeaderChange]:
    return sorted(found, key=lambda each: (each.time_ns, each.name))


class Logs:
    """The brokers' logs of one run. Each is read once, up to ``MOST_LOG_BYTES``."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._lines: dict[int, list[str]] = {}

    def around(self, at: datetime, brokers: Sequence[int], about: str) -> tuple[LogLines, ...]:
        """The lines of each broker within a few seconds of a time.

        If there are too many, lines that name ``about`` are kept first, then lines above the level INFO.
        """
        return tuple(found for broker in brokers if (found := self._of(broker, at, about)) is not None)

    def _of(self, broker: int, at: datetime, about: str) -> LogLines | None:
        # a log has local times, and a run that was made on this machine has the same time zone
        local = at.astimezone()
        low, high = (
            (local + timedelta(seconds=by)).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3] for by in (-SECONDS, SECONDS)
        )
        near = [line for line in self._read(broker) if low <= line[:23] <= high]
        if not near:
            return None
        mentions = re.compile(rf"(?<![\w.-]){re.escape(about)}(?!\d)")
        ranked = sorted(range(len(near)), key=lambda n: (not mentions.search(near[n]), " INFO " in near[n], n))
        kept = sorted(ranked[:MOST_LINES])
        return LogLines(broker, tuple(near[n][11 : 11 + LONGEST_LINE] for n in kept), len(near) - len(kept))

    def _read(self, broker: int) -> list[str]:
        if broker not in self._lines:
            path = self._directory.node(broker) / "broker.log"
            try:
                size_of(path)
                with path.open("rb") as file:
                    text = file.read(MOST_LOG_BYTES).decode("utf-8", "replace")
            except OSError:
                text = ""
            self._lines[broker] = [line for line in text.split("\n") if _TIMES.match(line)]
        return self._lines[broker]
