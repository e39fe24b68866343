"""Spark's Python Data Sources for the evidence. Owns how Spark's workers read files into DataFrames, part by part.

``gapless-segments`` reads ``.log`` files through ``verifier.segments``. ``gapless-histories`` reads history files
through ``verifier.spark.history_rows``. ``gapless-files`` reads the other files of a replica through
``verifier.files``. Only the Arrow rows reach the JVM, not the bytes of the files. Does not own the rows, and is not
used for evidence on this machine: ``verifier.spark.staging`` reads that with the same generators of rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from verifier.files import rows as file_rows
from verifier.files.replica import ReplicaDirectory
from verifier.segments import rows
from verifier.spark.history_rows import HISTORY_COLUMNS, HistoryFilePath, history_rows


def columns(named: Mapping[str, str]) -> str:
    """The columns as a Spark schema in DDL form."""
    return ", ".join(f"{name} {kind}" for name, kind in named.items())


class _Items(InputPartition):  # type: ignore[misc]
    """One part: files to read one after the other. ``value`` is a list with the fields of each file."""


class SegmentSource(DataSource):  # type: ignore[misc]
    """Option ``files``: a JSON list of parts, each a list of ``SegmentFile`` as lists."""

    @classmethod
    def name(cls) -> str:
        return "gapless-segments"

    def schema(self) -> str:
        return columns(rows.COLUMNS)

    def reader(self, schema: Any) -> DataSourceReader:
        return _SegmentReader(self.options["files"])


class HistorySource(DataSource):  # type: ignore[misc]
    """Option ``files``: a JSON list of parts, each a list of ``HistoryFilePath`` as lists."""

    @classmethod
    def name(cls) -> str:
        return "gapless-histories"

    def schema(self) -> str:
        return columns(HISTORY_COLUMNS)

    def reader(self, schema: Any) -> DataSourceReader:
        return _HistoryReader(self.options["files"])


class FileSource(DataSource):  # type: ignore[misc]
    """Option ``files``: a JSON list of parts, each a list of ``ReplicaDirectory`` as lists."""

    @classmethod
    def name(cls) -> str:
        return "gapless-files"

    def schema(self) -> str:
        return columns(file_rows.COLUMNS)

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


def register(spark: SparkSession) -> None:
    """Registers the three data sources with a session."""
    spark.dataSource.register(SegmentSource)
    spark.dataSource.register(HistorySource)
    spark.dataSource.register(FileSource)


def load_segments(spark: SparkSession, files: Sequence[rows.SegmentFile], parts: int = 1) -> DataFrame:
    """All rows of these segments (``verifier.segments.rows``), read by Spark's workers in at most ``parts`` parts.

    A long run has thousands of small segments, and one part for each would cost more than reading them. The segments
    are assigned to the parts in turn, so that every part gets some segments of each replica.
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
