"""Translates a run's histories into operations: ``send``, ``poll`` and ``assign``, invoked and completed, by time.

Owns the translation. Does not own the syntax (``verifier.operations.writing``). A key is ``topic-partition``, and a
value is ``s<stream>/<sequence>``. A row of a history becomes one operation with many values. But if its outcome is
``info`` or ``fail``, each value becomes its own operation, because some of them may have been stored and others not.

A process in an operation history does one operation at a time. So each stream of a producer's incarnation, and each
session of a reader, becomes a process:

- If sends were in flight together, each one completes before the next one begins. Sends read nothing, so this cannot
  create a cycle of operations.
- A sequence that was reserved and never sent is ``fail``. One without any further row is ``info``, by its own process.
- Bytes that a reader received and that are not a value of the run get a name that no operation sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from verifier.evidence.history import stream_history
from verifier.operations.exported import FORGOTTEN, UNSENT, exported_name

#: If a value has several outcomes, the one with the lowest rank counts.
_RANK = {"ok": 0, "info": 1, "fail": 2}
_LONGEST_SPAN = 1 << 24
_SENDS = ("send", "sentinel", "unsent")

#: Filters the rows of all histories: takes and returns a list of rows for each history.
Sift = Callable[[list[list[dict[str, Any]]]], list[list[dict[str, Any]]]]


@dataclass(slots=True)
class PlannedOperation:
    """One operation to write, with the rows that it comes from. Times are in ns on the monotonic clock."""

    process: str
    f: str
    type: str
    begin_ns: int
    end_ns: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Export:
    """The lines of an export, created one by one.

    ``left_out`` counts rows that were ignored because they contradict themselves. ``unfinished`` has the processes
    whose history has no proper end.
    """

    lines: Iterator[dict[str, Any]]
    operations: int
    left_out: int
    unfinished: tuple[str, ...]


def export_run(history_directory: Path, sift: Sift | None = None) -> Export:
    """Exports all histories of a run. Raises ``OSError``, and ``HistoryError`` for a damaged file.

    ``sift`` chooses the rows to export.
    """
    histories: list[list[dict[str, Any]]] = []
    left_out = 0
    unfinished = []
    for path in sorted(history_directory.glob("*.arrow")):
        file, parts = stream_history(path)
        if not file.closed:
            unfinished.append(file.process)
        whole: list[dict[str, Any]] = []
        for part in parts:
            kept, wrong = _sensible(part)
            whole += kept
            left_out += wrong
        histories.append(whole)
    planned: list[PlannedOperation] = []
    for whole in histories if sift is None else sift(histories):
        planned += _sends(whole)
        planned += _polls(whole)
    _one_at_a_time(planned)
    return Export(_lines(planned), len(planned), left_out, tuple(unfinished))


def _sensible(table: pa.Table) -> tuple[list[dict[str, Any]], int]:
    """The rows about values or offsets, and the number of rows that contradict themselves."""
    kept, wrong = [], 0
    names = ("process", "f", "type", "topic", "partition", "stream", "first_sequence", "last_sequence", "first_offset",
             "last_offset", "invoke_ns", "complete_ns", "incarnation", "error", "phase", "session")  # fmt: skip
    for row in table.select(list(names)).to_pylist():
        if row["f"] not in (*_SENDS, "reserve", "poll"):
            continue
        values = row["last_sequence"] - row["first_sequence"]
        offsets = row["last_offset"] - row["first_offset"]
        known = row["first_offset"] >= 0
        if row["f"] == "poll" and row["stream"] < 0:
            good = known and 0 <= offsets <= _LONGEST_SPAN
        else:
            good = row["first_sequence"] >= 0 and 0 <= values <= _LONGEST_SPAN and (not known or offsets == values)
        if good:
            kept.append(row)
        else:
            wrong += 1
    return kept, wrong


def key_of(row: dict[str, Any]) -> str:
    """``topic-partition``."""
    return f"{row['topic']}-{row['partition']}"


def _sends(rows: list[dict[str, Any]]) -> list[PlannedOperation]:
    """The ``send`` operations of one history, including reserved sequences without an outcome."""
    by_stream: dict[tuple[str, int, int], list[dict[str, Any]]] = defaultdict(list)
    reserved: dict[tuple[str, int, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["f"] in _SENDS or row["f"] == "reserve":
            place = reserved if row["f"] == "reserve" else by_stream
            place[row["topic"], row["partition"], row["stream"]].append(row)
    planned: list[PlannedOperation] = []
    for stream in sorted(by_stream.keys() | reserved.keys()):
        told = _disjoint(by_stream[stream])
        for row in sorted(told, key=lambda row: int(row["first_sequence"])):
            planned += _send(row, f"{row['process']}/{key_of(row)}/s{row['stream']}/{row['incarnation']}")
        heard = [(row["first_sequence"], row["last_sequence"]) for row in told]
        for row in reserved[stream]:
            for first, last in _left(row["first_sequence"], row["last_sequence"], heard):
                silent = {**row, "first_sequence": first, "last_sequence": last, "first_offset": -1, "type": "info",
                          "error": row["error"] or FORGOTTEN}  # fmt: skip
                planned += _send(silent, f"{row['process']}/{key_of(row)}/s{row['stream']}/reserved")
                heard.append((first, last))
    return planned


def _send(row: dict[str, Any], process: str) -> Iterator[PlannedOperation]:
    begin, end = _times(row)
    error = UNSENT if row["f"] == "unsent" else row["error"]
    if row["type"] == "ok":
        yield PlannedOperation(process, "send", "ok", begin, end, [row], error=error)
        return
    for sequence in range(row["first_sequence"], row["last_sequence"] + 1):
        one = {**row, "first_sequence": sequence, "last_sequence": sequence, "first_offset": -1}
        yield PlannedOperation(process, "send", row["type"], begin, end, [one], error=error)


def _times(row: dict[str, Any]) -> tuple[int, int]:
    end = max(row["complete_ns"], row["invoke_ns"], 0)
    return (row["invoke_ns"] if row["invoke_ns"] >= 0 else end), end


def _disjoint(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, cut so that each sequence is in only one of them: the one with the best rank, or else the first."""
    taken: list[tuple[int, int]] = []
    chosen = []
    ordered = sorted(enumerate(rows), key=lambda each: (_RANK.get(each[1]["type"], 1), each[0]))
    overlap = _overlapping([(row["first_sequence"], row["last_sequence"]) for _, row in ordered])
    for _, row in ordered:
        first, last = row["first_sequence"], row["last_sequence"]
        for start, stop in _left(first, last, taken) if overlap else [(first, last)]:
            moved = row["first_offset"] + start - first if row["first_offset"] >= 0 else -1
            chosen.append({**row, "first_sequence": start, "last_sequence": stop, "first_offset": moved})
            taken.append((start, stop))
    return chosen


def _overlapping(spans: list[tuple[int, int]]) -> bool:
    ordered = sorted(spans)
    return any(after[0] <= before[1] for before, after in pairwise(ordered))


def _left(first: int, last: int, taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of ``first..last`` that are in no span of ``taken``, ascending."""
    spans, at = [], first
    for start, stop in sorted(span for span in taken if span[0] <= last and span[1] >= first):
        if start > at:
            spans.append((at, start - 1))
        at = max(at, stop + 1)
    if at <= last:
        spans.append((at, last))
    return spans


def _polls(rows: list[dict[str, Any]]) -> list[PlannedOperation]:
    """The ``assign`` and ``poll`` operations of one history. Successive rows with the same times are one poll."""
    planned: list[PlannedOperation] = []
    newest: dict[str, PlannedOperation] = {}
    assigned: dict[str, PlannedOperation] = {}
    for row in rows:
        if row["f"] != "poll":
            continue
        process = f"{row['process']}/{row['phase']}/{row['session']}"
        begin, end = _times(row)
        if process not in assigned:
            assigned[process] = PlannedOperation(process, "assign", "ok", begin - 2, begin - 1)
            planned.append(assigned[process])
        if key_of(row) not in assigned[process].keys:
            assigned[process].keys.append(key_of(row))
        last = newest.get(process)
        if last is None or (last.begin_ns, last.end_ns) != (begin, end):
            last = newest[process] = PlannedOperation(process, "poll", "ok", begin, end)
            planned.append(last)
        last.rows.append(row)
    return planned


def _one_at_a_time(planned: list[PlannedOperation]) -> None:
    """Changes times so that each operation of a process begins after the previous one and ends before the next."""
    newest: dict[str, PlannedOperation] = {}
    for each in planned:
        before = newest.get(each.process)
        if before is not None:
            each.begin_ns = max(each.begin_ns, before.begin_ns + 2)
            before.end_ns = min(before.end_ns, each.begin_ns - 1)
        each.end_ns = max(each.end_ns, each.begin_ns + 1)
        newest[each.process] = each


def _lines(planned: list[PlannedOperation]) -> Iterator[dict[str, Any]]:
    """Invocations and completions by time. At equal times invocations come first, so that operations overlap."""
    begin = np.array([each.begin_ns for each in planned], dtype=np.int64)
    end = np.array([each.end_ns for each in planned], dtype=np.int64)
    number = np.arange(len(planned))
    is_end = np.repeat([0, 1], len(planned))
    order = np.lexsort((np.tile(number, 2), is_end, np.concatenate([begin, end])))
    start = int(begin.min()) if len(planned) else 0
    for index, entry in enumerate(order.tolist()):
        done = entry >= len(planned)
        each = planned[entry - len(planned) if done else entry]
        line: dict[str, Any] = {
            "index": index,
            "time": (each.end_ns if done else each.begin_ns) - start,
            "process": each.process,
            "type": each.type if done else "invoke",
            "f": each.f,
            "value": _value(each, done=done),
        }
        if done and each.error is not None:
            line["error"] = each.error
        yield line


def _value(each: PlannedOperation, *, done: bool) -> Any:
    if each.f == "assign":
        return each.keys
    if each.f == "send":
        return [mop for row in each.rows for mop in _sent(row, done=done)]
    if not done:
        return [["poll"]]
    polled: dict[str, list[list[Any]]] = {}
    for row in each.rows:
        polled.setdefault(key_of(row), []).extend(_read(row))
    return [["poll", polled]]


def _sent(row: dict[str, Any], *, done: bool) -> Iterator[list[Any]]:
    key, first = key_of(row), row["first_sequence"]
    for sequence in range(first, row["last_sequence"] + 1):
        value = exported_name(row["stream"], sequence)
        if done:
            offset = row["first_offset"] + sequence - first if row["first_offset"] >= 0 else None
            yield ["send", key, [offset, value]]
        else:
            yield ["send", key, value]


def _read(row: dict[str, Any]) -> Iterator[list[Any]]:
    first = row["first_offset"]
    if row["stream"] < 0:
        for offset in range(first, row["last_offset"] + 1):
            yield [offset, f"no value of this run at {offset}: {row['error']}"]
        return
    for sequence in range(row["first_sequence"], row["last_sequence"] + 1):
        known = first + sequence - row["first_sequence"] if first >= 0 else None
        yield [known, exported_name(row["stream"], sequence)]
