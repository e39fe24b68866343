"""The history: what the clients of a run saw, in Arrow stream files, one row per span. Owns columns and file form.

A **span** is as many consecutive sequences of one stream, at consecutive offsets and with the same outcome, as became
known together; the first and last of both are recorded. One file per load process is appended live and ends with
Arrow's end-of-stream mark if it was closed in order. A torn last message (a killed process) is legal and reported;
damage before the tail is not, and raises. What the rows mean for the verdict is not decided here.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast

import numpy as np
import pyarrow as pa

from verifier.evidence.arrow_claims import grouped
from verifier.evidence.arrow_stream import END_OF_STREAM, HistoryError, batch_message, check, split_messages
from verifier.evidence.bounded import size_of

logger = logging.getLogger(__name__)

#: ``reserve``: these sequences may be sent from now on (written and flushed before the first of them is);
#: ``send``: what became of sequences; ``unsent``: reserved, and never handed to a client; ``poll``: what a reader was
#: handed, in order; ``assign``: a reader reads this partition from ``first_offset`` on, under ``session``; ``seek``: it
#: moved within the session; ``idle``: ``count`` polls in a row that brought nothing; ``incarnation``: a producer was
#: made or learned its id; ``delete``: DeleteRecords up to ``first_offset`` was asked for; ``sentinel``: as ``send``, by
#: the final phase; ``retry``: the client had to send again, or may have, what it had outstanding; ``disconnect``: it
#: lost a connection; ``note``: anything else of use; ``begin``, ``commit``, ``abort``: of a transaction; ``offsets``:
#: what it took as its input; ``isolation``: a session reads only what is committed; ``end-offset``: it was told where a
#: partition ends; ``member``: a session is that of a
#: member of a group in one generation; ``resume``, ``revoke``: it reads a partition from ``first_offset`` on, and no
#: longer; ``offset-commit``: what became of a committed offset; ``leave``: the member is no more; ``total``: how many
#: rows of one kind the file holds.
Function = Literal[
    "reserve", "send", "unsent", "poll", "assign", "seek", "idle", "incarnation", "delete", "sentinel", "retry",
    "disconnect", "note", "begin", "commit", "abort", "offsets", "isolation", "end-offset", "member", "resume",
    "revoke", "offset-commit", "leave", "total",
]  # fmt: skip
#: ``invoke``: begun; ``ok``: happened; ``fail``: certainly did not happen; ``info``: unknown.
HistoryOutcome = Literal["invoke", "ok", "fail", "info"]
Phase = Literal["load", "final"]

_COLUMNS: list[pa.Field[Any]] = [
    pa.field("process", pa.string(), nullable=False),
    pa.field("f", pa.string(), nullable=False),
    pa.field("type", pa.string(), nullable=False),
    pa.field("topic", pa.string(), nullable=False),
    pa.field("partition", pa.int32(), nullable=False),
    pa.field("stream", pa.int64(), nullable=False),
    pa.field("first_sequence", pa.int64(), nullable=False),
    pa.field("last_sequence", pa.int64(), nullable=False),
    pa.field("first_offset", pa.int64(), nullable=False),
    pa.field("last_offset", pa.int64(), nullable=False),
    pa.field("invoke_ns", pa.int64(), nullable=False),
    pa.field("complete_ns", pa.int64(), nullable=False),
    pa.field("producer_id", pa.int64(), nullable=False),
    pa.field("producer_epoch", pa.int32(), nullable=False),
    pa.field("incarnation", pa.int32(), nullable=False),
    pa.field("attempt", pa.int32(), nullable=False),
    pa.field("error", pa.string(), nullable=True),
    pa.field("phase", pa.string(), nullable=False),
    pa.field("session", pa.int32(), nullable=False),
    pa.field("op", pa.int64(), nullable=False),
    pa.field("count", pa.int64(), nullable=False),
    pa.field("high_watermark", pa.int64(), nullable=False),
    pa.field("last_stable_offset", pa.int64(), nullable=False),
]
SCHEMA = pa.schema(_COLUMNS)

#: What reading returns: the same columns and ``row``, the number of the row within its process (its order).
READ_SCHEMA = SCHEMA.append(pa.field("row", pa.int64(), nullable=False))

FLUSH_INTERVAL_NS = 500_000_000
MAX_PENDING_ROWS = 4096
#: Messages read at a time, 65,536 rows at most (of a message's size together, if others than our writers made them
#: large): a whole history takes 130 bytes of memory per row.
PART_MESSAGES = 16
#: A part is too little to share out between threads.
_READING = pa.ipc.IpcReadOptions(use_threads=False)
#: What a total can say at most.
_MOST_VALUES = 2**63 - 1


class MonotonicClock(Protocol):
    """The one thing a writer asks of a clock (``cluster.seams.clock.Clock`` has it)."""

    def monotonic_ns(self) -> int: ...


class HistoryRow(NamedTuple):
    """One row without its process; -1 stands for "unknown" or "not applicable" in every number.

    ``invoke_ns`` is the earliest intended or actual time of sending (or polling) in the span, ``complete_ns`` the
    time at which the outcome became known; both on the machine's monotonic clock. ``op`` numbers the calls of a
    process: rows with the same number are what one poll brought. In rows of a transaction it is the transaction's
    number. ``high_watermark`` and ``last_stable_offset`` are what the client knew when a poll returned.
    """

    f: Function
    type: HistoryOutcome
    topic: str = ""
    partition: int = -1
    stream: int = -1
    first_sequence: int = -1
    last_sequence: int = -1
    first_offset: int = -1
    last_offset: int = -1
    invoke_ns: int = -1
    complete_ns: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    incarnation: int = -1
    attempt: int = -1
    error: str | None = None
    phase: Phase = "load"
    session: int = -1
    op: int = -1
    count: int = -1  # type: ignore[assignment]  # the column's name; nothing counts the fields of a row
    high_watermark: int = -1
    last_stable_offset: int = -1


class HistoryFile(NamedTuple):
    """What is known of a file that was read: ``closed`` in order, or with ``torn_bytes`` at its end."""

    path: str
    process: str
    rows: int
    closed: bool
    torn_bytes: int


class HistoryWriter:
    """Appends rows to one file. For one thread (or the greenlets of one hub: no call switches).

    Every message reaches the kernel by one write, so a kill tears at most the last one. Raises ``OSError``.
    """

    def __init__(self, path: str | Path, process: str, clock: MonotonicClock) -> None:
        self._path = str(path)
        self._process = process
        self._clock = clock
        self._pending: list[HistoryRow] = []
        self._flushed_ns = clock.monotonic_ns()
        self.rows = 0
        self._incomplete = False
        self._torn = False
        self._totals: Counter[tuple[str, str]] = Counter()
        self._values: Counter[tuple[str, str]] = Counter()
        self._sink: pa.OSFile | None = pa.OSFile(self._path, "wb")
        schema = SCHEMA.with_metadata({"gapless.process": process})
        self._sink.write(schema.serialize())

    @property
    def closed(self) -> bool:
        return self._sink is None

    def append(self, row: HistoryRow) -> None:
        """Take one row; it is in the file after the next flush. Raises ``ValueError`` once closed."""
        if self._sink is None:
            raise ValueError(f"history {self._path} is closed")
        self._pending.append(row)
        if len(self._pending) >= MAX_PENDING_ROWS:
            self.flush()

    def append_durably(self, row: HistoryRow) -> None:
        """Take one row and hand it, and all before it, to the kernel before returning (reservations).

        Raises ``OSError`` also after a write that failed: what depends on the row must not continue without it.
        """
        self.append(row)
        self.flush()
        if self._torn:
            raise OSError(f"history {self._path} could not be written before and takes no more rows")

    def flush_if_due(self) -> None:
        """Flush what is older than half a second; called by the process's own ticker, idle or not."""
        if self._clock.monotonic_ns() - self._flushed_ns >= FLUSH_INTERVAL_NS:
            self.flush()

    def flush(self) -> None:
        """Hand all rows taken so far to the kernel. Does nothing once closed, or after a write that failed."""
        self._flushed_ns = self._clock.monotonic_ns()
        if self._sink is None or not self._pending or self._torn:
            return
        rows, self._pending = self._pending, []
        columns: list[tuple[object, ...]] = [(self._process,) * len(rows), *zip(*rows, strict=True)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        try:
            self._sink.write(batch_message(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)))
        except OSError:
            # these rows are lost, and a message may be half written: nothing may follow it, no end mark either
            self._incomplete = self._torn = True
            raise
        self.rows += len(rows)
        for row in rows:
            kind = row.f, row.type
            self._totals[kind] += 1
            self._values[kind] = min(self._values[kind] + values_of(row), _MOST_VALUES)

    def mark_incomplete(self) -> None:
        """Something that belongs into this history is not in it: from now on it will not be closed in order."""
        self._incomplete = True

    def close(self) -> None:
        """Flush, write the end mark and close; a second call does nothing.

        A writer that failed before closes without the mark: its history is incomplete and shows it.
        """
        if self._sink is None:
            return
        try:
            self.flush()
            if not self._incomplete:
                self._pending = [total_row(*kind, rows, self._values[kind]) for kind, rows in self._totals.items()]
                self.flush()
                self._sink.write(END_OF_STREAM)
        finally:
            self._sink.close()
            self._sink = None

    def __repr__(self) -> str:
        return f"HistoryWriter({self._process}, rows={self.rows}, pending={len(self._pending)}, closed={self.closed})"


def values_of(row: HistoryRow) -> int:
    """How many values or records a row is about: its sequences, or its offsets where it has no sequences; else 0."""
    first, last = row.first_sequence, row.last_sequence
    if first < 0:
        first, last = row.first_offset, row.last_offset
    return last - first + 1 if 0 <= first <= last else 0


def total_row(f: str, outcome: str, rows: int, values: int) -> HistoryRow:
    """The row that closes a history's account of one kind of rows: how many there are, and of how many values."""
    return HistoryRow("total", cast(HistoryOutcome, outcome), last_sequence=values, error=f, count=rows)


def read_history(path: str | Path, *, with_totals: bool = False) -> pa.Table:
    """The rows of one file in their order, with ``READ_SCHEMA``; ``history_file`` tells how the file ended.

    The totals at its end are no rows of their own, and are left out unless they are asked for. A torn tail is left out
    and logged. Raises ``HistoryError`` if the file is damaged elsewhere, ``OSError``.
    """
    file, parts = stream_history(path)
    table = pa.concat_tables([READ_SCHEMA.empty_table(), *parts])
    table = table if with_totals else _without_totals(table)
    metadata = {
        "path": file.path,
        "process": file.process,
        "closed": str(int(file.closed)),
        "torn_bytes": str(file.torn_bytes),
    }
    return table.replace_schema_metadata({f"gapless.{key}": value for key, value in metadata.items()})


def scan_history(path: str | Path) -> tuple[HistoryFile, Iterator[pa.Table]]:
    """How the file ends, and its rows as ``read_history`` has them, but a part at a time: for files of any length.

    The whole file is decoded once before this returns, so that an error comes before any row, and again for the rows.
    Raises as ``read_history`` does.
    """
    file, parts = _open(path)
    rows = sum(_without_totals(part).num_rows for part in parts())
    return file._replace(rows=rows), map(_without_totals, parts())


def stream_history(path: str | Path) -> tuple[HistoryFile, Iterator[pa.Table]]:
    """How the file ends (its ``rows`` are -1: not counted yet), and all its rows part by part, totals too.

    It is decoded once, so ``HistoryError`` may come after some of the rows. Raises it, and ``OSError``, at once, too.
    """
    file, parts = _open(path)
    return file, parts()


def _open(path: str | Path) -> tuple[HistoryFile, Callable[[], Iterator[pa.Table]]]:
    with pa.memory_map(str(path)) if size_of(Path(path)) else pa.BufferReader(b"") as source:
        data = memoryview(source.read_buffer())
    messages, closed = split_messages(data, str(path))
    torn_bytes = len(data) - sum(len(message) for message in messages) - (len(END_OF_STREAM) if closed else 0)
    groups = grouped(messages[1:], PART_MESSAGES, str(path))
    # a history of one part, as those of short runs are, is decoded once, however often it is gone through
    only = groups[0] if len(groups) == 1 else []
    whole, process = _decode_messages([*messages[:1], *only], str(path))
    if torn_bytes:
        logger.warning("history %s ends with %d torn bytes, left out", path, torn_bytes)

    def parts() -> Iterator[pa.Table]:
        first = 0
        several = (_decode_messages([*messages[:1], *group], str(path))[0] for group in groups)
        for table in [whole] if len(groups) == 1 else several:
            numbers = pa.array(np.arange(first, first + table.num_rows, dtype=np.int64))
            yield table.append_column(READ_SCHEMA.field("row"), numbers)
            first += table.num_rows

    return HistoryFile(str(path), process, -1, closed, torn_bytes), parts


def _without_totals(table: pa.Table) -> pa.Table:
    return table.filter(pa.array(table["f"].to_numpy(zero_copy_only=False) != "total", pa.bool_()))


def history_file(table: pa.Table) -> HistoryFile:
    """How the file ended from which ``read_history`` made this table. Raises ``HistoryError`` for another table."""
    metadata = table.schema.metadata or {}
    try:
        path, process, closed, torn_bytes = (
            metadata[f"gapless.{key}".encode()].decode() for key in ("path", "process", "closed", "torn_bytes")
        )
    except KeyError as error:
        raise HistoryError(f"this table was not read from a history file: no {error}") from None
    return HistoryFile(path, process, table.num_rows, closed == "1", int(torn_bytes))


def _decode_messages(messages: list[memoryview], path: str) -> tuple[pa.Table, str]:
    """The rows of whole messages and the process that wrote them; no messages give an empty table."""
    if not messages:
        return SCHEMA.empty_table(), Path(path).stem
    try:
        with pa.ipc.open_stream(pa.BufferReader(b"".join([*messages, END_OF_STREAM])), options=_READING) as reader:
            schema = reader.schema
            table = reader.read_all()
            check(table)
    except (pa.ArrowException, OSError) as error:
        raise HistoryError(f"{path}: {error}") from error
    if not schema.equals(SCHEMA, check_metadata=False):
        raise HistoryError(f"{path}: these are not the columns of a history")
    process = (schema.metadata or {}).get(b"gapless.process", Path(path).stem.encode()).decode()
    return table.replace_schema_metadata(None), process
