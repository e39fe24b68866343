"""Claims: who says which values stand where; and what they sum up to, by value and by offset. Judges nothing.

A claim is one row (place, stream, sequence, offset, values, source): that many consecutive values from ``sequence`` on,
at consecutive offsets from ``offset`` on, by an acknowledgement, a certain failure, the final leader's log, a read, or
a reservation. ``ledger`` has all claims on one value in one row, ``positions`` all on one offset.

Nothing is examined value by value: of millions of values nearly all are told, stored and read in long stretches, so
claims that continue each other are joined, and cut only where another claim begins or ends. What is then said about the
first value of a stretch holds for each of them, with sequence and offsets counting up together: no check loses by it.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from verifier.not_owed import ABORTED, COMMITTED, not_owed

#: Who makes a claim (column ``source``). A reservation says that the value may have been sent.
ACK, FAIL, LOG, READ, RESERVED = range(5)

#: A longer span of sequences is no honest history row.
LONGEST_SPAN = 10_000_000

#: What two claims must have in common so that one can continue the other, beside their place and stream.
_WHOSE = ("source", "bit", "sentinel", "producer_id", "producer_epoch", "reader", "fate")


def all_claims(history: DataFrame, reader_bits: DataFrame, log: DataFrame) -> DataFrame:
    """Every claim on a judged partition. ``reader_bits``: run, process and ``bit`` of the final readers."""
    claims = [_acks(history), _reads(history, reader_bits), _reservations(history), _log_claims(log)]
    return _joined(reduce(DataFrame.unionByName, claims))


def unfold(frame: DataFrame, first: str, last: str) -> DataFrame:
    """One row per member of a span, with ``step`` counting from 0."""
    return frame.withColumn("step", F.explode(F.sequence(F.lit(0).cast("bigint"), F.col(last) - F.col(first))))


def well_formed() -> Column:
    """Whether a history row's ranges make sense: both as long as each other, and of a possible length."""
    sequences = F.col("last_sequence") - F.col("first_sequence")
    offsets = F.col("last_offset") - F.col("first_offset")
    known = (F.col("first_offset") < 0) | (offsets == sequences)
    return (F.col("first_sequence") >= 0) & F.col("stream").isNotNull() & sequences.between(0, LONGEST_SPAN) & known


def cut(frame: DataFrame, key: list[str], first: str) -> DataFrame:
    """Rows that span ``values`` from ``first`` on, cut wherever one of the same ``key`` begins or ends.

    Returns a row per part, ``piece`` numbering the parts of a key in their order, and rows of which all but ``key``,
    ``piece`` and ``edge`` is null. ``edge``, where it is known, is where the piece begins. Parts that overlap are
    equal, so that grouping by ``key`` and ``piece`` (``pieces``) gives what is said about each.
    """
    others = [name for name in frame.columns if name not in key]
    begin = F.struct(F.col(first).alias("edge"), F.lit(True).alias("begins"))
    end = F.struct((F.col(first) + F.col("values")).alias("edge"), F.lit(False).alias("begins"))
    edges = (
        frame.repartition(*key)
        .withColumn("row", F.monotonically_increasing_id())
        .withColumn("side", F.explode(F.array(begin, end)))
        .select(*key, *others, "row", "side.*")
        .withColumn("piece", F.dense_rank().over(Window.partitionBy(*key).orderBy("edge")))
        .withColumn("after", F.max("piece").over(Window.partitionBy(*key, "row")))
    )
    begins, own = F.col("begins"), F.col("piece")
    numbers = F.when(begins, F.sequence(own, F.col("after") - 1)).otherwise(F.array(own))
    return edges.withColumn("part", F.explode(numbers)).select(
        *key,
        *(F.when(begins, F.col(name)).alias(name) for name in others),
        F.when(own == F.col("part"), F.col("edge")).alias("edge"),
        F.col("part").alias("piece"),
    )


def pieces(cut_rows: DataFrame, key: list[str], first: str, *said: Column) -> DataFrame:
    """What is said about each piece of ``cut``, with ``first``, where it begins, and ``values``, how long it is."""
    following = F.lead("edge").over(Window.partitionBy(*key).orderBy("piece"))
    return (
        cut_rows.groupBy(*key, "piece")
        .agg(F.max("edge").alias("edge"), F.count("values").alias("rows"), *said)
        .withColumn("values", following - F.col("edge"))
        .filter(F.col("rows") > 0)
        .withColumnRenamed("edge", first)
        .drop("piece", "rows")
    )


def _joined(claims: DataFrame) -> DataFrame:
    """Claims that continue each other, as one: the same stream and source, one sequence and one offset further on."""
    shift = F.col("offset") - F.col("sequence")
    alike = ["place", "stream", *_WHOSE, "shift"]
    order = Window.partitionBy(*alike).orderBy("sequence", "values")
    continues = F.col("sequence") == F.lag(F.col("sequence") + F.col("values")).over(order)
    return (
        claims.withColumn("shift", shift)
        .repartition("place", "stream")
        .withColumn("begins", F.when(continues, 0).otherwise(1))
        .withColumn("number", F.sum("begins").over(order.rowsBetween(Window.unboundedPreceding, 0)))
        .groupBy(*alike, "number")
        .agg(F.min("sequence").alias("sequence"), F.min("offset").alias("offset"), F.sum("values").alias("values"))
        .drop("shift", "number", "reader")
    )


def _claims(frame: DataFrame, source: Column, bit: Column, sentinel: Column) -> DataFrame:
    """Claims of history rows, without what lies below the start of what is judged: ``from_offset``.

    Only copies in the log carry a producer id that counts: there it decides who appended.
    """
    offset = F.when((F.col("first_offset") >= 0) & (F.col("type") == "ok"), F.col("first_offset"))
    below = F.coalesce(F.greatest(F.col("from_offset") - offset, F.lit(0)), F.lit(0))
    return frame.select(
        "place",
        "stream",
        (F.col("first_sequence") + below).alias("sequence"),
        (offset + below).alias("offset"),
        (F.col("last_sequence") - F.col("first_sequence") + 1 - below).alias("values"),
        source.cast("int").alias("source"),
        bit.cast("bigint").alias("bit"),
        sentinel.alias("sentinel"),
        F.lit(None).cast("bigint").alias("producer_id"),
        F.lit(None).cast("int").alias("producer_epoch"),
        # two readers tell the same in spans of different lengths: mixed, none would continue another
        F.when(F.col("f") == "poll", F.col("process")).alias("reader"),
        F.when(F.col("is_committed"), F.lit(COMMITTED)).alias("fate"),
    ).filter(F.col("values") > 0)


def _acks(history: DataFrame) -> DataFrame:
    """Acknowledgements and certain failures."""
    told = history.filter(
        F.col("f").isin("send", "sentinel", "unsent") & F.col("type").isin("ok", "fail") & well_formed()
    )
    source = F.when(F.col("type") == "ok", ACK).otherwise(FAIL)
    return _claims(told, source, F.lit(0), F.col("f") == "sentinel")


def _reads(history: DataFrame, reader_bits: DataFrame) -> DataFrame:
    """What readers were handed, in both phases. ``bit`` is the reader's own in the final phase, else 0."""
    polls = history.filter((F.col("f") == "poll") & (F.col("type") == "ok") & (F.col("stream") >= 0) & well_formed())
    final_bit = F.when(F.col("phase") == "final", F.coalesce("bit", F.lit(0))).otherwise(0)
    known = polls.join(F.broadcast(reader_bits), ["run", "process"], "left")
    return _claims(known, F.lit(READ), final_bit, F.lit(False))


def _reservations(history: DataFrame) -> DataFrame:
    """What may have been sent, the sentinels' own included; no statement about an offset."""
    reserved = history.filter(F.col("f").isin("reserve", "sentinel") & (F.col("first_sequence") >= 0))
    nowhere = reserved.withColumn("first_offset", F.lit(-1).cast("bigint"))
    return _claims(nowhere, F.lit(RESERVED), F.lit(0), F.lit(False))


def _log_claims(log: DataFrame) -> DataFrame:
    return log.select(
        "place",
        "stream",
        F.col("first_sequence").alias("sequence"),
        F.col("first_offset").alias("offset"),
        (F.col("last_offset") - F.col("first_offset") + 1).alias("values"),
        F.lit(LOG).alias("source"),
        F.lit(0).cast("bigint").alias("bit"),
        "sentinel",
        "producer_id",
        "producer_epoch",
        F.lit(None).cast("string").alias("reader"),
        F.when(F.col("is_aborted"), F.lit(ABORTED)).alias("fate"),
    )


def deleted_claims(history: DataFrame) -> DataFrame:
    """What was acknowledged or read below ``from_offset``, where the log can no longer tell who is right.

    Claims for ``positions_of`` alone, and only of places that have ``judges_deleted`` (``verifier.tables``).
    """
    acked = F.col("f").isin("send", "sentinel")
    told = history.filter(
        F.col("judges_deleted")
        & (acked | ((F.col("f") == "poll") & (F.col("stream") >= 0)))
        & (F.col("type") == "ok")
        & well_formed()
        & (F.col("first_offset") >= 0)
        & (F.col("first_offset") < F.col("from_offset"))
    )
    return told.select(
        "place",
        "stream",
        F.col("first_sequence").alias("sequence"),
        F.col("first_offset").alias("offset"),
        (F.least(F.col("last_offset") + 1, F.col("from_offset")) - F.col("first_offset")).alias("values"),
        F.when(acked, ACK).otherwise(READ).alias("source"),
        F.lit(None).cast("int").alias("fate"),
    )


def ledger_of(claims: DataFrame) -> DataFrame:
    """All claims on one value in one row: what was told, what is on disk, what was read.

    A row stands for ``values`` consecutive ones, of which the first is described: each further one has the next
    sequence, and the next offset wherever one is given. A value that was only ever reserved has no row.
    """
    key = ["place", "stream"]
    shift = F.col("offset") - F.col("sequence")
    sequences = claims.filter(F.col("stream").isNotNull()).withColumn("shift", shift).drop("offset")

    def is_from(source: int) -> Column:
        return F.col("source") == source

    def of(source: int) -> Column:
        return F.when(is_from(source), F.col("shift"))

    told = pieces(
        cut(sequences, key, "sequence"),
        key,
        "sequence",
        F.max(is_from(RESERVED)).alias("reserved"),
        F.count(F.when(~is_from(RESERVED), 1)).alias("claims"),
        F.max(is_from(ACK)).alias("acked"),
        F.max(is_from(FAIL)).alias("failed"),
        F.min(of(ACK)).alias("first_ack"),
        F.max(of(ACK)).alias("last_ack"),
        F.count(of(LOG)).alias("copies"),
        F.min(of(LOG)).alias("first_log"),
        F.max(of(LOG)).alias("last_log"),
        F.count(F.when(is_from(READ), 1)).alias("reads"),
        F.min(of(READ)).alias("first_read"),
        F.max(of(READ)).alias("last_read"),
        F.bit_or("bit").alias("seen"),
        F.max("sentinel").alias("sentinel"),
        not_owed().alias("not_owed"),
        F.min_by("producer_id", of(LOG)).alias("first_producer_id"),
        F.min("producer_id").alias("lowest_producer_id"),
        F.max("producer_id").alias("highest_producer_id"),
        F.min_by("producer_epoch", of(LOG)).alias("first_producer_epoch"),
        F.max_by("producer_epoch", of(LOG)).alias("last_producer_epoch"),
        F.min("producer_epoch").alias("lowest_producer_epoch"),
        F.max("producer_epoch").alias("highest_producer_epoch"),
    ).filter(F.col("claims") > 0)
    offsets = [f"{end}_{source}" for source in ("ack", "log", "read") for end in ("first", "last")]
    return told.drop("claims").withColumns({name: F.col("sequence") + F.col(name) for name in offsets})


def positions_of(claims: DataFrame) -> DataFrame:
    """All claims on one offset in one row, which stands for ``values`` consecutive ones as in the ledger.

    Two values differ exactly if their stream or their sequence does, so minima and maxima tell all that is asked.
    """
    back = F.col("sequence") - F.col("offset")
    placed = claims.filter(F.col("offset").isNotNull()).withColumn("back", back).drop("sequence")
    read, logged = F.col("source") == READ, F.col("source") == LOG
    groups = {"": F.lit(True), "log_": logged, "read_": read}
    ends = {"lowest": F.min, "highest": F.max}
    said = pieces(
        cut(placed, ["place"], "offset"),
        ["place"],
        "offset",
        F.max(F.col("source") == ACK).alias("acked"),
        F.max(read).alias("read"),
        F.max(logged).alias("logged"),
        not_owed().alias("not_owed"),
        *(
            extreme(F.when(whose, F.col(column))).alias(f"{word}_{who}{name}")
            for who, whose in groups.items()
            for name, column in (("stream", "stream"), ("sequence", "back"))
            for word, extreme in ends.items()
        ),
    )
    sequences = [f"{word}_{who}sequence" for who in groups for word in ends]
    return said.withColumns({name: F.col("offset") + F.col(name) for name in sequences})
