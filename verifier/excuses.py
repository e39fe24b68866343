"""Which event in the evidence excuses which anomalous value. Owns the questions to Spark; what the settings permit is

``verifier.expectation``'s matter. An excuse is one of these, and each is a stretch of sequences of one stream:

- ``election``   an acknowledgement at or above the start of a later leader epoch in the final log, acknowledged before
  its stream had any record in that epoch, near the time at which the epoch began (``verifier.witness``). One without an
  offset (acks=0) must lie, in its stream, between the last record that stands in an earlier epoch and the first in this
  one or a later.
- ``disconnect`` an acknowledgement without an offset of what was handed over about when the client lost a connection,
  or when a fault of the harness broke those of producers (``CONNECTION_NS`` before and after).
- ``retry``      sequences that the client sent again, or may have, by its own account.
- ``timeout``    sequences that were outstanding when a delivery of their stream timed out (``TIMEOUT_NS`` around it).

A lost value is excused if all its acknowledgements are; an offset, if all are that contradict the log there. What is
excused in part is cut: the parts are counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from threading import RLock

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier.checks.common import COLUMNS
from verifier.claims import ACK, LOG, READ, cut, pieces, well_formed
from verifier.evidence.run_model import RunSettings
from verifier.expectation import DISCONNECT, ELECTION, RETRY, TIMEOUT
from verifier.tables import Tables
from verifier.witness import CONNECTION_NS, Election, EpochStart, Witness

#: The error of a delivery after which librdkafka may send again under a new producer epoch, by its own name.
TIMED_OUT = "^_MSG_TIMED_OUT"
TIMEOUT_NS = 1_000_000_000

#: The identity of a claim: by how much its offset is ahead of its sequence; this one if its offset is unknown.
NO_OFFSET = -(2**62)

_LOST = ("lost-write", "log-gap")
_AT_OFFSETS = "inconsistent-offsets"
_CLAIM, _STANDS = "claim", "log"
_EVENT = "at_ns bigint, epoch int, start_offset bigint, first bigint, last bigint, text string"
_WHOLE = ("cause", "sequence", "offset", "count", "size", "detail")


@dataclass(frozen=True, slots=True)
class Grounds:
    """What events of one run are judged by."""

    settings: RunSettings
    witness: Witness


class Excuses:
    """The events of all runs that are judged together. Nothing is asked before something needs to be excused."""

    def __init__(self, spark: SparkSession, tables: Tables, grounds: Mapping[str, Grounds]) -> None:
        self._spark = spark
        self._tables = tables
        self._grounds = grounds
        self._lock = RLock()

    def split(self, check: str, found: DataFrame) -> DataFrame:
        """A check's anomalies with ``excuse`` (null: none), its ``event``, and ``step``: how far into the anomaly that

        was found this part begins. Those without a value or an offset to go by are never excused.
        """
        with self._lock:
            if check == _AT_OFFSETS:
                return self._at_offsets(found)
            judgeable = F.col("stream").isNotNull() & F.col("sequence").isNotNull()
            return self._by_sequence(check, found.filter(judgeable)).unionByName(unexcused(found.filter(~judgeable)))

    def _by_sequence(self, check: str, found: DataFrame) -> DataFrame:
        key = ["place", "stream"]
        concerned = F.broadcast(found.select(*key).distinct())
        length = F.col("size") if check == "log-gap" else F.col("count")
        claims = self._tables.claims.filter(F.col("stream").isNotNull())
        source = ACK if check in _LOST else READ
        rows = [
            _rows(found, "sequence", length, whole=F.struct(*_WHOLE)),
            _rows(claims.filter(F.col("source") == source), "sequence", F.col("values"), _CLAIM),
            _rows(claims.filter(F.col("source") == LOG), "sequence", F.col("values"), _STANDS),
            *(self._events(kind, "sequence") for kind in self._kinds(check)),
        ]
        together = reduce(DataFrame.unionByName, rows).join(concerned, key, "left_semi")
        parts = _judged(_pieces(together, key, "sequence"), check)
        step = F.col("sequence") - F.col("whole.sequence")
        if check != "log-gap":
            return _result(parts, step, F.col("values"), F.col("whole.size"))
        # one anomaly is a whole stretch: what is excused of it, and what is not, is one each
        grouped = parts.groupBy(*key, "whole", "excuse").agg(
            F.min("sequence").alias("sequence"),
            F.sum("values").alias("values"),
            F.min_by("event", "sequence").alias("event"),
            F.max(F.col("sequence") + F.col("values") - 1).alias("last_sequence"),
        )
        detail = F.to_json(F.struct("last_sequence"))
        return _result(grouped, step, F.lit(1), F.col("values"), detail)

    def _at_offsets(self, found: DataFrame) -> DataFrame:
        key = ["place"]
        concerned = F.broadcast(found.select(*key).distinct())
        claims = self._tables.claims.filter(F.col("offset").isNotNull() & F.col("stream").isNotNull())
        rows = [
            _rows(found.drop("stream"), "offset", F.col("count"), whole=F.struct(*_WHOLE)),
            _rows(claims.filter(F.col("source").isin(ACK, READ)), "offset", F.col("values"), _CLAIM),
            _rows(claims.filter(F.col("source") == LOG), "offset", F.col("values"), _STANDS),
            self._events(ELECTION, "offset"),
        ]
        together = reduce(DataFrame.unionByName, rows).join(concerned, key, "left_semi")
        parts = _judged(_pieces(together, key, "offset"), _AT_OFFSETS).withColumn("stream", F.lit(None).cast("bigint"))
        return _result(parts, F.col("offset") - F.col("whole.offset"), F.col("values"), F.col("whole.size"))

    def _kinds(self, check: str) -> tuple[str, ...]:
        return (ELECTION, DISCONNECT) if check in _LOST else (ELECTION, RETRY, TIMEOUT)

    def _events(self, kind: str, first: str) -> DataFrame:
        frames = {
            ELECTION: self._cut_off,
            DISCONNECT: self._disconnected,
            RETRY: self._retried,
            TIMEOUT: self._timed_out,
        }
        frame = frames[kind]
        if first == "offset":
            frame = frame.filter(F.col("offset").isNotNull())
        return _rows(frame, first, F.col("values"), kind, event=F.col("event"))

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
    def _elections(self) -> DataFrame:
        """The elections that the conductor saw too, with the time within which each can have cut something off."""
        acks = self._told.filter(F.col("f") == "send")
        before = acks.join(F.broadcast(self._epochs), "place").filter(F.col("first_offset") < F.col("start_offset"))
        after = acks.join(self._standing, ["place", "stream"]).filter(F.col("first_sequence") >= F.col("first_in"))
        key = ["place", "epoch"]
        bounds = self._epochs.join(before.groupBy(*key).agg(F.max("invoke_ns").alias("earliest_ns")), key, "left").join(
            after.groupBy(*key).agg(F.min("complete_ns").alias("latest_ns")), key, "left"
        )
        rows = []
        for row in bounds.collect():
            place = self._tables.places[row["place"]]
            grounds = self._grounds[place.run]
            start = EpochStart(row["epoch"], row["start_offset"], row["earliest_ns"], row["latest_ns"])
            election = grounds.witness.election(place.final.partition, start, grounds.settings)
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
        last = F.least(F.col("last_sequence"), F.col("first_in") - 1)
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
        rows = [
            {"place": number, "from_ns": span.start_ns, "until_ns": span.end_ns, "text": f"the fault {span.fault}"}
            for number, place in enumerate(self._tables.places)
            for span in self._grounds[place.run].witness.spans
            if span.connections
        ]
        fields: list[tuple[str, pa.DataType]] = [
            ("place", pa.int32()),
            ("from_ns", pa.int64()),
            ("until_ns", pa.int64()),
            ("text", pa.string()),
        ]
        faults = self._spark.createDataFrame(pa.Table.from_pylist(rows, schema=pa.schema(fields)))
        lost = self._tables.history.filter((F.col("f") == "disconnect") & (F.col("complete_ns") >= 0)).select(
            "place", "stream", F.col("invoke_ns").alias("from_ns"), F.col("complete_ns").alias("until_ns"),
            F.col("error").alias("text"),
        )  # fmt: skip
        sent = self._told.filter((F.col("f") == "send") & F.col("first_offset").isNull())
        near = (F.col("invoke_ns") <= F.col("until_ns") + CONNECTION_NS) & (
            F.col("complete_ns") >= F.col("from_ns") - CONNECTION_NS
        )
        by_client = sent.join(F.broadcast(lost), ["place", "stream"]).filter(near)
        by_fault = sent.join(F.broadcast(faults), "place").filter(near)
        columns = ["place", "stream", "first_sequence", "last_sequence"]
        event = _event(F.col("from_ns"), text=F.col("text"))
        both = by_client.select(*columns, event).unionByName(by_fault.select(*columns, event))
        return _ranges(both.groupBy(*columns).agg(F.min("event").alias("event")))

    @cached_property
    def _retried(self) -> DataFrame:
        retries = self._tables.history.filter((F.col("f") == "retry") & (F.col("stream") >= 0) & well_formed())
        first, last = F.col("first_sequence"), F.col("last_sequence")
        event = _event(F.col("complete_ns"), first=first, last=last, text=F.col("error"))
        return _ranges(retries.withColumn("event", event))

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


def unexcused(found: DataFrame) -> DataFrame:
    """Anomalies of which none is excused, with the columns of ``Excuses.split``."""
    return found.select(
        *COLUMNS,
        F.lit(None).cast("string").alias("excuse"),
        F.lit(None).cast(f"struct<{_EVENT.replace(' ', ':').replace(',:', ',')}>").alias("event"),
        F.lit(0).cast("bigint").alias("step"),
    )


def _event(
    at_ns: Column,
    epoch: Column | None = None,
    start_offset: Column | None = None,
    *,
    first: Column | None = None,
    last: Column | None = None,
    text: Column | None = None,
) -> Column:
    values = (at_ns, epoch, start_offset, first, last, text)
    fields = zip(values, (each.split(" ") for each in _EVENT.split(", ")), strict=True)
    return F.struct(
        *((F.lit(None) if value is None else value).cast(kind).alias(name) for value, (name, kind) in fields)
    ).alias("event")


def _ranges(frame: DataFrame) -> DataFrame:
    """Stretches of sequences, whatever the offset."""
    return frame.select(
        "place", "stream", F.col("first_sequence").alias("sequence"), F.lit(None).cast("bigint").alias("offset"),
        (F.col("last_sequence") - F.col("first_sequence") + 1).alias("values"), "event",
    )  # fmt: skip


def _rows(
    frame: DataFrame,
    first: str,
    length: Column,
    kind: str | None = None,
    *,
    whole: Column | None = None,
    event: Column | None = None,
) -> DataFrame:
    """Anomalies (``whole``), claims and events in the one shape that is cut into pieces.

    ``who`` says which claim it is, or which claim an event excuses.
    """
    anomaly = "struct<cause:string,sequence:bigint,offset:bigint,count:bigint,size:bigint,detail:string>"
    nothing = f"struct<{_EVENT.replace(' ', ':').replace(',:', ',')}>"
    shift = F.coalesce(F.col("offset") - F.col("sequence"), F.lit(NO_OFFSET)).cast("string")
    who = shift if first == "sequence" else F.concat_ws("/", "stream", shift)
    keys = ["place", "stream"] if first == "sequence" else ["place"]
    return frame.select(
        *keys,
        F.col(first).alias(first),
        length.cast("bigint").alias("values"),
        F.lit(kind).cast("string").alias("kind"),
        (F.lit(None).cast("string") if whole is not None else who).alias("who"),
        (F.lit(None) if whole is None else whole).cast(anomaly).alias("whole"),
        (F.lit(None) if event is None else event).cast(nothing).alias("event"),
    )


def _pieces(together: DataFrame, key: list[str], first: str) -> DataFrame:
    def who(*kinds: str) -> Column:
        return F.collect_set(F.when(F.col("kind").isin(*kinds), F.col("who")))

    return pieces(
        cut(together, key, first),
        key,
        first,
        F.max("whole").alias("whole"),
        who(_CLAIM).alias("claimed"),
        who(_STANDS).alias("stands"),
        *(who(kind).alias(f"who_{kind}") for kind in (ELECTION, DISCONNECT)),
        *(
            F.min(F.when(F.col("kind") == kind, F.col("event"))).alias(kind)
            for kind in (ELECTION, DISCONNECT, RETRY, TIMEOUT)
        ),
    ).filter(F.col("whole").isNotNull())


def _judged(parts: DataFrame, check: str) -> DataFrame:
    """The pieces with ``excuse`` and ``event``: the first that holds, of those that may hold for this check."""
    strays = F.array_except("claimed", "stands")

    def all_in(excused: Column) -> Column:
        return (F.size(strays) > 0) & (F.size(F.array_except(strays, excused)) == 0)

    elected = all_in(F.col(f"who_{ELECTION}"))
    lost = all_in(F.array_union(f"who_{ELECTION}", f"who_{DISCONNECT}"))
    vanished = (F.col("whole.cause") == "vanished") & elected
    timed_out, retried = F.col(TIMEOUT).isNotNull(), F.col(RETRY).isNotNull()
    # what librdkafka sends again after a timeout is known by its cause
    resent = F.coalesce(F.col("whole.cause") == "client-resend-after-error", F.lit(False)) & timed_out
    if check in _LOST:
        excuse = F.when(elected, ELECTION).when(lost, DISCONNECT)
    elif check == _AT_OFFSETS:
        excuse = F.when(elected, ELECTION)
    else:
        excuse = F.when(vanished, ELECTION).when(resent, TIMEOUT).when(retried, RETRY).when(timed_out, TIMEOUT)
    event = reduce(
        lambda column, kind: column.when(F.col("excuse") == kind, F.col(kind)),
        (DISCONNECT, RETRY, TIMEOUT),
        F.when(F.col("excuse") == ELECTION, F.col(ELECTION)),
    )
    return parts.withColumn("excuse", excuse).withColumn("event", event)


def _result(parts: DataFrame, step: Column, count: Column, size: Column, detail: Column | None = None) -> DataFrame:
    return parts.select(
        "place",
        F.col("whole.cause").alias("cause"),
        "stream",
        (F.col("whole.sequence") + step).alias("sequence"),
        (F.col("whole.offset") + step).alias("offset"),
        count.cast("bigint").alias("count"),
        size.cast("bigint").alias("size"),
        (F.col("whole.detail") if detail is None else detail).alias("detail"),
        "excuse",
        "event",
        step.cast("bigint").alias("step"),
    )
