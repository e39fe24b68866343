"""The account of one history: what it holds, beside what it says it holds. Vectorized over its rows; judges nothing.

One file is one account: its rows by kind against its own totals, every reserved sequence against the outcomes, errors
by name, what was acknowledged and read in each partition, and when something was attempted. What follows for the
verdict is ``verifier.completeness``'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import history_file, read_history

#: Attempts are counted by intervals of this length.
INTERVAL_NS = 100_000_000

#: The name with which a client's error begins: Kafka's, or librdkafka's own with an underscore.
_NAME = re.compile(r"_?[A-Z][A-Z0-9_]{4,}(?=: |$)")

#: Sequences of these functions have an outcome.
_OUTCOMES = ("send", "sentinel", "unsent")
#: At most this many complaints are told of one history.
MOST_COMPLAINTS = 5

Kind = tuple[str, str]

#: pyarrow's functions take and give more kinds of value than their stubs can say.
_compute: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class HistoryAccount:
    """One history. ``state`` is ``closed``, ``torn`` or ``damaged`` (``error`` says how).

    ``rows`` and ``totals``: (function, outcome) -> (rows, values), as counted and as the file's last rows say;
    ``complaints``: sequences without an outcome, or with two; ``errors``: (outcome, name) -> values of ``send`` rows;
    ``acked`` and ``read``: values by (topic, partition); ``attempts``: spans of intervals (their first and last number)
    in which records were under way; ``streams``: those with a row; ``deleted``: below which offset DeleteRecords was
    asked for, by (topic, partition); ``last_acked_ns`` and ``last_tried_ns``: when something was last acknowledged, or
    was to be sent or had an outcome, by (topic, partition); ``places``: where something was acknowledged, read or
    deleted; ``unplaced``: where an acknowledgement came without an offset.
    """

    process: str
    file: str
    state: str
    torn_bytes: int = 0
    error: str | None = None
    rows: Mapping[Kind, tuple[int, int]] = field(default_factory=dict)
    totals: Mapping[Kind, tuple[int, int]] = field(default_factory=dict)
    complaints: tuple[str, ...] = ()
    errors: Mapping[tuple[str, str], int] = field(default_factory=dict)
    acked: Mapping[tuple[str, int], int] = field(default_factory=dict)
    read: Mapping[tuple[str, int], int] = field(default_factory=dict)
    attempts: tuple[tuple[int, int], ...] = ()
    streams: frozenset[int] = frozenset()
    deleted: Mapping[tuple[str, int], int] = field(default_factory=dict)
    last_acked_ns: Mapping[tuple[str, int], int] = field(default_factory=dict)
    last_tried_ns: Mapping[tuple[str, int], int] = field(default_factory=dict)
    places: frozenset[tuple[str, int]] = frozenset()
    unplaced: frozenset[tuple[str, int]] = frozenset()

    def values(self, f: str, *outcomes: str) -> int:
        """How many values the rows of a function are about."""
        return sum(
            values
            for (name, outcome), (_, values) in self.rows.items()
            if name == f and outcome in (outcomes or (outcome,))
        )


def accounts(paths: Iterable[Path]) -> tuple[HistoryAccount, ...]:
    """The accounts of these history files, in their order."""
    return tuple(account_of(path) for path in paths)


def account_of(path: Path) -> HistoryAccount:
    """The account of one history file; one that cannot be read is ``damaged``."""
    try:
        table = read_history(path, with_totals=True)
        state = history_file(table)
    except (HistoryError, OSError) as error:
        return HistoryAccount(path.stem, path.name, "damaged", error=str(error))
    is_total = _compute.equal(table["f"], "total")
    rows, totals = table.filter(_compute.invert(is_total)), table.filter(is_total)
    return HistoryAccount(
        state.process,
        path.name,
        "closed" if state.closed else "torn",
        state.torn_bytes,
        rows=_kinds(rows),
        totals=_totals(totals),
        complaints=tuple(_complaints(rows)[:MOST_COMPLAINTS]),
        errors=_errors(rows),
        acked=_by_partition(rows, "send", "ok"),
        read=_by_partition(rows, "poll", "ok"),
        attempts=_attempts(rows),
        streams=frozenset(int(each) for each in _compute.unique(rows["stream"]).to_pylist() if each >= 0),
        deleted=_deleted(rows),
        last_acked_ns=_latest(rows, "ok"),
        last_tried_ns=_latest(rows),
        places=_places(rows.filter(_compute.equal(rows["type"], "ok"))),
        unplaced=_places(rows.filter(_unplaced(rows))),
    )


def _places(rows: pa.Table) -> frozenset[tuple[str, int]]:
    """The partitions that rows of values, or of deletions, are about."""
    about = rows.filter(_compute.is_in(rows["f"], value_set=pa.array(["send", "sentinel", "poll", "delete"])))
    keys = about.group_by(["topic", "partition"]).aggregate([]).to_pylist()
    return frozenset((each["topic"], each["partition"]) for each in keys)


def _unplaced(rows: pa.Table) -> Any:
    acknowledged = _compute.and_(_compute.equal(rows["f"], "send"), _compute.equal(rows["type"], "ok"))
    return _compute.and_(acknowledged, _compute.less(rows["first_offset"], 0))


def _lengths(table: pa.Table) -> NDArray[np.int64]:
    """How many values each row is about, as ``history.values_of`` counts them."""
    first, last = _column(table, "first_sequence"), _column(table, "last_sequence")
    without = first < 0
    first = np.where(without, _column(table, "first_offset"), first)
    last = np.where(without, _column(table, "last_offset"), last)
    lengths: NDArray[np.int64] = np.where((first >= 0) & (last >= first), last - first + 1, 0)
    return lengths


def _column(table: pa.Table, name: str) -> NDArray[np.int64]:
    found: NDArray[np.int64] = table[name].to_numpy().astype(np.int64, copy=False)
    return found


def _grouped(table: pa.Table, keys: list[str]) -> list[dict[str, Any]]:
    """Rows and values by key."""
    counted = table.select(keys).append_column("values", pa.array(_lengths(table)))
    return counted.group_by(keys).aggregate([("values", "sum"), ("values", "count")]).to_pylist()


def _kinds(rows: pa.Table) -> dict[Kind, tuple[int, int]]:
    return {
        (each["f"], each["type"]): (each["values_count"], each["values_sum"]) for each in _grouped(rows, ["f", "type"])
    }


def _totals(totals: pa.Table) -> dict[Kind, tuple[int, int]]:
    """What the total rows say. Two of one kind make a total that nothing can match."""
    found: dict[Kind, tuple[int, int]] = {}
    for each in totals.select(["error", "type", "count", "last_sequence"]).to_pylist():
        kind = str(each["error"]), str(each["type"])
        found[kind] = (-1, -1) if kind in found else (each["count"], each["last_sequence"])
    return found


def _by_partition(rows: pa.Table, f: str, outcome: str) -> dict[tuple[str, int], int]:
    chosen = rows.filter(_compute.and_(_compute.equal(rows["f"], f), _compute.equal(rows["type"], outcome)))
    return {(each["topic"], each["partition"]): each["values_sum"] for each in _grouped(chosen, ["topic", "partition"])}


def _errors(rows: pa.Table) -> dict[tuple[str, str], int]:
    """Values of ``send`` rows by outcome and the name of the error; an acknowledgement with an error is told, too."""
    sends = rows.filter(_compute.equal(rows["f"], "send"))
    told = sends.filter(_compute.or_(_compute.not_equal(sends["type"], "ok"), _compute.is_valid(sends["error"])))
    found: dict[tuple[str, str], int] = {}
    for each in _grouped(told, ["type", "error"]):
        key = each["type"], error_name(each["error"] or "")
        found[key] = found.get(key, 0) + each["values_sum"]
    return found


def error_name(text: str) -> str:
    """The name with which a client's error begins; empty if it has none."""
    found = _NAME.match(text)
    return "" if found is None else found[0]


def _latest(rows: pa.Table, outcome: str | None = None) -> dict[tuple[str, int], int]:
    """The latest ``complete_ns`` of ``send`` rows, by partition."""
    chosen = rows.filter(_compute.equal(rows["f"], "send"))
    if outcome is not None:
        chosen = chosen.filter(_compute.equal(chosen["type"], outcome))
    grouped = chosen.group_by(["topic", "partition"]).aggregate([("complete_ns", "max")])
    return {(each["topic"], each["partition"]): each["complete_ns_max"] for each in grouped.to_pylist()}


def _deleted(rows: pa.Table) -> dict[tuple[str, int], int]:
    """Up to where records were to be deleted; a request of unknown outcome may have been carried out."""
    asked = rows.filter(_compute.and_(_compute.equal(rows["f"], "delete"), _compute.not_equal(rows["type"], "fail")))
    grouped = asked.group_by(["topic", "partition"]).aggregate([("first_offset", "max")])
    return {(each["topic"], each["partition"]): each["first_offset_max"] for each in grouped.to_pylist()}


def _attempts(rows: pa.Table) -> tuple[tuple[int, int], ...]:
    """When records were under way: between the intended time of sending and the outcome. Spans that touch are one."""
    sends = rows.filter(_compute.equal(rows["f"], "send"))
    begun, ended = _column(sends, "invoke_ns") // INTERVAL_NS, _column(sends, "complete_ns") // INTERVAL_NS
    order = np.argsort(begun, kind="stable")
    return tuple(_joined(begun[order], ended[order])) if order.size else ()


def _joined(first: NDArray[np.int64], last: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Closed ranges, sorted by their beginning, with those that touch or overlap as one."""
    last = np.maximum.accumulate(last)
    breaks = np.flatnonzero(first[1:] > last[:-1] + 1)
    begins = first[np.append(0, breaks + 1)]
    ends = last[np.append(breaks, last.size - 1)]
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def _complaints(rows: pa.Table) -> list[str]:
    """Reserved sequences without exactly one outcome, as ranges, stream by stream."""
    reserved = _ranges(rows, ("reserve",))
    outcomes = _ranges(rows, _OUTCOMES)
    complaints = [f"{_named(stream, *each)} reserved twice" for stream, each in _overlaps(reserved)]
    complaints += [f"{_named(stream, *each)} with two outcomes" for stream, each in _overlaps(outcomes)]
    complaints += [f"{_named(stream, *each)} without an outcome" for stream, each in _missing(reserved, outcomes)]
    complaints += [
        f"{_named(stream, *each)} with an outcome and no reservation" for stream, each in _missing(outcomes, reserved)
    ]
    return complaints


_Ranges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _ranges(rows: pa.Table, functions: tuple[str, ...]) -> _Ranges:
    """Stream, first and last sequence of the rows of these functions, sorted."""
    chosen = rows.filter(
        _compute.and_(_compute.is_in(rows["f"], pa.array(functions)), _compute.greater_equal(rows["first_sequence"], 0))
    )
    stream, first, last = (_column(chosen, name) for name in ("stream", "first_sequence", "last_sequence"))
    order = np.lexsort((last, first, stream))
    return stream[order], first[order], last[order]


def _overlaps(ranges: _Ranges) -> list[tuple[int, tuple[int, int]]]:
    """Where a range begins before one before it in its stream has ended."""
    stream, first, last = ranges
    if not stream.size:
        return []
    reached = _reached(ranges)
    again = np.flatnonzero((stream[1:] == stream[:-1]) & (first[1:] <= reached[:-1])) + 1
    return [(int(stream[at]), (int(first[at]), int(min(last[at], reached[at - 1])))) for at in again[:MOST_COMPLAINTS]]


def _reached(ranges: _Ranges) -> NDArray[np.int64]:
    """The highest sequence that a range's stream has reached with it."""
    stream, _, last = ranges
    # streams follow each other: lifted by their number, each begins above all before it
    lift = np.unique(stream, return_inverse=True)[1].astype(np.int64) << 40
    reached: NDArray[np.int64] = np.maximum.accumulate(last + lift) - lift
    return reached


def _missing(wanted: _Ranges, there: _Ranges) -> list[tuple[int, tuple[int, int]]]:
    """What of the first ranges is in none of the second, as ranges."""
    missing: list[tuple[int, tuple[int, int]]] = []
    by_stream = {int(stream): _merged(there, int(stream)) for stream in np.unique(there[0])}
    for number in np.unique(wanted[0]).tolist():
        others = by_stream.get(number, [])
        for first, last in _merged(wanted, number):
            at = first
            for begin, end in others:
                if end < at:
                    continue
                if begin > last:
                    break
                if begin > at:
                    missing.append((number, (at, begin - 1)))
                at = max(at, end + 1)
            if at <= last:
                missing.append((number, (at, last)))
    return missing


def _merged(ranges: _Ranges, number: int) -> list[tuple[int, int]]:
    """The ranges of one stream, those that touch or overlap as one."""
    stream, first, last = ranges
    here = slice(np.searchsorted(stream, number, "left"), np.searchsorted(stream, number, "right"))
    return _joined(first[here], last[here])


def _named(stream: int, first: int, last: int) -> str:
    return f"s{stream}/{first}" if first == last else f"s{stream}/{first}..{last}"
