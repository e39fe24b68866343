"""Finds out why a value is stored more than once, for ``duplicate`` and ``log-duplicate``. Owns these causes.

The producer id and epoch of the copies in the log show who appended the value twice:

- ``broker``: the copies have the same (producer id, epoch): the broker failed to recognize the duplicate.
- ``client-resend``: each of two copies has its own: the client sent the value again under a new identity.
- ``client-resend-after-error``: the same, and the history records for this stream a delivery that timed out, or a
  later batch that was refused as out of order and sent again. After that, librdkafka by design resends everything else
  in flight under a new id or epoch (its issue 4953). This does not apply if the later copy has an older epoch of the
  same id: a broker must refuse that (``producer-epoch-regression``). After a refusal the id stays, and the epoch rises.
- ``mixed``: three or more copies under several identities: the client sent it again, and the broker may have failed.
- ``unidentified``: a copy has no producer id (idempotence is off), so the cause cannot be determined.
- ``vanished``: fewer than two copies are in the final log; a reader saw one that is gone.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.outcomes import OUT_OF_ORDER
from verifier.tables import Tables

#: The error (by librdkafka's name) of a delivery after which librdkafka may resend under a new producer epoch.
TIMED_OUT = "^_MSG_TIMED_OUT"


def with_cause(tables: Tables, suspects: DataFrame) -> DataFrame:
    """``suspects``, which are rows of the ledger, with the column ``cause``."""
    timeouts = (
        tables.history.filter((F.col("f") == "send") & (F.col("type") == "info") & F.col("error").rlike(TIMED_OUT))
        .groupBy("place", "stream")
        .agg(F.count(F.lit(1)).alias("timeouts"))
    )
    refusals = (
        tables.history.filter((F.col("f") == "retry") & (F.col("error") == f"retry: {OUT_OF_ORDER}"))
        .groupBy("place", "stream")
        .agg(F.count(F.lit(1)).alias("refusals"))
    )
    one_id = F.col("lowest_producer_id") == F.col("highest_producer_id")
    one_identity = one_id & (F.col("lowest_producer_epoch") == F.col("highest_producer_epoch"))
    went_back = one_id & (F.col("last_producer_epoch") < F.col("first_producer_epoch"))
    went_on = one_id & (F.col("last_producer_epoch") > F.col("first_producer_epoch"))
    cause = (
        F.when(F.col("copies") < 2, "vanished")
        .when(F.col("lowest_producer_id") < 0, "unidentified")
        .when(one_identity, "broker")
        .when(F.col("copies") > 2, "mixed")
        .when(((F.col("timeouts") > 0) & ~went_back) | ((F.col("refusals") > 0) & went_on), "client-resend-after-error")
        .otherwise("client-resend")
    )
    told = suspects.join(F.broadcast(timeouts), ["place", "stream"], "left")
    return told.join(F.broadcast(refusals), ["place", "stream"], "left").withColumn("cause", cause)
