"""What surrounds an anomaly: the copies, the batches before and after, who was told what. Owns two Spark queries.

Both take the few anomalies that were chosen as examples, never all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier.claims import well_formed
from verifier.facts import Found
from verifier.tables import Tables

_WANTED = pa.schema(
    [pa.field("example", pa.int32()), pa.field("place", pa.int32())]
    + [pa.field(name, pa.int64()) for name in ("wanted_stream", "wanted", "at")]
)

#: Lists in an example are cut at this length.
LONGEST_LIST = 8

_BATCH = (
    "broker", "segment", "position", "base_offset", "next_offset", "leader_epoch", "producer_id", "producer_epoch",
    "base_sequence", "record_count",
)  # fmt: skip

#: What is asked of the segments and of the histories, by the names in the report.
_FROM_LOG = ("copies", "value_at", "stream_before", "stream_after", "batch_at", "batch_before", "batch_after")
_FROM_HISTORY = ("acknowledged", "read", "claimed")


def with_context(spark: SparkSession, tables: Tables, chosen: Sequence[tuple[str, Found]]) -> list[tuple[str, Found]]:
    """The same examples (with the run of each), each with what is known around it in ``context``."""
    if not chosen:
        return []
    numbers = {(place.run, place.final.topic, place.final.partition): n for n, place in enumerate(tables.places)}
    rows = [
        {
            "example": index,
            "place": numbers[run, found.topic, found.partition],
            "wanted_stream": found.stream,
            "wanted": found.sequence,
            "at": found.offset,
        }
        for index, (run, found) in enumerate(chosen)
    ]
    wanted = F.broadcast(spark.createDataFrame(pa.Table.from_pylist(rows, schema=_WANTED)))
    context: dict[int, dict[str, Any]] = {index: {} for index in range(len(chosen))}
    for frame, names in ((_from_log(tables, wanted), _FROM_LOG), (_from_history(tables, wanted), _FROM_HISTORY)):
        for row in frame.collect():
            found_here = {name: json.loads(row[name]) for name in names if row[name] is not None}
            context[row["example"]] |= {name: value for name, value in found_here.items() if value}
    return [(run, replace(found, context=context[index])) for index, (run, found) in enumerate(chosen)]


def _json_list(members: Column, among: Column) -> Column:
    return F.to_json(F.slice(F.array_sort(F.collect_set(F.when(among, members))), 1, LONGEST_LIST))


def _nearest(members: Column, among: Column, order: Column, *, last: bool) -> Column:
    pick = F.max_by if last else F.min_by
    return F.to_json(pick(members, F.when(among, order)))


def _from_log(tables: Tables, wanted: DataFrame) -> DataFrame:
    """Copies of the value and its neighbors in the stream and in the log, all from the final leader's file."""
    here = tables.segments.filter(F.col("is_leader") & F.col("kind").isin("span", "batch"))
    joined = here.join(wanted, "place")
    span_offset = F.col("first_offset") + F.col("wanted") - F.col("first_sequence")
    same_stream = (F.col("kind") == "span") & (F.col("stream") == F.col("wanted_stream"))
    contains = same_stream & F.col("wanted").between(F.col("first_sequence"), F.col("last_sequence"))
    batch = F.struct(*_BATCH)
    copy = F.struct(span_offset.alias("offset"), *_BATCH)
    neighbor = F.struct("first_sequence", "last_sequence", "first_offset", "last_offset", *_BATCH)
    is_batch, at = F.col("kind") == "batch", F.col("at")
    value = F.struct("stream", (F.col("first_sequence") + at - F.col("first_offset")).alias("sequence"), *_BATCH)
    return joined.groupBy("example").agg(
        _json_list(copy, contains).alias("copies"),
        _nearest(
            neighbor, same_stream & (F.col("last_sequence") < F.col("wanted")), F.col("last_sequence"), last=True
        ).alias("stream_before"),
        _nearest(
            neighbor, same_stream & (F.col("first_sequence") > F.col("wanted")), F.col("first_sequence"), last=False
        ).alias("stream_after"),
        _json_list(value, (F.col("kind") == "span") & at.between(F.col("first_offset"), F.col("last_offset"))).alias(
            "value_at"
        ),
        _json_list(batch, is_batch & (F.col("base_offset") <= at) & (F.col("next_offset") > at)).alias("batch_at"),
        _nearest(batch, is_batch & (F.col("next_offset") <= at), F.col("next_offset"), last=True).alias("batch_before"),
        _nearest(batch, is_batch & (F.col("base_offset") > at), F.col("base_offset"), last=False).alias("batch_after"),
    )


def _from_history(tables: Tables, wanted: DataFrame) -> DataFrame:
    """What producers were told of the value and which readers were handed it; or, by offset, who claims what there."""
    rows = tables.history.filter(F.col("f").isin("send", "sentinel", "poll") & (F.col("type") == "ok") & well_formed())
    known = F.col("first_offset") >= 0
    by_value = (F.col("stream") == F.col("wanted_stream")) & F.col("wanted").between(
        F.col("first_sequence"), F.col("last_sequence")
    )
    by_offset = (
        F.col("wanted_stream").isNull() & known & F.col("at").between(F.col("first_offset"), F.col("last_offset"))
    )
    told = rows.join(wanted, "place").filter(by_value | by_offset)
    by_reader = F.col("f") == "poll"
    offset = F.when(known, F.col("first_offset") + F.col("wanted") - F.col("first_sequence")).alias("offset")
    sequence = (F.col("first_sequence") + F.col("at") - F.col("first_offset")).alias("sequence")
    ack = F.struct(offset, "process", "invoke_ns", "complete_ns", "producer_id", "producer_epoch", "incarnation")
    claim = F.struct("stream", sequence, F.when(by_reader, "read").otherwise("acknowledged").alias("how"), "process")
    return told.groupBy("example").agg(
        _json_list(ack, by_value & ~by_reader).alias("acknowledged"),
        _json_list(F.struct(offset, "process", "phase", "complete_ns"), by_value & by_reader).alias("read"),
        _json_list(claim, by_offset).alias("claimed"),
    )
