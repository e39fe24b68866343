"""phantom: a value that no producer of the run wrote is in the log or was read.

Definition. (a) A sequenced value of this run, in the final leader's log or in any read, whose sequence was never
reserved for its stream and partition; cause ``never-reserved``; (b) one whose only outcome was ``fail``: its send
certainly failed; cause ``failed``; (c) in the log, a value that is not a sequenced value or belongs to another run;
cause ``foreign``; (d) an offset at which a reader received bytes that are not a value of this run, although the log's
bytes there are intact; cause ``undecodable``; (e) in the log, a batch with attributes that no producer of a run sets: a
transaction or its marker in a run without ``__transaction_state``, a control batch outside of a transaction, a delete
horizon (nothing is compacted), or an undefined bit; cause ``attributes``.
Jepsen's check raises here; the value of an aborted transaction is ``G1a``, not this.

    reserved: s1/0..s1/4095         log: ... 17:(s9/3) ...                                  there is no s9
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.claims import LONGEST_SPAN, unfold
from verifier.tables import Tables

#: The attributes that no producer sets: all except the codec and the type of the timestamp.
UNASKED = ~0x0F
#: The attributes of transactional batches, and of their markers.
OF_TRANSACTIONS = (0x10, 0x30)


def find(tables: Tables) -> DataFrame:
    """One anomaly per value, foreign value, delivery or batch."""
    return _values(tables).union(_foreign(tables)).union(_undecodable(tables)).union(_unasked(tables))


def _values(tables: Tables) -> DataFrame:
    present = tables.ledger.filter((F.col("copies") > 0) | (F.col("reads") > 0))
    suspects = present.filter(~F.col("reserved") | (F.col("failed") & ~F.col("acked")))
    return anomalies(
        suspects,
        cause=F.when(~F.col("reserved"), "never-reserved").otherwise("failed"),
        offset=F.coalesce("first_log", "first_read"),
        count="values",
        detail=["copies", "reads", "first_log", "first_read"],
    )


def _foreign(tables: Tables) -> DataFrame:
    foreign = tables.log.filter(F.col("value_problem").isin("foreign", "run") & F.col("crc_ok"))
    return anomalies(
        foreign,
        cause=F.lit("foreign"),
        sequence=None,
        offset="first_offset",
        count=F.col("last_offset") - F.col("first_offset") + 1,
        detail=["value_problem", "base_offset", "producer_id"],
    )


def _undecodable(tables: Tables) -> DataFrame:
    polls = tables.history.filter(
        (F.col("f") == "poll")
        & (F.col("type") == "ok")
        & (F.col("stream") < 0)
        & F.col("error").isNotNull()
        & (F.col("last_offset") - F.col("first_offset")).between(0, LONGEST_SPAN)
    )
    places = (
        unfold(polls, "first_offset", "last_offset")
        .withColumn("offset", F.col("first_offset") + F.col("step"))
        .groupBy("place", "offset")
        .agg(F.min("process").alias("process"), F.min("error").alias("error"))
    )
    damaged = unfold(tables.log.filter(F.col("value_problem").isNotNull()), "first_offset", "last_offset")
    as_on_disk = damaged.select("place", (F.col("first_offset") + F.col("step")).alias("offset"))
    return anomalies(
        places.join(as_on_disk, ["place", "offset"], "left_anti"),
        cause=F.lit("undecodable"),
        stream=None,
        sequence=None,
        detail=["process", "error"],
    )


def _unasked(tables: Tables) -> DataFrame:
    attributes = F.col("attributes").bitwiseAND(UNASKED)
    batches = tables.segments.filter(
        F.col("is_leader")
        & (F.col("kind") == "batch")
        & F.col("problem").isNull()
        & (attributes != 0)
        & ~(F.col("is_transactional") & attributes.isin(*OF_TRANSACTIONS))
        & (F.col("next_offset") > F.col("start"))
        & (F.col("base_offset") < F.col("limit"))
    )
    return anomalies(
        batches,
        cause=F.lit("attributes"),
        stream=None,
        sequence=None,
        offset="base_offset",
        size=F.col("next_offset") - F.col("base_offset"),
        detail=["broker", "segment", "position", "attributes", "producer_id"],
    )
