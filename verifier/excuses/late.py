"""Sends that may have arrived late at brokers that do not track sequences, as events for ``verifier.excuses.events``.

Without idempotence, a broker stores a batch whenever it arrives, even after batches that were sent later over another
connection. Owns which sends this can have happened to. Does not own which settings allow it
(``verifier.excuses.expectation``), and judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from verifier.claims import well_formed
from verifier.excuses.event_rows import Grounds, event, in_bouts, of_bout, ranges
from verifier.excuses.expectation import RETURNED, UNANSWERED, Expectation
from verifier.outcomes import ANSWERED
from verifier.tables import Tables
from verifier.witness.leaderships import led_since, returns
from verifier.witness.witness import CONNECTION_NS


def unanswered(spark: SparkSession, tables: Tables, grounds: Mapping[str, Grounds]) -> DataFrame:
    """Sends without an outcome that the settings allow to arrive late: exactly these sequences.

    The client lost a connection while the send was in flight. If a later send had been acknowledged over the same
    connection, it would have arrived after this one, so no later send was acknowledged before this one was abandoned.
    Sends of a stream whose times overlap form a ``bout``; ``most`` is the number of connections lost during it.
    """
    history = tables.history.filter(F.col("place").isin(_places(tables, grounds, UNANSWERED)) & (F.col("stream") >= 0))
    lost = history.filter((F.col("f") == "disconnect") & (F.col("count") > 0)).select(
        "place", "stream", F.col("complete_ns").alias("at"), F.col("first_sequence").alias("lost_first"),
        F.col("last_sequence").alias("lost_last"), F.col("count").alias("connections"),
    )  # fmt: skip
    later = Window.partitionBy("place", "stream").orderBy(F.col("first_sequence").desc())
    acked_ns = F.when(F.col("type") == "ok", F.col("complete_ns"))
    overtaken_ns = F.min(acked_ns).over(later.rangeBetween(Window.unboundedPreceding, -1))
    sends = history.filter((F.col("f") == "send") & well_formed()).withColumn("overtaken_ns", overtaken_ns)
    in_order = F.coalesce(F.col("overtaken_ns") >= F.col("complete_ns"), F.lit(True))
    native = F.col("place").isin(_places(tables, grounds, UNANSWERED, "native"))
    answered = native & F.coalesce(F.col("error").rlike(ANSWERED), F.lit(False))
    given_up = sends.filter((F.col("type") == "info") & in_order & ~answered)
    under_way = F.col("at").between(F.col("invoke_ns"), F.col("complete_ns") + CONNECTION_NS)
    # the row names everything outstanding; sends abandoned before it are no longer included
    outstanding = (F.col("lost_first") <= F.col("last_sequence")) & (F.col("lost_last") >= F.col("first_sequence"))
    found = given_up.join(lost, ["place", "stream"]).filter(
        under_way & (outstanding | (F.col("at") > F.col("complete_ns")))
    )
    found = in_bouts(found, F.col("invoke_ns"), F.col("complete_ns") + CONNECTION_NS)
    losses = F.collect_set(F.struct("at", "lost_first", "lost_last", "connections")).over(of_bout())
    most = F.aggregate(losses, F.lit(0).cast("bigint"), lambda so_far, loss: so_far + loss["connections"])
    about = event(F.col("complete_ns"), text=F.col("error"), bout=F.col("bout"), most=most)
    columns = ["place", "stream", "first_sequence", "last_sequence", "complete_ns"]
    events = found.select(*columns, about).groupBy(*columns).agg(F.min("event").alias("event"))
    return ranges(_addressed(spark, tables, grounds, _where_it_stands(tables, events)))


def returned(spark: SparkSession, tables: Tables, grounds: Mapping[str, Grounds]) -> DataFrame:
    """Sends acknowledged by a leader that was replaced in the meantime, and led again when it stored them.

    The request was delayed on its way to that leader, while later sends went to another one.
    """
    fields: list[tuple[str, pa.DataType]] = [("place", pa.int32()), ("back_in", pa.int32())]
    fields += [(name, pa.int64()) for name in ("left_ns", "back_ns")]
    rows = []
    for number in _places(tables, grounds, RETURNED):
        final = tables.places[number].final
        for each in returns(grounds[tables.places[number].run].witness.led(final.topic, final.partition)):
            times = {"left_ns": each.left_ns, "back_ns": each.back_ns}
            rows.append({"place": number, "back_in": each.epoch, **times})
    known = F.broadcast(spark.createDataFrame(pa.Table.from_pylist(rows, schema=pa.schema(fields))))
    sends = tables.history.filter(
        (F.col("f") == "send") & (F.col("type") == "ok") & (F.col("stream") >= 0) & well_formed()
    )
    meanwhile = (F.col("invoke_ns") <= F.col("left_ns")) & (F.col("complete_ns") >= F.col("back_ns"))
    columns = ["place", "stream", "first_sequence", "last_sequence", "back_in", "back_ns"]
    waited = sends.join(known, "place").filter(meanwhile).select(*columns)
    found = _where_it_stands(tables, waited).filter(F.col("leader_epoch") == F.col("back_in"))
    return ranges(found.withColumn("event", event(F.col("back_ns"), text=F.col("leader_epoch").cast("string"))))


def in_order(late: Column) -> Column:
    """Into how few parts these values fall, by their sequences, so that the positions of each part rise.

    Each value extends the part whose end is closest below it. If no part ends below it, it starts a new one.
    """

    def with_next(ends: Column, value: Column) -> Column:
        at = value["at"]
        below = F.array_max(F.filter(ends, lambda end: end < at))
        return F.array_append(F.when(below.isNull(), ends).otherwise(F.array_remove(ends, below)), at)

    return F.size(F.aggregate(late, F.array().cast("array<bigint>"), with_next))


def _places(tables: Tables, grounds: Mapping[str, Grounds], excuse: str, client: str | None = None) -> list[int]:
    """The places whose settings allow late arrivals with this event, for this client."""
    found = []
    for number, place in enumerate(tables.places):
        settings = grounds[place.run].settings
        if client in (None, settings.client) and Expectation(settings).can_allow("nonmonotonic-send", excuse):
            found.append(number)
    return found


def _where_it_stands(tables: Tables, sends: DataFrame) -> DataFrame:
    """The parts of these sends that are in the final log, each with its ``leader_epoch``."""
    log = tables.log.filter(F.col("stream").isNotNull())
    last = F.col("first_sequence") + F.col("last_offset") - F.col("first_offset")
    spans = log.select(
        "place", "stream", "leader_epoch", F.col("first_sequence").alias("log_first"), last.alias("log_last")
    )
    meets = (F.col("log_first") <= F.col("last_sequence")) & (F.col("log_last") >= F.col("first_sequence"))
    return (
        spans.join(F.broadcast(sends), ["place", "stream"])
        .filter(meets)
        .withColumns(
            {
                "first_sequence": F.greatest("first_sequence", "log_first"),
                "last_sequence": F.least("last_sequence", "log_last"),
            }
        )
    )


def _addressed(spark: SparkSession, tables: Tables, grounds: Mapping[str, Grounds], sends: DataFrame) -> DataFrame:
    """Removes sends that a client without retries cannot have sent to the leader of the epoch in which they are stored.

    Such a request waits for the one broker to which it was sent. A broker that had not yet led when the request was
    abandoned cannot be that broker.
    """
    fields: list[tuple[str, pa.DataType]] = [("place", pa.int32()), ("leader_epoch", pa.int32())]
    fields.append(("since_ns", pa.int64()))
    rows = []
    for number in _places(tables, grounds, UNANSWERED, "native"):
        final, its = tables.places[number].final, grounds[tables.places[number].run]
        led = led_since(its.witness.led(final.topic, final.partition)) if its.settings.retries == 0 else {}
        rows += [{"place": number, "leader_epoch": epoch, "since_ns": since_ns} for epoch, since_ns in led.items()]
    known = F.broadcast(spark.createDataFrame(pa.Table.from_pylist(rows, schema=pa.schema(fields))))
    since_ns = F.coalesce("since_ns", F.col("complete_ns"))
    return sends.join(known, ["place", "leader_epoch"], "left").filter(since_ns <= F.col("complete_ns"))
