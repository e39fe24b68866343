"""The events that may excuse an anomaly, as Spark tables: stretches of sequences of one stream. Judges nothing.

``verifier.excuses`` defines the kinds. Every table has place, stream, ``sequence`` (the first), ``offset`` (of the
first, null if it is not known or does not matter), ``values`` (how many), and ``event``, from which it is described.

A worked example, of stream 7. Epoch 3 begins at offset 100 of the final log, which has sequences 0 to 49 of the stream
below and 60 to 80 above; the conductor saw it begin about 12.0 s. A row says that sequences 45 to 55 were acknowledged
at offsets 97 to 107, at 11.8 s. Offset 100 is that of sequence 48, and so 48 to 55 become an ``election`` row: sequence
48, offset 100, 8 values. Had the row no offsets (acks=0), it would be 50 to 55: behind 49, which stands in an earlier
epoch, and before 60, which stands in this one.

How far up can a log that was cut off have reached? Offsets are dense: each of its tail is taken by one attempt to send
a record, and an attempt is stored at most once, there or in the final log. So the tails of all logs that were cut off
hold no more than all attempts (the records that were handed over, and those of each retry) less the records that stand
in the final log. If 1,000 records were handed over, 20 of them sent again, and 970 stand in the log, then 50 attempts
are left: what was acknowledged at offset 150 or above was not cut off at 100, whatever the broker said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from verifier.claims import well_formed
from verifier.evidence.run_model import RunSettings
from verifier.evidence.values import SENTINEL_STREAM
from verifier.expectation import DISCONNECT, ELECTION, RETRY
from verifier.tables import Tables
from verifier.witness import CLOSED_NS, CONNECTION_NS, SLACK_NS, Election, EpochStart, Span, Witness

#: The error of a delivery after which librdkafka may send again under a new producer epoch, by its own name.
TIMED_OUT = "^_MSG_TIMED_OUT"
TIMEOUT_NS = 1_000_000_000

#: The fields of ``event``; ``at_ns`` comes first, so that the least of several is the earliest. Retries that overlap
#: are one ``bout``, by its first sequence; ``most`` is how many records their attempts had together.
EVENT = (
    "struct<at_ns:bigint,epoch:int,start_offset:bigint,first:bigint,last:bigint,text:string,bout:bigint,most:bigint>"
)


@dataclass(frozen=True, slots=True)
class Grounds:
    """What events of one run are judged by."""

    settings: RunSettings
    witness: Witness


class Events:
    """The events of all runs that are judged together, each kind made when it is first asked for. For one thread."""

    def __init__(self, spark: SparkSession, tables: Tables, grounds: Mapping[str, Grounds]) -> None:
        self._spark = spark
        self._tables = tables
        self.grounds = grounds
        self._known: dict[str, DataFrame] = {}

    def of(self, kind: str) -> DataFrame:
        """All events of a kind (``verifier.expectation.EXCUSES``). Several checks ask, and events are few: kept."""
        if kind not in self._known:
            self._known[kind] = self._made(kind).coalesce(1).cache()
        return self._known[kind]

    def close(self) -> None:
        """Give back what is kept."""
        for frame in self._known.values():
            frame.unpersist()

    def _made(self, kind: str) -> DataFrame:
        if kind == ELECTION:
            return self._cut_off
        if kind == DISCONNECT:
            return self._disconnected
        return self._retried if kind == RETRY else self._timed_out

    @cached_property
    def _told(self) -> DataFrame:
        """What producers and live readers were told, with offsets where there are any. Sentinels have acks=all."""
        history = self._tables.history
        sends, polls = F.col("f") == "send", (F.col("f") == "poll") & (F.col("phase") == "load")
        told = history.filter((sends | polls) & (F.col("type") == "ok") & (F.col("stream") >= 0) & well_formed())
        return told.select(
            "place", "stream", "f", "first_sequence", "last_sequence", "invoke_ns", "complete_ns",
            F.when(F.col("first_offset") >= 0, F.col("first_offset")).alias("first_offset"),
        )  # fmt: skip

    @cached_property
    def _standing(self) -> DataFrame:
        """By election and stream: the first sequence that stands in its epoch or a later one, the last before."""
        log = self._tables.log.filter(F.col("stream").isNotNull())
        last = F.col("first_sequence") + F.col("last_offset") - F.col("first_offset")
        mine = log.groupBy("place", "stream", "leader_epoch").agg(
            F.min("first_sequence").alias("lowest"), F.max(last).alias("highest")
        )
        epochs = F.broadcast(self._epochs.select("place", "epoch"))
        later = F.col("leader_epoch") >= F.col("epoch")
        return (
            mine.join(epochs, "place")
            .groupBy("place", "stream", "epoch")
            .agg(
                F.min(F.when(later, F.col("lowest"))).alias("first_in"),
                F.max(F.when(~later, F.col("highest"))).alias("last_before"),
            )
        )

    @cached_property
    def _epochs(self) -> DataFrame:
        """Every leader epoch of the final leader's logs, and the first offset at which it or a later one stands."""
        batches = self._tables.segments.filter(
            F.col("is_leader") & (F.col("kind") == "batch") & (F.col("base_offset") < F.col("limit"))
        )
        epochs = batches.groupBy("place", F.col("leader_epoch").alias("epoch")).agg(F.min("base_offset").alias("start"))
        later = epochs.select("place", F.col("epoch").alias("other"), F.col("start").alias("other_start"))
        return (
            epochs.join(later, "place")
            .filter(F.col("other") >= F.col("epoch"))
            .groupBy("place", "epoch")
            .agg(F.min("other_start").alias("start_offset"))
            .cache()
        )

    @cached_property
    def _left_over(self) -> DataFrame:
        """By place, how many attempts to send a record left none in the final log: ``left_over``, at least 0.

        What was reserved counts as handed over unless it is known that it never was, so that nothing is missed of a
        process that was killed. Each sentinel row is an attempt; of what is reserved for sentinels most is never used.
        """
        history = self._tables.history
        sequences, of_load = F.col("last_sequence") - F.col("first_sequence") + 1, F.col("stream") < SENTINEL_STREAM
        attempts = (
            F.when((F.col("f") == "reserve") & of_load, sequences)
            .when(F.col("f") == "sentinel", sequences)
            .when((F.col("f") == "unsent") & of_load, -sequences)
            .when(F.col("f") == "retry", F.greatest("count", F.lit(0)))
        )
        known = (F.col("f") == "retry") | well_formed()
        attempted = history.filter(known).groupBy("place").agg(F.sum(attempts).alias("attempts"))
        standing = self._tables.log.filter(F.col("stream").isNotNull()).groupBy("place")
        stored = standing.agg(F.sum(F.col("last_offset") - F.col("first_offset") + 1).alias("stored"))
        left_over = F.coalesce("attempts", F.lit(0)) - F.coalesce("stored", F.lit(0))
        return attempted.join(stored, "place", "left").select(
            "place", F.greatest(left_over, F.lit(0)).alias("left_over")
        )

    @cached_property
    def _elections(self) -> DataFrame:
        """The elections that the conductor saw too, with the time within which each can have cut something off."""
        acks = self._told.filter(F.col("f") == "send")
        before = acks.join(F.broadcast(self._epochs), "place").filter(F.col("first_offset") < F.col("start_offset"))
        after = acks.join(self._standing, ["place", "stream"]).filter(F.col("first_sequence") >= F.col("first_in"))
        key = ["place", "epoch"]
        bounds = self._epochs.join(before.groupBy(*key).agg(F.max("invoke_ns").alias("earliest_ns")), key, "left").join(
            after.groupBy(*key).agg(F.min("complete_ns").alias("latest_ns")), key, "left"
        )
        bounds = bounds.join(self._left_over, "place")
        rows = []
        for row in bounds.collect():
            place = self._tables.places[row["place"]]
            grounds = self.grounds[place.run]
            end_offset = row["start_offset"] + row["left_over"]
            start = EpochStart(row["epoch"], row["start_offset"], end_offset, row["earliest_ns"], row["latest_ns"])
            final = place.final
            election = grounds.witness.election(final.topic, final.partition, start, grounds.settings)
            if election is not None:
                rows.append({"place": row["place"], **election._asdict()})
        fields: list[tuple[str, pa.DataType]] = [("place", pa.int32()), ("epoch", pa.int32())]
        fields += [(name, pa.int64()) for name in Election._fields if name != "epoch"]
        return self._spark.createDataFrame(pa.Table.from_pylist(rows, schema=pa.schema(fields)))

    @cached_property
    def _cut_off(self) -> DataFrame:
        near = F.col("complete_ns").between(F.col("from_ns"), F.col("until_ns"))
        of_elections = self._told.join(F.broadcast(self._elections), "place").filter(near)
        known = of_elections.join(self._standing, ["place", "stream", "epoch"], "left")
        has_offset = F.col("first_offset").isNotNull()
        at_start = F.col("first_sequence") + F.greatest(F.col("start_offset") - F.col("first_offset"), F.lit(0))
        after_last = F.greatest(F.col("first_sequence"), F.coalesce(F.col("last_before") + 1, F.lit(0)))
        first = F.when(has_offset, at_start).otherwise(after_last)
        below_end = F.when(has_offset, F.col("first_sequence") + F.col("end_offset") - F.col("first_offset") - 1)
        last = F.least(F.col("last_sequence"), F.col("first_in") - 1, below_end)
        return (
            known.withColumns({"sequence": first, "last": last})
            .filter(F.col("sequence") <= F.col("last"))
            .withColumn("offset", F.col("first_offset") + F.col("sequence") - F.col("first_sequence"))
            .select(
                "place", "stream", "sequence", "offset", (F.col("last") - F.col("sequence") + 1).alias("values"),
                _event(F.col("about_ns"), F.col("epoch"), F.col("start_offset")),
            )
        )  # fmt: skip

    @cached_property
    def _disconnected(self) -> DataFrame:
        """What was acknowledged without an offset, and may have been under way when its client lost a connection.

        It was handed over before the client noted the loss, ``at``. It was acknowledged, that is sent, about then; or
        earlier, if a fault that lasted until then may have held it up: one between producers and the leader.
        """
        rows = [
            {"place": number, "from_ns": span.start_ns, "until_ns": span.end_ns + SLACK_NS, "while": _named(span)}
            for number, place in enumerate(self._tables.places)
            for span in self.grounds[place.run].witness.held(place.final.topic, place.final.partition)
        ]
        fields: list[tuple[str, pa.DataType]] = [("place", pa.int32()), ("while", pa.string())]
        fields += [(name, pa.int64()) for name in ("from_ns", "until_ns")]
        faults = self._spark.createDataFrame(pa.Table.from_pylist(rows, schema=pa.schema(fields)))
        lost = self._tables.history.filter((F.col("f") == "disconnect") & (F.col("complete_ns") >= 0)).select(
            "place", "stream", F.col("complete_ns").alias("at"), F.col("error").alias("text")
        )
        alone = lost.withColumn("from_ns", F.col("at") - CONNECTION_NS)
        # an ``unsent`` row is written when the client is closed
        ended = self._tables.history.filter((F.col("f") == "unsent") & (F.col("complete_ns") >= 0)).select(
            "place", "stream", F.col("complete_ns").alias("at"), F.lit("its producer was closed").alias("text"),
            (F.col("complete_ns") - CLOSED_NS).alias("from_ns"),
        )  # fmt: skip
        held = (
            lost.join(F.broadcast(faults), "place")
            .filter(F.col("at").between(F.col("from_ns"), F.col("until_ns")))
            .withColumn("text", F.concat_ws(", during ", "text", "while"))
            .select(*alone.columns)
        )
        sent = self._told.filter((F.col("f") == "send") & F.col("first_offset").isNull())
        near = (F.col("invoke_ns") <= F.col("at")) & F.col("complete_ns").between(
            F.col("from_ns"), F.col("at") + CONNECTION_NS
        )
        columns = ["place", "stream", "first_sequence", "last_sequence"]
        under_way = sent.join(F.broadcast(alone.unionByName(held).unionByName(ended)), ["place", "stream"]).filter(near)
        events = under_way.select(*columns, _event(F.col("at"), text=F.col("text")))
        return _ranges(events.groupBy(*columns).agg(F.min("event").alias("event")))

    @cached_property
    def _retried(self) -> DataFrame:
        """What the client sent again.

        Where librdkafka does not number its records, a range is all that may have been sent again, and only ``count``
        is certain: see ``verifier.excuses``.
        """
        retries = self._tables.history.filter((F.col("f") == "retry") & (F.col("stream") >= 0) & well_formed())
        first, last = F.col("first_sequence"), F.col("last_sequence")
        order = Window.partitionBy("place", "stream").orderBy("first_sequence", "last_sequence")
        before = F.max(last).over(order.rowsBetween(Window.unboundedPreceding, -1))
        apart = F.when(F.coalesce(first <= before, F.lit(False)), 0).otherwise(1)
        numbered = retries.withColumn("apart", apart).withColumn(
            "number", F.sum("apart").over(order.rowsBetween(Window.unboundedPreceding, 0))
        )
        together = Window.partitionBy("place", "stream", "number")
        bout = F.min(first).over(together)
        most = F.sum(F.greatest("count", F.lit(0))).over(together)
        event = _event(F.col("complete_ns"), first=first, last=last, text=F.col("error"), bout=bout, most=most)
        return _ranges(numbered.withColumn("event", event))

    @cached_property
    def _timed_out(self) -> DataFrame:
        sends = self._tables.history.filter((F.col("f") == "send") & (F.col("stream") >= 0) & well_formed())
        timeouts = sends.filter((F.col("type") == "info") & F.col("error").rlike(TIMED_OUT)).select(
            "place", "stream", F.col("complete_ns").alias("at"), F.col("error").alias("text")
        )
        outstanding = (F.col("invoke_ns") <= F.col("at") + TIMEOUT_NS) & (
            F.col("complete_ns") >= F.col("at") - TIMEOUT_NS
        )
        columns = ["place", "stream", "first_sequence", "last_sequence"]
        joined = sends.drop("error").join(timeouts, ["place", "stream"]).filter(outstanding)
        events = joined.select(*columns, _event(F.col("at"), text=F.col("text")))
        return _ranges(events.groupBy(*columns).agg(F.min("event").alias("event")))


def _event(
    at_ns: Column,
    epoch: Column | None = None,
    start_offset: Column | None = None,
    *,
    first: Column | None = None,
    last: Column | None = None,
    text: Column | None = None,
    bout: Column | None = None,
    most: Column | None = None,
) -> Column:
    values = (at_ns, epoch, start_offset, first, last, text, bout, most)
    fields = zip(values, EVENT.removeprefix("struct<").removesuffix(">").split(","), strict=True)
    parts = [(F.lit(None) if value is None else value, *field.split(":")) for value, field in fields]
    return F.struct(*(value.cast(kind).alias(name) for value, name, kind in parts)).alias("event")


def _named(span: Span) -> str:
    return f"{span.fault} ({span.target})"


def _ranges(frame: DataFrame) -> DataFrame:
    """Stretches of sequences, whatever the offset."""
    return frame.select(
        "place", "stream", F.col("first_sequence").alias("sequence"), F.lit(None).cast("bigint").alias("offset"),
        (F.col("last_sequence") - F.col("first_sequence") + 1).alias("values"), "event",
    )  # fmt: skip
