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

What readers were handed, and what batch headers say, has no value of its own to go by: it is excused as a whole, where
the conductor saw an election of its partition, or a retry into it is on record, whichever the settings ask for.

A lost value is excused if all its acknowledgements are; an offset, if all are that contradict the log there. What is
excused in part is cut: the parts are counted apart.
"""

from __future__ import annotations

from functools import reduce
from threading import RLock

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import COLUMNS
from verifier.claims import ACK, LOG, READ, cut, pieces
from verifier.events import EVENT, Events
from verifier.expectation import DISCONNECT, ELECTION, RETRY, TIMEOUT, Expectation
from verifier.tables import Tables

#: The identity of a claim: by how much its offset is ahead of its sequence; this one if its offset is unknown.
NO_OFFSET = -(2**62)

_LOST = ("lost-write", "log-gap")
_AT_OFFSETS = "inconsistent-offsets"
_REPEATED = ("duplicate", "log-duplicate", "nonmonotonic-send", "log-reorder")
_CLAIM, _STANDS = "claim", "log"
_WHOLE = ("cause", "sequence", "offset", "count", "size", "detail")


class Excuses:
    """The events of all runs that are judged together. Nothing is asked before something needs to be excused."""

    def __init__(self, tables: Tables, events: Events) -> None:
        self._tables = tables
        self._source = events
        self._lock = RLock()

    def split(self, check: str, found: DataFrame) -> DataFrame:
        """A check's anomalies with ``excuse`` (null: none), its ``event``, and ``step``: how far into the anomaly that

        was found this part begins. Those without a value or an offset to go by are never excused.
        """
        with self._lock:
            if check == _AT_OFFSETS:
                return self._at_offsets(found)
            if check not in (*_LOST, *_REPEATED):
                return self._by_partition(check, found)
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

    def _by_partition(self, check: str, found: DataFrame) -> DataFrame:
        retried = {row["place"] for row in self._source.of(RETRY).select("place").distinct().collect()}
        excuse = F.lit(None).cast("string")
        for number, place in enumerate(self._tables.places):
            grounds = self._source.grounds[place.run]
            asked = {each.excuse for each in Expectation(grounds.settings).allowances if each.check == check}
            if ELECTION in asked and grounds.witness.saw_election(place.final.partition):
                excuse = F.when(F.col("place") == number, ELECTION).otherwise(excuse)
            elif RETRY in asked and number in retried:
                excuse = F.when(F.col("place") == number, RETRY).otherwise(excuse)
        return unexcused(found).withColumn("excuse", excuse)

    def _kinds(self, check: str) -> tuple[str, ...]:
        return (ELECTION, DISCONNECT) if check in _LOST else (ELECTION, RETRY, TIMEOUT)

    def _events(self, kind: str, first: str) -> DataFrame:
        frame = self._source.of(kind)
        if first == "offset":
            frame = frame.filter(F.col("offset").isNotNull())
        return _rows(frame, first, F.col("values"), kind, event=F.col("event"))


def unexcused(found: DataFrame) -> DataFrame:
    """Anomalies of which none is excused, with the columns of ``Excuses.split``."""
    return found.select(
        *COLUMNS,
        F.lit(None).cast("string").alias("excuse"),
        F.lit(None).cast(EVENT).alias("event"),
        F.lit(0).cast("bigint").alias("step"),
    )


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
        (F.lit(None) if event is None else event).cast(EVENT).alias("event"),
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
