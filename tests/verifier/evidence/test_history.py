"""History files: rows come back in order, a torn tail is legal at every byte, other damage is not."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.seams.clock import ManualClock
from tests.support.histories import read_histories, write_beyond_its_buffer, write_without
from verifier.evidence.history import (
    END_OF_STREAM,
    FLUSH_INTERVAL_NS,
    MAX_PENDING_ROWS,
    READ_SCHEMA,
    SCHEMA,
    Function,
    HistoryError,
    HistoryRow,
    HistoryWriter,
    history_file,
    read_history,
)

int64 = st.integers(-1, 2**63 - 1)
int32 = st.integers(-1, 2**31 - 1)
text = st.text(max_size=12)
history_rows = st.builds(
    HistoryRow,
    st.sampled_from([name for name in get_args(Function) if name != "total"]),
    st.sampled_from(["invoke", "ok", "fail", "info"]),
    text, int32, int64, int64, int64, int64, int64, int64, int64, int64, int32, int32, int32,
    st.none() | text,
    st.sampled_from(["load", "final"]),
    int32, int64, int64, int64, int64,
)  # fmt: skip


def row(sequence: int) -> HistoryRow:
    return HistoryRow("send", "ok", "t", 0, 1, sequence, sequence, sequence, sequence)


def written(path: Path, batches: list[list[HistoryRow]], *, close: bool = True) -> bytes:
    """A history file with one message per batch."""
    writer = HistoryWriter(path, "producers-1", ManualClock())
    for batch in batches:
        for each in batch:
            writer.append(each)
        writer.flush()
    if close:
        writer.close()
    return path.read_bytes()


def test_columns_are_the_pinned_ones() -> None:
    """The columns and their order are the contract with the verifier; a row is all of them but the process."""
    assert SCHEMA.names == ["process", *HistoryRow._fields]
    assert [name for name in SCHEMA.names if SCHEMA.field(name).nullable] == ["error"]
    assert READ_SCHEMA.names == [*SCHEMA.names, "row"]


@given(st.lists(st.lists(history_rows, max_size=5), max_size=4))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, batches: list[list[HistoryRow]]) -> None:
    """Every row comes back as it was, in the order of writing, numbered from 0."""
    path = tmp_path_factory.mktemp("history") / "p.arrow"
    written(path, batches)
    table = read_history(path)
    rows = [each for batch in batches for each in batch]
    assert table.schema.equals(READ_SCHEMA, check_metadata=False)
    read = [HistoryRow(**{name: record[name] for name in HistoryRow._fields}) for record in table.to_pylist()]
    assert read == rows
    assert table.column("row").to_pylist() == list(range(len(rows)))
    assert history_file(table) == (str(path), "producers-1", len(rows), True, 0)


def _cuts(first: int, end: int) -> list[int]:
    """Every byte near both ends of a message, where its lengths and marks are, and every seventh between."""
    return sorted({*range(first, min(first + 80, end)), *range(first, end, 7), *range(max(first, end - 80), end)})


def test_a_torn_tail_costs_only_the_last_message(tmp_path: Path) -> None:
    """Cut anywhere in the last message: all rows before it are read, and the torn bytes are told."""
    path = tmp_path / "p.arrow"
    first = written(path, [[row(0), row(1)]], close=False)
    whole = written(path, [[row(0), row(1)], [row(2)]], close=False)
    assert whole.startswith(first)
    for size in _cuts(len(first), len(whole)):
        path.write_bytes(whole[:size])
        table = read_history(path)
        assert table.column("first_sequence").to_pylist() == [0, 1]
        assert history_file(table)[2:] == (2, False, size - len(first))
    path.write_bytes(whole)
    assert history_file(read_history(path))[2:] == (3, False, 0)


def test_a_torn_head_is_an_empty_history(tmp_path: Path) -> None:
    """A process killed while it wrote the schema leaves no rows and no error."""
    path = tmp_path / "p.arrow"
    schema = written(path, [], close=False)
    for size in [*_cuts(0, len(schema)), len(schema)]:
        path.write_bytes(schema[:size])
        table = read_history(path)
        assert table.num_rows == 0
        assert history_file(table).torn_bytes == (size if size < len(schema) else 0)


def test_a_torn_end_mark_is_an_unclosed_file(tmp_path: Path) -> None:
    """Only the whole end mark says that the process closed its history."""
    path = tmp_path / "p.arrow"
    whole = written(path, [[row(0)]])
    for cut in range(1, len(END_OF_STREAM) + 1):
        path.write_bytes(whole[:-cut])
        assert history_file(read_history(path))[2:] == (1, False, len(END_OF_STREAM) - cut)
        assert read_history(path, with_totals=True).num_rows == 2


def test_a_torn_tail_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Leaving out bytes is legal, never silent."""
    path = tmp_path / "p.arrow"
    path.write_bytes(written(path, [[row(0)]], close=False)[:-3])
    with caplog.at_level(logging.WARNING):
        read_history(path)
    assert "torn bytes" in caplog.text


@pytest.mark.parametrize("damage", ["mark", "metadata", "after the end"])
def test_damage_before_the_tail_is_an_error(tmp_path: Path, damage: str) -> None:
    """Bytes that no kill can explain make the evidence unusable: HistoryError, not fewer rows."""
    path = tmp_path / "p.arrow"
    first = written(path, [[row(0)]], close=False)
    whole = bytearray(written(path, [[row(0)], [row(1)]]))
    if damage == "mark":
        whole[len(first)] ^= 0xFF
    elif damage == "metadata":
        whole[len(first) + 8 : len(first) + 40] = bytes(32)
    else:
        whole += b"x"
    path.write_bytes(whole)
    with pytest.raises(HistoryError):
        read_history(path)


def test_other_columns_are_an_error(tmp_path: Path) -> None:
    """A stream with other columns is no history."""
    path = tmp_path / "p.arrow"
    table = pa.table({"a": [1]})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(HistoryError, match="columns"):
        read_history(path)


def test_text_that_lies_outside_of_its_buffer_is_an_error(tmp_path: Path) -> None:
    """A flipped bit in an offset once ended the verifier with a segmentation fault."""
    written(path := tmp_path / "final-1.arrow", [[row(0), row(1)]])
    write_beyond_its_buffer(path)
    with pytest.raises(HistoryError, match="out of bounds"):
        read_history(path)


@pytest.mark.parametrize("column", ["stream", "last_offset", "process"])
def test_nothing_where_the_schema_has_something_is_an_error(tmp_path: Path, column: str) -> None:
    """A row that is neither this nor that would drop out of every check."""
    written(path := tmp_path / "final-1.arrow", [[row(0), row(1)]])
    write_without(path, column)
    with pytest.raises(HistoryError, match=f"the column {column} has nothing in some rows"):
        read_history(path)


def test_rows_are_flushed_when_due(tmp_path: Path) -> None:
    """A row is in the file half a second after it was taken at the latest, and after MAX_PENDING_ROWS at once."""
    clock = ManualClock()
    path = tmp_path / "p.arrow"
    writer = HistoryWriter(path, "p", clock)
    writer.append(row(0))
    writer.flush_if_due()
    assert read_history(path).num_rows == 0
    clock.advance_ms(FLUSH_INTERVAL_NS / 1e6)
    writer.flush_if_due()
    assert read_history(path).num_rows == 1
    for sequence in range(1, MAX_PENDING_ROWS + 1):
        writer.append(row(sequence))
    assert read_history(path).num_rows == MAX_PENDING_ROWS + 1
    writer.close()


def test_a_durable_row_is_in_the_file_at_once(tmp_path: Path) -> None:
    """append_durably returns after the row, and all before it, was handed to the kernel."""
    writer = HistoryWriter(tmp_path / "p.arrow", "p", ManualClock())
    writer.append(row(0))
    writer.append_durably(HistoryRow("reserve", "invoke", "t", 0, 1, 0, 4095))
    assert read_history(tmp_path / "p.arrow").column("f").to_pylist() == ["send", "reserve"]
    writer.close()


def test_a_closed_writer_takes_no_rows(tmp_path: Path) -> None:
    """After close, append is refused (nothing is lost silently) and close and flush do nothing."""
    writer = HistoryWriter(tmp_path / "p.arrow", "p", ManualClock())
    writer.close()
    writer.close()
    writer.flush()
    assert writer.closed
    with pytest.raises(ValueError, match="closed"):
        writer.append(row(0))


def test_histories_of_a_directory(tmp_path: Path) -> None:
    """All files, by name, each numbered by itself; no directory gives an empty table with the same columns."""
    written(tmp_path / "b.arrow", [[row(5)]])
    written(tmp_path / "a.arrow", [[row(1)], [row(2)]], close=False)
    histories = read_histories(tmp_path)
    assert histories.table.column("first_sequence").to_pylist() == [1, 2, 5]
    assert histories.table.column("row").to_pylist() == [0, 1, 0]
    assert [(Path(file.path).name, file.closed) for file in histories.files] == [("a.arrow", False), ("b.arrow", True)]
    empty = read_histories(tmp_path / "absent")
    assert empty.table.schema.equals(READ_SCHEMA) and empty.files == ()


def test_history_file_of_another_table() -> None:
    """A table that was not read from a file has no such state."""
    with pytest.raises(HistoryError, match="not read"):
        history_file(READ_SCHEMA.empty_table())


def test_a_history_marked_incomplete_is_not_closed_in_order(tmp_path: Path) -> None:
    """Its rows are there, its end mark is not, so nobody takes it for the whole."""
    writer = HistoryWriter(tmp_path / "p.arrow", "p", ManualClock())
    writer.append(row(0))
    writer.mark_incomplete()
    writer.close()
    assert history_file(read_history(tmp_path / "p.arrow"))[2:] == (1, False, 0)
