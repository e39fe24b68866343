"""unknown-producer-id: a batch carries a producer id that no client was ever given.

Definition. On any replica, a batch whose producer id is not -1 (none) and lies outside everything that the cluster had
handed out by the end of the run. Ids are handed out in blocks that follow each other from 0 on, each recorded in
``/latest_producer_id_block`` before any id of it is given to a client; ``run.json`` has where the newest block ends
(``producer_ids_below``). If that could not be read, only ids below -1 are judged. Batches that are corrupt are
``log-corrupt``'s. Legal: an id of a block that is in no history, since a client may end before it learned its id,
other clients may write too, and blocks have ids that no client was given.

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
