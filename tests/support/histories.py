"""Histories for tests: all of a run as one table (the verifier reads each file in parts), and a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from verifier.evidence.history import READ_SCHEMA, HistoryFile, history_file, read_history


class Histories(NamedTuple):
    """All files of a directory: one table (rows of a process in their order), and the state of each file."""

    table: pa.Table
    files: tuple[HistoryFile, ...]


def read_histories(directory: str | Path) -> Histories:
    """All ``*.arrow`` files of a directory, by name. An absent or empty directory gives an empty table."""
    tables = [read_history(path) for path in sorted(Path(directory).glob("*.arrow"))]
    files = tuple(history_file(table) for table in tables)
    return Histories(pa.concat_tables([READ_SCHEMA.empty_table(), *(t.cast(READ_SCHEMA) for t in tables)]), files)


def write_beyond_its_buffer(path: Path) -> None:
    """Leave only the first batch of a history; the first text of its first column reaches beyond its buffer."""
    with pa.ipc.open_stream(path.read_bytes()) as reader:
        batch = reader.read_next_batch()
    _, offsets, letters = batch.column(0).buffers()
    wrong = pa.Array.from_buffers(pa.int32(), len(batch) + 1, [None, offsets]).to_pylist()
    wrong[1] = 1 << 30
    beyond = pa.StringArray.from_buffers(len(batch), pa.array(wrong, pa.int32()).buffers()[1], letters)
    with pa.ipc.new_stream(path, batch.schema) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays([beyond, *batch.columns[1:]], schema=batch.schema))


def write_without(path: Path, column: str) -> None:
    """Leave only the first batch of a history; the first row has a null in this column."""
    with pa.ipc.open_stream(path.read_bytes()) as reader:
        batch = reader.read_next_batch()
    number = batch.schema.get_field_index(column)
    values = [None, *batch.column(number).to_pylist()[1:]]
    columns = [*batch.columns[:number], pa.array(values, batch.schema.field(number).type), *batch.columns[number + 1 :]]
    with pa.ipc.new_stream(path, batch.schema) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
