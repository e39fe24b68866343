"""What an election truncated: the elections that both the log and the conductor show, as events. Judges nothing.

A worked example, for stream 7. Epoch 3 begins at offset 100 of the final log, which has sequences 0 to 47 of the stream
below that offset, and 60 to 80 above it; the conductor saw the epoch begin at about 12.0 s. A row says that sequences
45 to 55 were acknowledged at offsets 97 to 107, at 11.8 s. Sequence 48 has offset 100, so 48 to 55 become an
``election`` row: sequence 48, offset 100, 8 values. If the row had no offsets (acks=0), the result would be the same:
after 47, which is in an earlier epoch, and before 60, which is in this one.

How far up can a truncated log have reached? Offsets are dense: each offset in the truncated tail was taken by one
attempt to send a record, and an attempt is stored at most once, there or in the final log. So the tails of all
truncated logs hold at most as many records as there were attempts (the records that were handed over, and those of
each retry), minus the records in the final log. If 1,000 records were handed over, 20 of them were resent, and 970 are
in the log, then 50 attempts are left: a record acknowledged at offset 150 or above was not truncated at 100, no matter
what the broker said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from verifier.claims import cut, pieces, well_formed
from verifier.evidence.sequenced_value import SENTINEL_STREAM
from verifier.excuses.around_elections import standing
from verifier.excuses.event_rows import Grounds, event, told
from verifier.tables import Tables
from verifier.witness.witness import SLACK_NS, EpochStart, WitnessedElection

#: For an election where it does not matter how far up a log can have reached.
NO_END = 2**62
#: Which value is at an offset: its stream, and by how much its sequence is ahead of the offset.
_VALUE = "struct<stream:bigint,back:bigint>"


class JudgedElections:
    """The elections of all runs that are judged together, and what each one truncated. For one thread."""

    def __init__(self, spark: SparkSession, tables: Tables, grounds: Mapping[str, Grounds]) -> None:
        self._spark = spark
        self._tables = tables
        self._grounds = grounds
        self._told = told(tables.history)
        #: (run, topic, partition, epoch) of acknowledgements from before the time when the epoch can have begun.
        self.contradicted: set[tuple[str, str, int, int]] = set()

    @cached_property
    def _standing(self) -> DataFrame:
        """By election and stream: what the log has before its epoch, and in it or a later one."""
        return standing(self._tables, self._grounds, self._epochs)

    def seen(self) -> dict[int, list[WitnessedElection]]:
        """Every election that the conductor saw, by place; the final log may have nothing from its epoch.

        Such an election truncated everything at or above the first offset of the epoch that the log has before it.
        """
        starts: dict[int, dict[int, int]] = defaultdict(dict)
        for row in self._epochs.collect():
            starts[row["place"]][row["epoch"]] = row["start_offset"]
        found: dict[int, list[WitnessedElection]] = defaultdict(list)
        for number, place in enumerate(self._tables.places):
            final, grounds = place.final, self._grounds[place.run]
            for sighting in grounds.witness.sightings.get((final.topic, final.partition), ()):
                stands = max((epoch for epoch in starts[number] if epoch <= sighting.epoch), default=None)
                begins = 0 if stands is None else starts[number][stands]
                start = EpochStart(sighting.epoch, begins, NO_END, None, None)
                election = grounds.witness.election(final.topic, final.partition, start, grounds.settings)
                if election is not None and grounds.counts(final.topic, final.partition, election):
                    found[number].append(election)
        return found

    @cached_property
    def _epochs(self) -> DataFrame:
        """Every leader epoch in the final leaders' logs, and the first offset with that epoch or a later one."""
        batches = self._tables.segments.filter(
            F.col("is_leader") & (F.col("kind") == "batch") & (F.col("base_offset") < F.col("limit"))
        )
        epochs = batches.groupBy("place", F.col("leader_epoch").alias("epoch")).agg(F.min("base_offset").alias("start"))
        later = epochs.select("place", F.col("epoch").alias("other"), F.col("start").alias("other_start"))
        return (
            epochs.join(later, "place")
            .filter(F.col("other") >= F.col("epoch"))
            .groupBy("place", "epoch")
            .agg(F.min("other_start").alias("start_offset"))
            .cache()
        )

    @cached_property
    def _left_over(self) -> DataFrame:
        """By place, how many attempts to send a record left none in the final log: ``left_over``, at least 0.

        Reserved sequences count as handed over unless they are known not to have been, so that none of a killed process
        is missed. Each sentinel row is one attempt; most sequences reserved for sentinels are never used.
        """
        history = self._tables.history
        sequences, of_load = F.col("last_sequence") - F.col("first_sequence") + 1, F.col("stream") < SENTINEL_STREAM
        attempts = (
            F.when((F.col("f") == "reserve") & of_load, sequences)
            .when(F.col("f") == "sentinel", sequences)
            .when((F.col("f") == "unsent") & of_load, -sequences)
            .when(F.col("f") == "retry", F.greatest("count", F.lit(0)))
        )
        known = (F.col("f") == "retry") | well_formed()
        attempted = history.filter(known).groupBy("place").agg(F.sum(attempts).alias("attempts"))
        standing = self._tables.log.filter(F.col("stream").isNotNull()).groupBy("place")
        stored = standing.agg(F.sum(F.col("last_offset") - F.col("first_offset") + 1).alias("stored"))
        left_over = F.coalesce("attempts", F.lit(0)) - F.coalesce("stored", F.lit(0))
        return attempted.join(stored, "place", "left").select(
            "place", F.greatest(left_over, F.lit(0)).alias("left_over")
        )

    @cached_property
    def _elections(self) -> DataFrame:
        """The elections that the conductor also saw, with the times and offsets at which each can have truncated.

        If an election follows another one so closely that nothing is left of the epoch between them, it has two rows.
        The leader in between began somewhere above the start of the epoch that the log has before it
        (``reach_offset``), and what it stored there was truncated below the start of the next epoch. It stored nothing
        before that earlier epoch was last seen.
        """
        acks = self._told.filter(F.col("f") == "send")
        before = acks.join(F.broadcast(self._epochs), "place").filter(F.col("first_offset") < F.col("start_offset"))
        # resent or late values may have lower sequences than those below the epoch
        above = F.coalesce(F.col("first_offset") >= F.col("start_offset"), F.lit(True))
        in_epoch = (F.col("first_sequence") >= F.col("first_in_turn")) & above
        key = ["place", "epoch"]
        standing_in = self._standing.join(F.broadcast(self._epochs), key)
        after = acks.join(standing_in, ["place", "stream"]).filter(in_epoch)
        bounds = self._epochs.join(before.groupBy(*key).agg(F.max("invoke_ns").alias("earliest_ns")), key, "left").join(
            after.groupBy(*key).agg(F.min("complete_ns").alias("latest_ns")), key, "left"
        )
        bounds = bounds.join(self._left_over, "place")
        rows = []
        collected = bounds.collect()
        starts: dict[int, dict[int, int]] = defaultdict(dict)
        for row in collected:
            starts[row["place"]][row["epoch"]] = row["start_offset"]
        for row in collected:
            place = self._tables.places[row["place"]]
            grounds, final = self._grounds[place.run], place.final
            end_offset = row["start_offset"] + row["left_over"]
            start = EpochStart(row["epoch"], row["start_offset"], end_offset, row["earliest_ns"], row["latest_ns"])
            if grounds.witness.contradicts(final.topic, final.partition, start):
                self.contradicted.add((place.run, final.topic, final.partition, row["epoch"]))
            election = grounds.witness.election(final.topic, final.partition, start, grounds.settings)
            lower = {epoch: offset for epoch, offset in starts[row["place"]].items() if epoch < row["epoch"]}
            standing = max(lower, default=0)
            gone_ns = grounds.witness.first_after(final.topic, final.partition, standing)
            if election is None or not grounds.counts(final.topic, final.partition, election, gone_ns):
                continue
            election = grounds.bounded(final.topic, final.partition, election)
            # each epoch since the last one in the log may have had its own log, which is now gone
            known = {"place": row["place"], "logs": max(row["epoch"] - standing, 1), **election._asdict()}
            rows.append({**known, "reach_offset": row["start_offset"]})
            if row["epoch"] - standing > 1 and gone_ns is not None:
                below = {"reach_offset": lower.get(standing, 0), "end_offset": row["start_offset"]}
                below["logs"] = row["epoch"] - standing - 1
                rows.append({**known, **below, "from_ns": gone_ns - SLACK_NS, "before_ns": gone_ns})
        fields: list[tuple[str, pa.DataType]] = [("place", pa.int32()), ("epoch", pa.int32()), ("logs", pa.int32())]
        fields += [(name, pa.int64()) for name in WitnessedElection._fields if name != "epoch"]
        fields.append(("reach_offset", pa.int64()))
        return self._above_committed(self._spark.createDataFrame(pa.Table.from_pylist(rows, schema=pa.schema(fields))))

    def _above_committed(self, elections: DataFrame) -> DataFrame:
        """Electing an in-sync replica truncates nothing that is committed, that is, below a high watermark that a
        reader was told before the election. An unclean election may."""
        clean = [
            number
            for number, place in enumerate(self._tables.places)
            if not self._grounds[place.run].is_unclean(place.final.topic, place.final.partition)
        ]
        told_of = F.col("f").isin("poll", "idle") & (F.col("type") == "ok") & (F.col("high_watermark") >= 0)
        told = self._tables.history.filter(told_of & F.col("place").isin(clean))
        key = ["place", "epoch", "before_ns"]
        committed = (
            told.select("place", "high_watermark", "complete_ns")
            .join(F.broadcast(elections.select(*key).distinct()), "place")
            .filter(F.col("complete_ns") <= F.col("before_ns"))
            .groupBy(*key)
            .agg(F.max("high_watermark").alias("committed"))
        )
        reach = F.greatest("reach_offset", F.coalesce("committed", F.lit(0)))
        return elections.join(F.broadcast(committed), key, "left").withColumn("reach_offset", reach).drop("committed")

    @cached_property
    def cut_off(self) -> DataFrame:
        """What each election truncated, as events."""
        with_offset = (F.col("f") == "send") & F.col("offset").isNotNull()
        known = self._within_reach
        unplaced = known.filter(~with_offset).select("place", "stream", "sequence", "offset", "values", _about())
        return unplaced.unionByName(self._in_one_log(known.filter(with_offset)))

    @cached_property
    def _within_reach(self) -> DataFrame:
        """What clients were told near an election about sequences and offsets that its epoch does not have.

        ``contends``: whether this is the first election that reaches it.
        """
        near = F.col("complete_ns").between(F.col("from_ns"), F.col("until_ns"))
        of_elections = self._told.join(F.broadcast(self._elections), "place").filter(near)
        known = of_elections.join(self._standing, ["place", "stream", "epoch"], "left")
        has_offset = F.col("first_offset").isNotNull()
        at_start = F.col("first_sequence") + F.greatest(F.col("reach_offset") - F.col("first_offset"), F.lit(0))
        after_last = F.greatest(F.col("first_sequence"), F.coalesce(F.col("last_before") + 1, F.lit(0)))
        first = F.when(has_offset, at_start).otherwise(after_last)
        below_end = F.when(has_offset, F.col("first_sequence") + F.col("end_offset") - F.col("first_offset") - 1)
        in_flight = F.coalesce(F.col("invoke_ns") <= F.col("again_ns"), F.lit(False))
        first_in = F.when(in_flight, F.col("first_in_turn")).otherwise(F.col("first_in"))
        last = F.least(F.col("last_sequence"), first_in - 1, below_end)
        row = Window.partitionBy("place", "stream", "f", "first_sequence", "first_offset", "complete_ns")
        return (
            known.withColumns({"sequence": first, "last": last})
            .filter(F.col("sequence") <= F.col("last"))
            .withColumn("offset", F.col("first_offset") + F.col("sequence") - F.col("first_sequence"))
            .withColumn("values", F.col("last") - F.col("sequence") + 1)
            .withColumn("contends", F.col("epoch") == F.min("epoch").over(row))
        )

    def _in_one_log(self, acks: DataFrame) -> DataFrame:
        """Drops acknowledgements that name more values at one offset than there were truncated logs.

        A log has one value per offset. There were at most as many logs as epochs since the previous one in the final
        log. The value that the final log has at the offset was not truncated, and needs no other log.
        """
        key = ["place", "epoch"]
        value = F.struct("stream", (F.col("sequence") - F.col("offset")).alias("back")).cast(_VALUE)
        columns = (*key, "about_ns", "start_offset", "logs", "offset", "values", "contends")
        told = F.struct("about_ns", "start_offset", "logs", "value").alias("told")
        told_rows = acks.select(*columns, value.alias("value"), F.lit(None).cast(_VALUE).alias("stands"))
        together = cut(told_rows.unionByName(self._standing_within_reach, allowMissingColumns=True), key, "offset")
        named = F.collect_set(F.when(F.col("contends"), F.col("value")))
        said = pieces(
            together,
            key,
            "offset",
            F.collect_set(F.when(F.col("value").isNotNull(), told)).alias("told"),
            F.size(F.array_except(named, F.collect_set("stands"))).alias("named"),
        )
        return (
            said.withColumn("told", F.explode("told"))
            .filter(F.col("named") <= F.col("told.logs"))
            .select(*key, "offset", "values", "told.about_ns", "told.start_offset", "told.value.*")
            .select(
                "place", "stream", (F.col("offset") + F.col("back")).alias("sequence"), "offset", "values", _about(),
            )
        )  # fmt: skip

    @property
    def _standing_within_reach(self) -> DataFrame:
        """What the final log has where each election may have truncated something."""
        log = self._tables.log.filter(F.col("stream").isNotNull())
        reach = self._elections.groupBy("place", "epoch").agg(
            F.min("reach_offset").alias("from_offset"), F.max("end_offset").alias("to_offset")
        )
        within = (F.col("last_offset") >= F.col("from_offset")) & (F.col("first_offset") < F.col("to_offset"))
        back = (F.col("first_sequence") - F.col("first_offset")).alias("back")
        return (
            log.join(F.broadcast(reach), "place")
            .filter(within)
            .select(
                "place", "epoch", F.col("first_offset").alias("offset"),
                (F.col("last_offset") - F.col("first_offset") + 1).alias("values"),
                F.struct("stream", back).cast(_VALUE).alias("stands"),
            )
        )  # fmt: skip


def _about() -> Column:
    return event(F.col("about_ns"), F.col("epoch"), F.col("start_offset"))
