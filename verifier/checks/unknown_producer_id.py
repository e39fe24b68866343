"""unknown-producer-id: a batch has a producer id that was never given to any client.

Definition. On any replica, a batch whose producer id is not -1 (none) and is outside everything that the cluster had
allocated by the end of the run. Ids are allocated in consecutive blocks, starting at 0, and each block is recorded in
``/latest_producer_id_block`` before any id in it is given to a client; ``run.json`` has the end of the newest block
(``producer_ids_below``). If that could not be read, only ids below -1 are judged. Corrupt batches are ``log-corrupt``.
Legal: an allocated id that is in no history, since a client may end before it learns its id, other clients may write
too, and blocks have ids that no client was given.

    /latest_producer_id_block: 1000..1999        file: [0..9 p41] [10..19 p7000]        no client was given 7000
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per replica and batch; ``offset`` is the batch's base offset."""
    producer_id = F.col("producer_id")
    unknown = (producer_id < -1) | (producer_id >= F.col("producer_ids_below"))
    return anomalies(
        tables.segments.filter((F.col("kind") == "batch") & F.col("problem").isNull() & unknown),
        stream=None,
        sequence=None,
        offset="base_offset",
        detail=["broker", "segment", "position", "producer_id", "producer_epoch", "producer_ids_below"],
    )
