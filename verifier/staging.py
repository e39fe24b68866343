"""Evidence as Parquet files that Spark on this machine reads: written while Spark still starts. Owns no rows.

The rows are those of ``verifier.sources``, made by the very same generators. Spark's own workers cost six seconds of a
core to start, and what they read would be kept in the JVM with all its columns; from Parquet each query reads what
it asks for. What is read at a time is one segment or one history, so that a run of any length needs little memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from verifier.files.replica import ReplicaDirectory
from verifier.files.rows import SCHEMA as FILES_SCHEMA
from verifier.files.rows import read_replica
from verifier.segments import rows
from verifier.sources import HISTORY_SCHEMA, HistoryFilePath, history_rows

#: Rows are written together when there are so many: small groups cost each query their opening.
GROUP_ROWS = 200_000
#: Segments from one line of progress to the next.
TOLD_SEGMENTS = 500

Progress = Callable[[str], None]


class Abandoned(Exception):
    """Nobody waits for the files any more."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The three files."""

    segments: Path
    histories: Path
    files: Path


def stage(
    directory: Path,
    segments: Sequence[rows.SegmentFile],
    histories: Sequence[HistoryFilePath],
    replicas: Sequence[ReplicaDirectory] = (),
    progress: Progress = lambda _: None,
    abandoned: Event | None = None,
) -> Staged:
    """Write all rows below ``directory``, which is made. Raises ``OSError``, and ``Abandoned`` once that is set."""
    directory.mkdir(parents=True)
    staged = Staged(directory / "segments.parquet", directory / "histories.parquet", directory / "files.parquet")

    def wanted(files: Sequence[Any]) -> Iterator[Any]:
        for number, file in enumerate(files, start=1):
            if abandoned is not None and abandoned.is_set():
                raise Abandoned
            yield file
            if files is segments and number % TOLD_SEGMENTS == 0:
                progress(f"{number:,} of {len(files):,} segments are read")

    _write(staged.histories, HISTORY_SCHEMA, (batch for file in wanted(histories) for batch in history_rows(file)))
    _write(staged.segments, rows.SCHEMA, (batch for file in wanted(segments) for batch in rows.read_segment(file)))
    _write(staged.files, FILES_SCHEMA, (read_replica(replica) for replica in wanted(replicas)))
    return staged


def _write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    with contextlib.closing(pq.ParquetWriter(path, schema, write_statistics=False)) as writer:
        waiting: list[pa.RecordBatch] = []
        count = 0
        for batch in batches:
            waiting.append(batch)
            count += batch.num_rows
            if count >= GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(waiting, schema), row_group_size=GROUP_ROWS)
                waiting, count = [], 0
        writer.write_table(pa.Table.from_batches(waiting, schema), row_group_size=GROUP_ROWS)
