"""Copies that librdkafka made after a later batch was refused as out of order, as events for
``verifier.excuses.events``.

If a batch is refused as out of order and is not the oldest one outstanding, librdkafka takes an earlier failure for the
cause ("skipped sequence numbers", its issue 4953). It raises its producer epoch and resends everything outstanding
under the new epoch, including what an earlier attempt stored; no broker can recognize that as a copy. Owns which values
this can have happened to. Does not own which settings allow it (``verifier.excuses.expectation``), and judges nothing.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from verifier.claims import well_formed
from verifier.excuses.event_rows import event, in_bouts, of_bout, outstanding, ranges
from verifier.outcomes import MAY_BE_STORED, OUT_OF_ORDER
from verifier.tables import Tables


def refused(tables: Tables) -> DataFrame:
    """Values that are in the log twice, under rising epochs of one producer id, for this reason.

    A later batch of the stream was refused while the value was outstanding. The refusal was right: the log does not
    have the sequence before that batch under the epoch of the first copy. Before the refusal, an attempt to send the
    value failed in a way that may have stored it. Attempts whose ranges overlap are one ``bout``; ``most`` is how many
    records they had together.
    """
    history = tables.history.filter((F.col("stream") >= 0) & well_formed())
    retries = history.filter(F.col("f") == "retry")
    doubtful = in_bouts(retries.filter(_is(*MAY_BE_STORED)), F.col("first_sequence"), F.col("last_sequence")).select(
        "place", "stream", F.col("first_sequence").alias("tried_first"), F.col("last_sequence").alias("tried_last"),
        F.col("complete_ns").alias("tried_at"), F.col("error").alias("text"), "bout",
        F.sum(F.greatest("count", F.lit(0))).over(of_bout()).alias("most"),
    )  # fmt: skip
    sends = history.filter((F.col("f") == "send") & (F.col("op") < 0)).select(
        "place", "stream", F.col("first_sequence").alias("sent_first"), F.col("last_sequence").alias("sent_last"),
        "invoke_ns", F.col("complete_ns").alias("told_ns"),
    )  # fmt: skip
    key, last = ["place", "stream"], F.col("sequence") + F.col("values") - 1
    first, end = F.greatest("sequence", "sent_first", "tried_first"), F.least(last, "sent_last", "tried_last")
    found = (
        F.broadcast(_refusals_over_copies(tables, retries))
        .join(F.broadcast(doubtful), key)
        .filter(F.col("tried_at") <= F.col("at"))
        .join(sends, key)
        .filter(outstanding(F.col("invoke_ns"), F.col("told_ns"), F.col("at")))
        .withColumns({"first_sequence": first, "last_sequence": end})
        .filter(F.col("first_sequence") <= F.col("last_sequence"))
    )
    about = event(
        F.col("at"), first=F.col("refused_first"), last=F.col("refused_last"), text=F.col("text"),
        bout=F.col("bout"), most=F.col("most"),
    )  # fmt: skip
    columns = [*key, "first_sequence", "last_sequence"]
    return ranges(found.select(*columns, about).groupBy(*columns).agg(F.min("event").alias("event")))


def _refusals_over_copies(tables: Tables, retries: DataFrame) -> DataFrame:
    """Values with two copies under rising epochs of one id, each with every later batch that was rightly refused.

    A refusal is wrong if the log has the sequence before the batch under the epoch of the first copy.
    """
    key = ["place", "stream"]
    refusals = retries.filter(_is(OUT_OF_ORDER)).select(
        *key, F.col("first_sequence").alias("refused_first"), F.col("last_sequence").alias("refused_last"),
        F.col("complete_ns").alias("at"),
    )  # fmt: skip
    one_id = F.col("lowest_producer_id") == F.col("highest_producer_id")
    rising = F.col("last_producer_epoch") > F.col("first_producer_epoch")
    twice = tables.ledger.filter((F.col("copies") == 2) & one_id & rising).select(
        *key, "sequence", "values", "first_producer_id", "first_producer_epoch"
    )
    above = twice.join(F.broadcast(refusals), key).filter(F.col("refused_first") >= F.col("sequence") + F.col("values"))
    spans = tables.log.select(
        *key, F.col("first_sequence").alias("begin"), (F.col("last_offset") - F.col("first_offset")).alias("more"),
        F.col("producer_id").alias("first_producer_id"), F.col("producer_epoch").alias("first_producer_epoch"),
    )  # fmt: skip
    same = [*key, "first_producer_id", "first_producer_epoch"]
    before = F.col("refused_first") - 1
    wrong = spans.join(F.broadcast(above), same).filter(before.between(F.col("begin"), F.col("begin") + F.col("more")))
    return above.join(F.broadcast(wrong.select(*above.columns).distinct()), above.columns, "left_anti")


def _is(*errors: str) -> Column:
    return F.coalesce(F.col("error").isin([f"retry: {error}" for error in errors]), F.lit(False))
