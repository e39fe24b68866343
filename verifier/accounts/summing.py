"""The account of one history: what it holds, beside what it says it holds. Vectorized over its rows; judges nothing.

One file is one account: its rows by kind against its own totals, every reserved sequence against the outcomes, errors
by name, what was acknowledged and read in each partition, and when something was attempted. The file is read
one part at a time, and only sums, extremes and sets of it are kept: memory does not grow with a run.
``verifier.completeness`` decides what follows for the verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from verifier.accounts.account import INTERVAL_NS, EventKind, HistoryAccount
from verifier.accounts.belonging import Belonging
from verifier.accounts.columns import (
    Where,
    by_partition,
    column,
    deleted_below,
    distinct,
    earliest,
    errors_of,
    greatest,
    grouped,
    partitions_of,
    without_offset,
    without_times,
    without_value,
)
from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import stream_history
from verifier.ranges import Coverage, Ranges, joined, ranges, without

#: Sequences of these functions have an outcome.
_OUTCOMES = ("send", "sentinel", "unsent")
#: Rows of these functions always have both times, and checks compare them.
_TIMED = ("send", "sentinel", "poll", "idle", "begin", "commit", "abort", "resume", "offset-commit")
#: At most this many complaints of a kind are reported of one history.
MOST_COMPLAINTS = 5

#: pyarrow's functions take and give more kinds of value than their stubs can say.
_compute: Any = pyarrow.compute


def accounts(paths: Iterable[Path], due_ns: int = -1) -> tuple[HistoryAccount, ...]:
    """The accounts of these history files, in their order. ``due_ns``: the time of what is ``due``."""
    return tuple(account_of(path, due_ns) for path in paths)


def account_of(path: Path, due_ns: int = -1) -> HistoryAccount:
    """The account of one history file; one that cannot be read is ``damaged``."""
    try:
        file, parts = stream_history(path)
        found = _summed(parts, due_ns)
    except (HistoryError, OSError) as error:
        return HistoryAccount(path.stem, path.name, "damaged", error=str(error))
    state = "closed" if file.closed else "torn"
    return found.account(file.process, path.name, state, file.torn_bytes)


def _summed(parts: Iterable[pa.Table], due_ns: int) -> _Sums:
    sums = _Sums(due_ns)
    for part in parts:
        is_total = _compute.equal(part["f"], "total")
        sums.add_totals(part.filter(is_total))
        sums.add(part.filter(_compute.invert(is_total)))
    return sums


class _Sums:
    """The sums over all rows so far; ``HistoryAccount`` says what each of them is."""

    def __init__(self, due_ns: int) -> None:
        self._due_ns = due_ns
        self._sessions: dict[str, set[tuple[int, str, int]]] = {f: set() for f in ("assign", "resume", "poll")}
        self._began: dict[Where, int] = {}
        self._reached: dict[Where, int] = {}
        self._due: dict[Where, int] = {}
        self._watermarks: dict[Where, int] = {}
        self._rows: dict[EventKind, tuple[int, int]] = {}
        self._totals: dict[EventKind, tuple[int, int]] = {}
        self._reserved, self._outcomes = Coverage(), Coverage()
        self._without_offset, self._retried = Coverage(), Coverage()
        self._backwards: set[tuple[int, int, int]] = set()
        self._errors: Counter[tuple[str, str]] = Counter()
        self._acked: Counter[Where] = Counter()
        self._read: Counter[Where] = Counter()
        self._attempts = Coverage()
        self._streams: set[int] = set()
        self._deleted: dict[Where, int] = {}
        self._last_acked_ns: dict[Where, int] = {}
        self._last_tried_ns: dict[Where, int] = {}
        self._partitions: set[Where] = set()
        self._partitions_without_offsets: set[Where] = set()
        self._writers: set[str] = set()
        self._phases: set[tuple[str, str]] = set()
        self._without_times: dict[str, tuple[int, str]] = {}
        self._polls_without_offset = self._polls_without_value = self._polls_with_watermark = 0
        self._last_ns = -1
        self._producer_id = self._offset = -1
        self._belonging = Belonging()

    def add_totals(self, totals: pa.Table) -> None:
        """Note the total rows. If there are two of one kind, the total is one that no count can match."""
        for each in totals.select(["error", "type", "count", "last_sequence"]).to_pylist():
            kind = str(each["error"]), str(each["type"])
            self._totals[kind] = (-1, -1) if kind in self._totals else (each["count"], each["last_sequence"])

    def add(self, rows: pa.Table) -> None:
        """Add rows that are not totals."""
        ok, sends = _compute.equal(rows["type"], "ok"), _compute.equal(rows["f"], "send")
        for each in grouped(rows, ["f", "type"]):
            kind = each["f"], each["type"]
            counted, values = self._rows.get(kind, (0, 0))
            self._rows[kind] = counted + each["values_count"], values + each["values_sum"]
        sent = rows.filter(sends)
        acked = rows.filter(_compute.and_(sends, ok))
        self._acked.update(by_partition(acked))
        self._read.update(by_partition(rows.filter(_compute.and_(_compute.equal(rows["f"], "poll"), ok))))
        self._errors.update(errors_of(sent))
        self._streams.update(each for each in _compute.unique(rows["stream"]).to_pylist() if each >= 0)
        begun, ended = column(sent, "invoke_ns") // INTERVAL_NS, column(sent, "complete_ns") // INTERVAL_NS
        self._attempts.add(joined(ranges(np.zeros_like(begun), begun, np.maximum(begun, ended))))
        _keep_greatest(self._deleted, deleted_below(rows))
        _keep_greatest(self._last_acked_ns, greatest(acked, "complete_ns"))
        _keep_greatest(self._last_tried_ns, greatest(sent, "complete_ns"))
        for f, sessions in self._sessions.items():
            own = rows.filter(_compute.and_(_compute.equal(rows["f"], f), ok))
            keys = distinct(own, ["session", "topic", "partition"])
            sessions |= {(each["session"], each["topic"], each["partition"]) for each in keys}
            if f == "poll":
                _keep_greatest(self._reached, greatest(own, "last_offset"))
            elif f == "assign":
                self._began = earliest(own, "first_offset") | self._began
        _keep_greatest(
            self._due, greatest(acked.filter(_compute.less_equal(acked["complete_ns"], self._due_ns)), "last_offset")
        )
        readings = _compute.is_in(rows["f"], value_set=pa.array(["poll", "idle"]))
        _keep_greatest(self._watermarks, greatest(rows.filter(_compute.and_(readings, ok)), "high_watermark"))
        about = _compute.is_in(rows["f"], value_set=pa.array(["send", "sentinel", "poll", "delete"]))
        self._partitions |= partitions_of(rows.filter(_compute.and_(about, ok)))
        self._partitions_without_offsets |= partitions_of(acked.filter(_compute.less(acked["first_offset"], 0)))
        self._writers.update(_compute.unique(rows["process"]).to_pylist())
        self._phases |= {(each["f"], each["phase"]) for each in distinct(rows, ["f", "phase"])}
        polls = rows.filter(_compute.equal(rows["f"], "poll"))
        self._polls_without_offset += without_offset(polls)
        self._polls_without_value += without_value(polls)
        self._polls_with_watermark += int(np.count_nonzero(column(polls, "high_watermark") >= 0))
        self._add_times(rows)
        self._belonging.add(rows)
        self._last_ns = max(self._last_ns, int(column(rows, "complete_ns").max(initial=-1)))
        self._producer_id = max(self._producer_id, int(column(acked, "producer_id").max(initial=-1)))
        self._offset = max(self._offset, int(column(acked, "first_offset").max(initial=-1)))
        unplaced = acked.filter(_compute.less(acked["first_offset"], 0))
        for some, functions, coverage in (
            (rows, ("reserve",), self._reserved),
            (rows, _OUTCOMES, self._outcomes),
            (rows, ("retry",), self._retried),
            (unplaced, ("send",), self._without_offset),
        ):
            coverage.add(self._sequences(some, functions))

    def _add_times(self, rows: pa.Table) -> None:
        """Note rows with impossible times, which would make checks that compare times find nothing."""
        for f in _TIMED:
            own = rows.filter(_compute.equal(rows["f"], f))
            wrong = own.filter(pa.array(without_times(own)))
            if wrong.num_rows:
                count, first = self._without_times.get(f, (0, _row_named(wrong.slice(0, 1).to_pylist()[0])))
                self._without_times[f] = count + wrong.num_rows, first

    def _sequences(self, rows: pa.Table, functions: tuple[str, ...]) -> Ranges:
        """The sequences of the rows with these functions. A range that ends before it begins has none."""
        is_one = _compute.is_in(rows["f"], value_set=pa.array(functions))
        chosen = rows.filter(_compute.and_(is_one, _compute.greater_equal(rows["first_sequence"], 0)))
        stream, first, last = (column(chosen, name) for name in ("stream", "first_sequence", "last_sequence"))
        empty = last < first
        if empty.any():
            wrong = zip(*(column[empty].tolist() for column in (stream, first, last)), strict=True)
            self._backwards = set(sorted({*self._backwards, *wrong})[:MOST_COMPLAINTS])
        return ranges(stream[~empty], first[~empty], last[~empty])

    def account(self, process: str, file: str, state: str, torn_bytes: int) -> HistoryAccount:
        """The account of all rows that were added."""
        return HistoryAccount(
            process,
            file,
            state,
            torn_bytes,
            rows=self._rows,
            totals=self._totals,
            complaints=tuple(self._complaints()),
            unanswered=tuple(_told(without(self._reserved.once, self._outcomes.once), "without an outcome")),
            errors=dict(self._errors),
            acked=dict(self._acked),
            read=dict(self._read),
            attempts=tuple((first, last) for _, first, last in self._attempts.once.rows()),
            streams=frozenset(self._streams),
            deleted=self._deleted,
            last_acked_ns=self._last_acked_ns,
            last_tried_ns=self._last_tried_ns,
            partitions=frozenset(self._partitions),
            partitions_without_offsets=frozenset(self._partitions_without_offsets),
            writers=frozenset(self._writers),
            phases=frozenset(self._phases),
            without_times=self._without_times,
            polls_without_offset=self._polls_without_offset,
            polls_without_value=self._polls_without_value,
            polls_with_watermark=self._polls_with_watermark,
            last_ns=self._last_ns,
            has_producer_ids=self._producer_id >= 0,
            has_offsets=self._offset >= 0,
            unplaced=tuple(
                _told(without(self._without_offset.once, self._retried.once), "acknowledged without an offset")
            ),
            unassigned=frozenset(self._sessions["poll"] - self._sessions["assign"] - self._sessions["resume"]),
            began=self._began,
            reached=self._reached,
            due=self._due,
            watermarks=self._watermarks,
            **self._belonging.told(),
        )

    def _complaints(self) -> Iterator[str]:
        """Contradictions that no process leaves, not even one that is killed; as ranges, stream by stream."""
        reserved, outcomes = self._reserved, self._outcomes
        yield from _told(reserved.twice, "reserved twice")
        yield from _told(outcomes.twice, "with two outcomes")
        yield from _told(without(outcomes.once, reserved.once), "with an outcome and no reservation")
        for stream, first, last in sorted(self._backwards):
            yield f"{_named(stream, first, last)} in a range that ends before it begins"


def _told(found: Ranges, what: str) -> Iterator[str]:
    for stream, first, last in found.rows(MOST_COMPLAINTS):
        yield f"{_named(stream, first, last)} {what}"


def _keep_greatest(greatest: dict[Where, int], found: Mapping[Where, int]) -> None:
    for where, value in found.items():
        greatest[where] = max(value, greatest.get(where, value))


def _named(stream: int, first: int, last: int) -> str:
    return f"s{stream}/{first}" if first == last else f"s{stream}/{first}..{last}"


def _row_named(row: Mapping[str, Any]) -> str:
    """Names a row by its sequences or its offset, its partition and its times."""
    about = f"offset {row['first_offset']}"
    if row["stream"] >= 0:
        about = _named(row["stream"], row["first_sequence"], row["last_sequence"])
    return f"{about} in {row['topic']}-{row['partition']}, from {row['invoke_ns']} to {row['complete_ns']} ns"
