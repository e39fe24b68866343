"""Spark's Python Data Sources over the evidence. Owns how files become DataFrames: one partition per file.

``gapless-segments`` reads ``.log`` files through ``verifier.segments``, ``gapless-histories`` reads history files
through ``verifier.evidence.history``, ``gapless-files`` what stands beside the logs through ``verifier.files``. The
bytes never cross the JVM; what crosses is one Arrow row per run. ``verifier.staging`` is how evidence on this machine
is read instead, by the very same generators of rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import READ_SCHEMA, history_file, read_history
from verifier.files import rows as file_rows
from verifier.files.replica import ReplicaDirectory
from verifier.segments import rows

_SPARK_TYPES = {"string": "string", "int32": "int", "int64": "bigint"}

#: The history's columns, the run, and the file's name. One row per file has ``f`` = ``"file"`` and as ``type``
#: ``closed`` (a proper end), ``torn`` (cut off, ``last_sequence`` torn bytes) or ``damaged`` (``error`` says how).
HISTORY_COLUMNS = {"run": "string", "file": "string"} | {
    field.name: _SPARK_TYPES[str(field.type)] for field in READ_SCHEMA
}
#: The same for Arrow. Spark wants its columns nullable and without metadata, and takes nothing else.
HISTORY_SCHEMA = pa.schema(
    [pa.field("run", pa.string()), pa.field("file", pa.string())]
    + [pa.field(field.name, field.type) for field in READ_SCHEMA]
)


class HistoryFilePath(NamedTuple):
    """One history file of one run."""

    run: str
    path: str


class _Items(InputPartition):  # type: ignore[misc]
    """Files to read one after the other; ``value`` is a list with the fields of each."""


class SegmentSource(DataSource):  # type: ignore[misc]
    """Option ``files``: a JSON list of parts, each a list of ``SegmentFile`` as lists."""

    @classmethod
    def name(cls) -> str:
        return "gapless-segments"

    def schema(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in rows.COLUMNS.items())

    def reader(self, schema: Any) -> DataSourceReader:
        return _SegmentReader(self.options["files"])


class HistorySource(DataSource):  # type: ignore[misc]
    """Option ``files``: a JSON list of parts, each a list of ``HistoryFilePath`` as lists."""

    @classmethod
    def name(cls) -> str:
        return "gapless-histories"

    def schema(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in HISTORY_COLUMNS.items())

    def reader(self, schema: Any) -> DataSourceReader:
        return _HistoryReader(self.options["files"])


class FileSource(DataSource):  # type: ignore[misc]
    """Option ``files``: a JSON list of parts, each a list of ``ReplicaDirectory`` as lists."""

    @classmethod
    def name(cls) -> str:
        return "gapless-files"

    def schema(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in file_rows.COLUMNS.items())

    def reader(self, schema: Any) -> DataSourceReader:
        return _ReplicaReader(self.options["files"])


class _FileReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, files: str) -> None:
        self._files = files

    def partitions(self) -> Sequence[InputPartition]:
        return [_Items(part) for part in json.loads(self._files)]


class _SegmentReader(_FileReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for fields in partition.value:
            yield from rows.read_segment(rows.SegmentFile(*fields))


class _HistoryReader(_FileReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for fields in partition.value:
            yield from history_rows(HistoryFilePath(*fields))


class _ReplicaReader(_FileReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for fields in partition.value:
            yield file_rows.read_replica(ReplicaDirectory(*fields))


def history_rows(file: HistoryFilePath) -> Iterator[pa.RecordBatch]:
    """All rows of one history and the row that says how the file ended."""
    name = Path(file.path).name
    try:
        table = read_history(file.path)
        state = history_file(table)
    except (HistoryError, OSError) as error:
        yield _state_row(file, "damaged", Path(file.path).stem, str(error))
        return
    for batch in table.to_batches():
        whose = [pa.array([value] * batch.num_rows, pa.string()) for value in (file.run, name)]
        yield pa.RecordBatch.from_arrays([*whose, *batch.columns], schema=HISTORY_SCHEMA)
    yield _state_row(file, "closed" if state.closed else "torn", state.process, None, state.torn_bytes)


def _state_row(
    file: HistoryFilePath, state: str, process: str, error: str | None, torn_bytes: int = 0
) -> pa.RecordBatch:
    row: dict[str, Any] = {name: "" if kind == "string" else -1 for name, kind in HISTORY_COLUMNS.items()}
    row |= {"run": file.run, "file": Path(file.path).name, "process": process, "f": "file", "type": state}
    row |= {"error": error, "last_sequence": torn_bytes}
    return pa.RecordBatch.from_pylist([row], schema=HISTORY_SCHEMA)


def register(spark: SparkSession) -> None:
    """Make the sources known to a session."""
    spark.dataSource.register(SegmentSource)
    spark.dataSource.register(HistorySource)
    spark.dataSource.register(FileSource)


def load_segments(spark: SparkSession, files: Sequence[rows.SegmentFile], parts: int = 1) -> DataFrame:
    """All rows of these segments (``verifier.segments.rows``), read by Spark's workers in at most ``parts`` parts.

    A long run has thousands of small segments, and a part each would cost more than reading them. They are dealt out
    one by one, so that every part has its share of each replica.
    """
    dealt = [files[number::parts] for number in range(min(parts, len(files)))]
    return spark.read.format(SegmentSource.name()).option("files", json.dumps(dealt)).load()


def load_files(spark: SparkSession, replicas: Sequence[ReplicaDirectory], parts: int = 1) -> DataFrame:
    """All rows of the files beside these replicas' logs (``verifier.files.rows``), in at most ``parts`` parts."""
    dealt = [replicas[number::parts] for number in range(min(parts, len(replicas)))]
    return spark.read.format(FileSource.name()).option("files", json.dumps(dealt)).load()


def load_histories(spark: SparkSession, files: Sequence[HistoryFilePath]) -> DataFrame:
    """All rows of these histories (``HISTORY_COLUMNS``), read by Spark's workers: one part per file."""
    return spark.read.format(HistorySource.name()).option("files", json.dumps([[file] for file in files])).load()
