"""Turns a history file into the Arrow rows of the verifier's table of histories. Owns its columns; judges nothing.

The table has one row for each row of the file, and one more that says how the file ended. This module does not load
Spark, because processes without Spark use it to read files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import READ_SCHEMA, scan_history

_SPARK_TYPES = {"string": "string", "int32": "int", "int64": "bigint"}

#: Column -> Spark type: the run, the file's name, and the columns of the history. One row per file has ``f`` =
#: ``"file"``. Its ``type`` is ``closed`` (a proper end), ``torn`` (cut off, with ``last_sequence`` torn bytes) or
#: ``damaged`` (``error`` says how).
HISTORY_COLUMNS = {"run": "string", "file": "string"} | {
    field.name: _SPARK_TYPES[str(field.type)] for field in READ_SCHEMA
}
#: The same columns for Arrow. Spark accepts only columns that are nullable and have no metadata.
HISTORY_SCHEMA = pa.schema(
    [pa.field("run", pa.string()), pa.field("file", pa.string())]
    + [pa.field(field.name, field.type) for field in READ_SCHEMA]
)


class HistoryFilePath(NamedTuple):
    """One history file of one run."""

    run: str
    path: str


def history_rows(file: HistoryFilePath) -> Iterator[pa.RecordBatch]:
    """All rows of one history, then the row that says how the file ended. Damage is reported there, not raised."""
    name = Path(file.path).name
    try:
        state, tables = scan_history(file.path)
    except (HistoryError, OSError) as error:
        yield _state_row(file, "damaged", Path(file.path).stem, str(error))
        return
    for table in tables:
        for batch in table.to_batches():
            whose = [pa.repeat(pa.scalar(value, pa.string()), batch.num_rows) for value in (file.run, name)]
            yield pa.RecordBatch.from_arrays([*whose, *batch.columns], schema=HISTORY_SCHEMA)
    yield _state_row(file, "closed" if state.closed else "torn", state.process, None, state.torn_bytes)


def _state_row(
    file: HistoryFilePath, state: str, process: str, error: str | None, torn_bytes: int = 0
) -> pa.RecordBatch:
    row: dict[str, Any] = {name: "" if kind == "string" else -1 for name, kind in HISTORY_COLUMNS.items()}
    row |= {"run": file.run, "file": Path(file.path).name, "process": process, "f": "file", "type": state}
    row |= {"error": error, "last_sequence": torn_bytes}
    return pa.RecordBatch.from_pylist([row], schema=HISTORY_SCHEMA)
