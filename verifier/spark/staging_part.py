"""Writes one part of the staged evidence: the rows of some files, as Parquet. Also the process that does this.

``python -m verifier.spark.staging_part`` reads one JSON object from stdin (``PartOrder``) and writes the part. On
stdout, it writes one JSON object per line: ``read`` with the number of files so far, and at the end ``done`` with the
total, or ``error``. It exits as soon as its stdin closes, so that it never outlives the verifier. Does not own the
rows: they come from ``verifier.segments.rows``, ``verifier.spark.history_rows`` and ``verifier.files.rows``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from verifier.files import rows as file_rows
from verifier.files.replica import ReplicaDirectory
from verifier.segments import rows
from verifier.spark.history_rows import HISTORY_SCHEMA, HistoryFilePath, history_rows

#: The rows in one Parquet row group. Each query has to open every group, so small groups are costly.
GROUP_ROWS = 200_000
#: A process reports its progress after this many files.
TOLD_FILES = 50

SEGMENTS, HISTORIES, FILES = "segments", "histories", "files"


class PartOrder(NamedTuple):
    """The files of one part. ``directory`` contains the directories ``segments``, ``histories`` and ``files``."""

    directory: str
    number: int
    segments: list[rows.SegmentFile]
    histories: list[HistoryFilePath]
    replicas: list[ReplicaDirectory]

    def to_json(self) -> str:
        return json.dumps(self)

    @classmethod
    def from_json(cls, text: str) -> PartOrder:
        directory, number, segments, histories, replicas = json.loads(text)
        return cls(
            directory,
            number,
            [rows.SegmentFile(*each) for each in segments],
            [HistoryFilePath(*each) for each in histories],
            [ReplicaDirectory(*each) for each in replicas],
        )


def write_part(order: PartOrder, read: Callable[[int], None]) -> int:
    """Writes the part's three Parquet files, and returns the number of files that were read.

    Before each file, calls ``read`` with the number so far. Raises ``OSError``, and whatever ``read`` raises.
    """
    count = 0

    def each(files: Iterable[Any], rows_of: Callable[[Any], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        nonlocal count
        for file in files:
            read(count)
            yield from rows_of(file)
            count += 1

    name = f"part-{order.number:03d}.parquet"
    _write(Path(order.directory) / HISTORIES / name, HISTORY_SCHEMA, each(order.histories, history_rows))
    _write(Path(order.directory) / SEGMENTS / name, rows.SCHEMA, each(order.segments, rows.read_segment))
    _write(Path(order.directory) / FILES / name, file_rows.SCHEMA, each(order.replicas, _replica_rows))
    return count


def _replica_rows(replica: ReplicaDirectory) -> Iterator[pa.RecordBatch]:
    yield file_rows.read_replica(replica)


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


def main() -> int:
    """Runs the process of one part. Returns its exit status."""
    # the other processes use the other cores
    pa.set_cpu_count(1)
    order = PartOrder.from_json(sys.stdin.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()

    def tell(**said: Any) -> None:
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()

    def read(count: int) -> None:
        if count % TOLD_FILES == 0:
            tell(read=count)

    try:
        tell(done=write_part(order, read))
    except (Exception, MemoryError) as error:
        tell(error=f"{type(error).__name__}: {error}", is_os_error=isinstance(error, OSError))
        return 1
    return 0


def _end_with_stdin() -> None:
    """Exits the process when its stdin closes."""
    # reads the descriptor, since a reader of the file object would hold a lock that the process needs to exit
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
