"""Leaders over time, and lines of the brokers' logs around a time. Reads files that others wrote; owns what is taken.

Leaders come from the conductor's ``leaders.jsonl`` where there is one, else from the controllers' own journals.
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

#: Lines of one broker's log around one place, characters of each, and seconds before and after.
MOST_LINES = 12
LONGEST_LINE = 300
SECONDS = 3

#: What is read of one log at most.
MOST_LOG_BYTES = 64 << 20

_TIMES = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")


def changes(directory: RunDirectory) -> tuple[list[LeaderChange], str]:
    """All changes of leadership in the order of time, and the name of where they come from; both may be empty."""
    conducted = directory.path / LEADERS
    if conducted.exists():
        return _sorted(_changes(_tolerant(conducted), "time_ns")), LEADERS
    found: list[LeaderChange] = []
    for broker in directory.broker_ids():
        found += _changes(_tolerant(directory.control_jsonl(broker)), "monotonic_ns")
    return _sorted(found), "nodes/*/control.jsonl" if found else ""


def _tolerant(path: Path) -> list[dict[str, Any]]:
    """The entries of a file, or those before what cannot be read: this shows, it does not judge."""
    entries: list[dict[str, Any]] = []
    with contextlib.suppress(OSError, ValueError):
        # entry by entry: those before the damage are kept
        entries.extend(read_json_lines(path))
    return entries


def _changes(entries: Iterable[Mapping[str, Any]], time: str) -> list[LeaderChange]:
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
    """The brokers' logs of one run. Each is read once, bounded."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._lines: dict[int, list[str]] = {}

    def around(self, at: datetime, brokers: Sequence[int], about: str) -> tuple[LogLines, ...]:
        """Lines within a few seconds of a time (in UTC, or in this machine's zone, as the logs have it).

        Those that name ``about`` or are no mere information come before others when not all can be shown.
        """
        return tuple(found for broker in brokers if (found := self._of(broker, at, about)) is not None)

    def _of(self, broker: int, at: datetime, about: str) -> LogLines | None:
        # a log has the wall clock of its machine's zone, which is this one's where the run was made here
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
