"""The account of a history does not depend on the parts in which it is read, and is what each row says."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stories import TOPIC
from tests.verifier.test_ranges import fewest
from verifier.accounts import summing as accounts_module
from verifier.accounts.account import INTERVAL_NS, HistoryAccount
from verifier.accounts.summing import MOST_COMPLAINTS, account_of
from verifier.evidence import history as history_module
from verifier.evidence.history import (
    MAX_PENDING_ROWS,
    HistoryFile,
    HistoryRow,
    HistoryWriter,
    stream_history,
    values_of,
)
from verifier.outcomes import error_name

ERRORS = (None, "NOT_LEADER_OR_FOLLOWER: no", "_MSG_TIMED_OUT: late", "no name")
#: Of a history in memory.
BYTES_A_ROW = 160
FUNCTIONS = ("reserve", "send", "unsent", "sentinel", "poll", "delete", "idle", "assign")


@st.composite
def _rows(draw: st.DrawFn) -> HistoryRow:
    f: Any = draw(st.sampled_from(FUNCTIONS))
    first, values = draw(st.integers(-1, 12)), draw(st.integers(0, 4))
    offset = draw(st.integers(-1, 12))
    begun = draw(st.integers(-1, 40)) * INTERVAL_NS // 4
    return HistoryRow(
        f, draw(st.sampled_from(("ok", "fail", "info"))), TOPIC, draw(st.integers(0, 1)), draw(st.integers(-1, 2)),
        first, first + values - 1, offset, offset + values - 1, begun, begun + draw(st.integers(0, 8)) * INTERVAL_NS,
        error=draw(st.sampled_from(ERRORS)),
    )  # fmt: skip


class StoppedClock:
    def monotonic_ns(self) -> int:
        return 0


@contextlib.contextmanager
def history(rows: list[HistoryRow], size: int) -> Iterator[Path]:
    """A history of these rows in messages of ``size`` rows."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "p.arrow"
        writer = HistoryWriter(path, "p", StoppedClock())
        for number, row in enumerate(rows, start=1):
            writer.append(row)
            if number % size == 0:
                writer.flush()
        writer.close()
        yield path


def account(rows: list[HistoryRow], size: int) -> HistoryAccount:
    """The account of these rows, read in parts of ``size`` rows."""
    with history(rows, size) as path, mock.patch.object(history_module, "PART_MESSAGES", 1):
        return account_of(path)


@given(st.lists(_rows(), max_size=25), st.integers(1, 26))
def test_any_parts_give_the_account_of_the_whole(rows: list[HistoryRow], size: int) -> None:
    """What is kept of a part is all that the following ones need."""
    assert account(rows, size) == account(rows, 1_000)


@given(st.lists(_rows(), max_size=25), st.integers(1, 26))
def test_an_account_is_what_each_row_says(rows: list[HistoryRow], size: int) -> None:
    """A slow twin that goes row by row and value by value comes to the same."""
    found = account(rows, size)
    assert found.rows == found.totals == slow_kinds(rows)
    assert found.errors == slow_errors(rows)
    sends = [row for row in rows if row.f == "send"]
    acked = [row for row in sends if row.type == "ok"]
    assert found.acked == slow_sums(acked)
    assert found.read == slow_sums([row for row in rows if row.f == "poll" and row.type == "ok"])
    assert found.streams == {row.stream for row in rows if row.stream >= 0}
    deletes = [row for row in rows if row.f == "delete" and row.type != "fail"]
    assert found.deleted == slow_most(deletes, "first_offset")
    assert found.last_acked_ns == slow_most(acked, "complete_ns")
    assert found.last_tried_ns == slow_most(sends, "complete_ns")
    placed = [row for row in rows if row.f in ("send", "sentinel", "poll", "delete") and row.type == "ok"]
    assert found.partitions == {(row.topic, row.partition) for row in placed}
    assert found.partitions_without_offsets == {(row.topic, row.partition) for row in acked if row.first_offset < 0}
    tried = {each for row in sends for each in range(row.invoke_ns // INTERVAL_NS, row.complete_ns // INTERVAL_NS + 1)}
    assert {each for first, last in found.attempts for each in range(first, last + 1)} == tried
    complaints = list(slow_complaints(rows))
    assert found.unanswered == tuple(each for each in complaints if UNANSWERED in each)
    assert found.complaints == tuple(each for each in complaints if UNANSWERED not in each)


def slow_kinds(rows: list[HistoryRow]) -> dict[tuple[str, str], tuple[int, int]]:
    kinds = {(row.f, row.type) for row in rows}
    own = {kind: [values_of(row) for row in rows if (row.f, row.type) == kind] for kind in kinds}
    return {kind: (len(values), sum(values)) for kind, values in own.items()}


def slow_errors(rows: list[HistoryRow]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        if row.f == "send" and (row.type != "ok" or row.error is not None):
            found[row.type, error_name(row.error or "")] += values_of(row)
    return found


def slow_sums(rows: list[HistoryRow]) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = defaultdict(int)
    for row in rows:
        found[row.topic, row.partition] += values_of(row)
    return found


def slow_most(rows: list[HistoryRow], column: str) -> dict[tuple[str, int], int]:
    places = {(row.topic, row.partition) for row in rows}
    return {place: max(getattr(row, column) for row in rows if (row.topic, row.partition) == place) for place in places}


UNANSWERED = "without an outcome"


def slow_complaints(rows: list[HistoryRow]) -> Iterator[str]:
    """What is wrong with sequences, value by value, in the order in which it is told."""
    numbered = [row for row in rows if row.f in ("reserve", "send", "sentinel", "unsent") and row.first_sequence >= 0]
    counts: dict[bool, Counter[tuple[int, int]]] = {True: Counter(), False: Counter()}
    for row in numbered:
        sequences = range(row.first_sequence, row.last_sequence + 1)
        counts[row.f == "reserve"].update((row.stream, each) for each in sequences)
    reserved, told = counts[True], counts[False]
    for wrong, what in (
        ({each for each in reserved if reserved[each] > 1}, "reserved twice"),
        ({each for each in told if told[each] > 1}, "with two outcomes"),
        (reserved.keys() - told.keys(), UNANSWERED),
        (told.keys() - reserved.keys(), "with an outcome and no reservation"),
    ):
        for stream, first, last in fewest(wrong)[:MOST_COMPLAINTS]:
            yield f"s{stream}/{first}{f'..{last}' if last > first else ''} {what}"
    backwards = {(row.stream, row.first_sequence, row.last_sequence) for row in numbered}
    for stream, first, last in sorted(each for each in backwards if each[2] < each[1]):
        yield f"s{stream}/{first}..{last} in a range that ends before it begins"


def test_memory_does_not_grow_with_a_history() -> None:
    """Of what was read, a few parts are held at a time."""
    part = history_module.PART_MESSAGES * MAX_PENDING_ROWS
    rows = 6 * part
    sends = (HistoryRow("send", "ok", TOPIC, 0, 1, at, at, at, at, at, at) for at in range(rows))
    writes = [HistoryRow("reserve", "invoke", TOPIC, 0, 1, 0, rows - 1), *sends]
    with history(writes, MAX_PENDING_ROWS) as path:
        held: list[int] = []

        def watched(path: Path) -> tuple[HistoryFile, Iterator[pa.Table]]:
            file, parts = stream_history(path)
            return file, (held.append(pa.total_allocated_bytes()) or part for part in parts)  # type: ignore[func-returns-value]

        before = pa.total_allocated_bytes()
        with mock.patch.object(accounts_module, "stream_history", watched):
            found = account_of(path)
    assert found.rows["send", "ok"] == (rows, rows) and not found.complaints
    assert len(held) > 6
    assert max(held) - before < 3 * part * BYTES_A_ROW
