"""producer-epoch-regression: a producer's batch has a lower producer epoch than one before it.

Definition. In the final leader's log, from its start to the limit, without control batches: a batch of a producer id
whose epoch is lower than that of an earlier batch (by offset) of the same id. A producer that increments its epoch no
longer uses the old one, and the broker refuses batches that still arrive with it (Kafka:
``ProducerAppendInfo.checkProducerEpoch``, ``INVALID_PRODUCER_EPOCH``; KIP-98, KIP-360). This is wrong even if all
replicas agree, whatever the values are. Corrupt batches are ``log-corrupt``. Legal: an epoch that increases by any
amount, and any epoch of another id.

    log: 0:[p7 e0 seq 0..9] 10:[p7 e1 seq 0..9] 20:[p7 e0 seq 10..19]        epoch 0 of producer 7 was already over
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.checks.sequence_gap import sequenced
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per batch; ``offset`` is its base offset."""
    before = (
        Window.partitionBy("place", "producer_id")
        .orderBy("base_offset", "segment", "position")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    found = (
        sequenced(tables)
        .filter(F.col("problem").isNull())
        .withColumn("after_epoch", F.max("producer_epoch").over(before))
        .filter(F.col("producer_epoch") < F.col("after_epoch"))
    )
    detail = ["broker", "segment", "position", "producer_id", "producer_epoch", "base_sequence", "after_epoch"]
    return anomalies(found, stream=None, sequence=None, offset="base_offset", detail=[*detail])
