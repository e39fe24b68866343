"""The events that may excuse an anomaly, as Spark tables: stretches of sequences of one stream. Judges nothing.

``verifier.excuses.by_value`` defines the kinds. Every table has place, stream, ``sequence`` (the first), ``offset`` (of
the first, null if it is not known or does not matter), ``values`` (how many), and ``event``, which describes
the event in the verdict. ``verifier.excuses.elections`` finds what an election cut off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier.checks.copies import TIMED_OUT
from verifier.claims import cut, pieces, well_formed
from verifier.excuses.elections import JudgedElections
from verifier.excuses.event_rows import Grounds, event, in_bouts, of_bout, outstanding, ranges, told
from verifier.excuses.expectation import DISCONNECT, ELECTION, REFUSAL, RETRY, RETURNED, UNANSWERED
from verifier.excuses.late import returned, unanswered
from verifier.excuses.refusals import refused
from verifier.outcomes import stored_nothing
from verifier.tables import Tables
from verifier.witness.witness import CLOSED_NS, CONNECTION_NS, SLACK_NS, Span

#: The retries that may have left a copy: the attempt that failed may have stored its records.
COPIED = "copied"


class Events:
    """The events of all runs that are judged together, each kind made when it is first asked for. For one thread."""

    def __init__(self, spark: SparkSession, tables: Tables, grounds: Mapping[str, Grounds]) -> None:
        self._spark = spark
        self._tables = tables
        self.grounds = grounds
        self._told = told(tables.history)
        self._known: dict[str, DataFrame] = {}

    def of(self, kind: str) -> DataFrame:
        """All events of a kind (``verifier.excuses.expectation.EXCUSES``, or ``COPIED``): they are few, and kept."""
        if kind not in self._known:
            self._known[kind] = self._made(kind).coalesce(1).cache()
        return self._known[kind]

    def close(self) -> None:
        """Give back what is kept."""
        for frame in self._known.values():
            frame.unpersist()

    @cached_property
    def elections(self) -> JudgedElections:
        """Those of all these runs."""
        return JudgedElections(self._spark, self._tables, self.grounds)

    def _made(self, kind: str) -> DataFrame:
        if kind == ELECTION:
            return self.elections.cut_off
        if kind == DISCONNECT:
            return self._disconnected
        if kind == UNANSWERED:
            return unanswered(self._spark, self._tables, self.grounds)
        if kind == RETURNED:
            return returned(self._spark, self._tables, self.grounds)
        if kind == REFUSAL:
            return refused(self._tables)
        if kind == COPIED:
            return self._retried_after(self._doubtful)
        return self._retried_after(self._retries) if kind == RETRY else self._timed_out

    @cached_property
    def _disconnected(self) -> DataFrame:
        """What was acknowledged without an offset, and may have been under way when its client lost a connection.

        It was handed over before the client noted the loss (``at``). It was acknowledged, which means sent, about then;
        or earlier, if a fault between producers and the leader that lasted until then may have held it back.
        Losses of a stream whose times overlap are one ``bout``, of ``most`` connections.
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
            "place", "stream", F.col("complete_ns").alias("at"), F.col("error").alias("text"),
            F.greatest("count", F.lit(0)).alias("connections"),
        )  # fmt: skip
        alone = lost.withColumn("from_ns", F.col("at") - CONNECTION_NS)
        # an ``unsent`` row is written when the client is closed
        ended = self._tables.history.filter((F.col("f") == "unsent") & (F.col("complete_ns") >= 0)).select(
            "place", "stream", F.col("complete_ns").alias("at"), F.lit("its producer was closed").alias("text"),
            F.lit(1).alias("connections"), (F.col("complete_ns") - CLOSED_NS).alias("from_ns"),
        )  # fmt: skip
        held = (
            lost.join(F.broadcast(faults), "place")
            .filter(F.col("at").between(F.col("from_ns"), F.col("until_ns")))
            # these connections count in ``alone``
            .withColumns({"text": F.concat_ws(", during ", "text", "while"), "connections": F.lit(0)})
            .select(*alone.columns)
        )
        sent = self._told.filter((F.col("f") == "send") & F.col("first_offset").isNull())
        near = (F.col("invoke_ns") <= F.col("at")) & F.col("complete_ns").between(
            F.col("from_ns"), F.col("at") + CONNECTION_NS
        )
        columns = ["place", "stream", "first_sequence", "last_sequence"]
        losses = alone.unionByName(held).unionByName(ended)
        losses = in_bouts(losses, F.col("from_ns"), F.col("at") + CONNECTION_NS)
        losses = losses.withColumn("most", F.sum("connections").over(of_bout()))
        under_way = sent.join(F.broadcast(losses), ["place", "stream"]).filter(near)
        lost_with = event(F.col("at"), text=F.col("text"), bout=F.col("bout"), most=F.col("most"))
        events = under_way.select(*columns, lost_with.alias("event"))
        return ranges(events.groupBy(*columns).agg(F.min("event").alias("event")))

    @property
    def _retries(self) -> DataFrame:
        return self._tables.history.filter((F.col("f") == "retry") & (F.col("stream") >= 0) & well_formed())

    @property
    def _doubtful(self) -> DataFrame:
        """The retries after an attempt that may have stored its records: its error does not say otherwise."""
        refused: dict[frozenset[str], list[int]] = defaultdict(list)
        for number, place in enumerate(self._tables.places):
            settings = self.grounds[place.run].settings
            refused[stored_nothing(settings.client, settings.acks)].append(number)
        stored = F.lit(True)
        for names, places in refused.items():
            errors = [f"retry: {name}" for name in sorted(names)]
            stored &= ~F.col("place").isin(places) | ~F.coalesce(F.col("error").isin(errors), F.lit(False))
        return self._retries.filter(stored)

    def _retried_after(self, retries: DataFrame) -> DataFrame:
        """What the client resent, without values whose outcome it already knew: those were no longer outstanding.

        If librdkafka does not number its records, a range is everything that may have been resent, and only ``count``
        is certain: see ``verifier.excuses.by_value``.
        """
        first, last = F.col("first_sequence"), F.col("last_sequence")
        most = F.sum(F.greatest("count", F.lit(0))).over(of_bout())
        about = event(F.col("complete_ns"), first=first, last=last, text=F.col("error"), bout=F.col("bout"), most=most)
        one = ["place", "stream", "first", "last", "at"]
        again = in_bouts(retries, first, last).select(
            "place", "stream", first.alias("first"), last.alias("last"), F.col("complete_ns").alias("at"), about
        )
        sends = self._tables.history.filter((F.col("f") == "send") & well_formed()).select(
            "place", "stream", first.alias("from"), last.alias("to"), F.col("complete_ns").alias("told_ns")
        )
        over = sends.join(F.broadcast(again.select(*one)), ["place", "stream"]).filter(
            (F.col("told_ns") < F.col("at")) & (F.col("from") <= F.col("last")) & (F.col("to") >= F.col("first"))
        )
        begin, end = F.greatest("from", "first"), F.least("to", "last")
        parts = again.select(
            *one, F.col("first").alias("sequence"), (F.col("last") - F.col("first") + 1).alias("values"), "event"
        ).unionByName(
            over.select(*one, begin.alias("sequence"), (end - begin + 1).alias("values"), F.lit(True).alias("over")),
            allowMissingColumns=True,
        )
        said = pieces(
            cut(parts, one, "sequence"), one, "sequence", F.min("event").alias("event"), F.max("over").alias("over")
        )
        kept = said.filter(F.col("event").isNotNull() & F.col("over").isNull())
        return kept.select("place", "stream", "sequence", F.lit(None).cast("bigint").alias("offset"), "values", "event")

    @cached_property
    def _timed_out(self) -> DataFrame:
        sends = self._tables.history.filter((F.col("f") == "send") & (F.col("stream") >= 0) & well_formed())
        timeouts = sends.filter((F.col("type") == "info") & F.col("error").rlike(TIMED_OUT)).select(
            "place", "stream", F.col("complete_ns").alias("at"), F.col("error").alias("text")
        )
        columns = ["place", "stream", "first_sequence", "last_sequence"]
        joined = (
            sends.drop("error")
            .join(timeouts, ["place", "stream"])
            .filter(outstanding(F.col("invoke_ns"), F.col("complete_ns"), F.col("at")))
        )
        events = joined.select(*columns, event(F.col("at"), text=F.col("text")))
        return ranges(events.groupBy(*columns).agg(F.min("event").alias("event")))


def _named(span: Span) -> str:
    return f"{span.fault} ({span.target})"
