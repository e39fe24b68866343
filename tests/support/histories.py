"""All histories of a run as one table, for tests that look at rows. The verifier reads each file in parts."""

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
