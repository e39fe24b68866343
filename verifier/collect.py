"""The facts of a run: counts, not rows.

Owns the questions (``ask_...``: what Spark is to be asked, see ``verifier.spark.questions``) and how the answers are
read, not what follows from them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.claims import LOG, well_formed
from verifier.evidence.run_model import RunModel
from verifier.facts import Facts, Gap, Mistimed, ReaderReach, Region, ReplicaFiles, Untold
from verifier.places import NAMED, Place
from verifier.spark.questions import QuestionRows
from verifier.tables import Tables


def ask_history(history: DataFrame) -> DataFrame:
    """One pass over the histories: what was told, by whom, how far readers came, how the files ended."""
    values = F.col("last_sequence") - F.col("first_sequence") + 1
    concerns_values = F.col("f").isin("send", "sentinel", "unsent", "reserve") | (
        (F.col("f") == "poll") & (F.col("stream") >= 0)
    )
    summed = F.sum(F.when(concerns_values & well_formed(), values).otherwise(0))
    return history.groupBy("run", "process", "file", "f", "type", "phase", "topic", "partition").agg(
        summed.alias("values"),
        F.sum(F.when(concerns_values & ~well_formed(), 1).otherwise(0)).alias("malformed"),
        F.max("last_offset").alias("last_offset"),
        F.max("last_sequence").alias("last_sequence"),
        F.max("error").alias("error"),
    )


def history_facts(rows: QuestionRows, models: Mapping[str, RunModel]) -> dict[str, Facts]:
    """The facts of each run, from the answer to ``ask_history``."""
    by_run: dict[str, QuestionRows] = defaultdict(list)
    for row in rows:
        by_run[row["run"]].append(row)
    return {run: _facts_of(run, model, by_run[run]) for run, model in models.items()}


def _facts_of(run: str, model: RunModel, rows: Sequence[dict[str, Any]]) -> Facts:
    def total(f: str, outcome: str, phase: str | None = None) -> int:
        chosen = (row for row in rows if row["f"] == f and row["type"] == outcome and phase in (None, row["phase"]))
        return sum(int(row["values"]) for row in chosen)

    # each of them is handed a part; how far a group is behind is another question
    members = {process.name for process in model.evidence.of_role("members")}
    return Facts(
        acked=total("send", "ok"),
        unknown=total("send", "info"),
        failed=total("send", "fail"),
        never_sent=total("unsent", "fail"),
        read=total("poll", "ok"),
        final_read=total("poll", "ok", "final"),
        malformed_rows=sum(int(row["malformed"]) for row in rows),
        readers=tuple(_readers(run, model, rows)),
        live_readers=tuple(
            sorted({row["process"] for row in rows if (row["f"], row["phase"]) == ("poll", "load")} - members)
        ),
    )


def _readers(run: str, model: RunModel, rows: Sequence[dict[str, Any]]) -> list[ReaderReach]:
    polls = [row for row in rows if (row["f"], row["type"], row["phase"]) == ("poll", "ok", "final")]
    bits = {process: 1 << index for index, process in enumerate(sorted({row["process"] for row in polls}))}
    isolated = {row["process"] for row in rows if row["f"] == "isolation"}
    sentinels = {(final.topic, final.partition): final.sentinel_offset for final in model.final}
    reached: dict[tuple[str, str, int], int] = {}
    for row in polls:
        place = (row["process"], row["topic"], int(row["partition"]))
        reached[place] = max(reached.get(place, -1), int(row["last_offset"]))
    found = []
    for (process, topic, partition), last_offset in sorted(reached.items()):
        sentinel = sentinels.get((topic, partition))
        complete = sentinel is not None and last_offset >= sentinel
        # the 63rd reader and all after it share no bit with another: completeness refuses such a run
        bit = bits[process] if bits[process] < 1 << 62 else 0
        found.append(ReaderReach(run, process, topic, partition, bit, last_offset, complete, process in isolated))
    return found


def ask_segments(segments: DataFrame) -> DataFrame:
    """What was read of every replica."""
    is_file, is_batch = F.col("kind") == "file", F.col("kind") == "batch"
    sound = F.col("problem").isNull()
    of_load = (F.col("kind") == "span") & ~F.col("sentinel") & F.col("value_problem").isNull() & sound
    numbered = (F.col("producer_id") >= 0) & (F.col("producer_epoch") >= 0) & (F.col("base_sequence") >= 0)
    return (
        segments.filter(is_file | is_batch | of_load)
        .groupBy(*NAMED, "broker")
        .agg(
            F.count(F.when(is_file, 1)).alias("files"),
            F.sum(F.when(is_file, F.col("size_bytes")).otherwise(0)).alias("size_bytes"),
            F.sum(F.when(is_file, F.col("position")).otherwise(0)).alias("walked_bytes"),
            F.count(F.when(is_batch, 1)).alias("batches"),
            F.sum(F.when(is_batch, F.col("size_bytes")).otherwise(0)).alias("batch_bytes"),
            F.max(F.when(is_file | is_batch, F.col("next_offset"))).alias("next_offset"),
            F.coalesce(F.max(F.when(is_batch & sound, F.col("leader_epoch"))), F.lit(-1)).alias("leader_epoch"),
            F.count(F.when(of_load & numbered, 1)).alias("numbered"),
            F.count(F.when(of_load & ~numbered, 1)).alias("unnumbered"),
        )
    )


def replica_files(rows: QuestionRows) -> dict[str, tuple[ReplicaFiles, ...]]:
    """What was read of every replica, by run, from the answer to ``ask_segments``."""
    found: dict[str, list[ReplicaFiles]] = defaultdict(list)
    for row in rows:
        fields = {name: row[name] for name in ReplicaFiles.__slots__}
        found[row["run"]].append(ReplicaFiles(**fields))
    return {run: tuple(sorted(files, key=lambda f: (f.topic, f.partition, f.broker))) for run, files in found.items()}


def ask_ledger(tables: Tables) -> DataFrame:
    """The load's values by what was told, what is on disk and what a final reader saw; and where the sentinels are."""
    logged, seen = F.col("copies") > 0, F.col("seen") != 0
    step = F.col("sentinel_offset") - F.col("first_log")
    sentinel_here = F.col("sentinel") & logged & (step >= 0) & (step < F.col("values"))
    grouped = tables.ledger.groupBy("place", "sentinel", "acked", logged.alias("logged"), seen.alias("was_seen"))
    return grouped.agg(
        F.sum("values").alias("values"), F.max(F.coalesce(sentinel_here, F.lit(False))).alias("sentinel_here")
    )


def regions(
    rows: QuestionRows, places: Sequence[Place]
) -> tuple[dict[str, tuple[Region, ...]], dict[str, frozenset[tuple[str, int]]]]:
    """From the answer to ``ask_ledger``, by run: the regions, and the partitions whose sentinel is in place.

    A sentinel is in place if the final leader's log holds it where it was acknowledged.
    """
    values: dict[str, Counter[tuple[bool, bool, bool]]] = defaultdict(Counter)
    sentinels: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in rows:
        place = places[row["place"]]
        if row["sentinel_here"]:
            sentinels[place.run].add((place.final.topic, place.final.partition))
        if not row["sentinel"]:
            values[place.run][row["acked"], row["logged"], row["was_seen"]] += row["values"]
    return (
        {run: tuple(Region(*region, count) for region, count in counts.items()) for run, counts in values.items()},
        {run: frozenset(partitions) for run, partitions in sentinels.items()},
    )


def ask_mistimed(tables: Tables) -> DataFrame:
    """Acknowledged rows whose beginning is not when their values say that they were sent, counted by place.

    The log has the send time of the first value of each span. A stream's values are due one after the other, so what
    lies between two of them was sent between.
    """
    told = tables.history.filter(F.col("f").isin("send", "sentinel") & (F.col("type") == "ok") & well_formed())
    rows = told.select("place", "stream", F.col("first_sequence").alias("sequence"), "invoke_ns")
    stored = tables.log.filter(F.col("stream").isNotNull() & F.col("sent_ns").isNotNull())
    sent = stored.select("place", "stream", F.col("first_sequence").alias("sequence"), "sent_ns")
    both = rows.withColumn("sent_ns", F.lit(None).cast("bigint")).unionByName(
        sent.withColumn("invoke_ns", F.lit(None).cast("bigint"))
    )
    key = Window.partitionBy("place", "stream")
    to_here = Window.unboundedPreceding, Window.currentRow
    lower = F.max("sent_ns").over(key.orderBy("sequence").rangeBetween(*to_here))
    upper = F.min("sent_ns").over(key.orderBy(F.desc("sequence")).rangeBetween(*to_here))
    wrong = both.withColumns({"lower": lower, "upper": upper}).filter(
        (F.col("invoke_ns") < F.col("lower")) | (F.col("invoke_ns") > F.col("upper"))
    )
    first = F.min(F.struct("stream", "sequence", "invoke_ns", F.coalesce("lower", "upper").alias("sent_ns")))
    return wrong.groupBy("place").agg(F.count("invoke_ns").alias("count"), first.alias("first"))


def mistimed(rows: QuestionRows, places: Sequence[Place]) -> dict[str, tuple[Mistimed, ...]]:
    """By run, from ``ask_mistimed``."""
    found: dict[str, list[Mistimed]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["place"])):
        place, first = places[row["place"]], row["first"]
        numbers = (int(first[name]) for name in ("stream", "sequence", "invoke_ns", "sent_ns"))
        found[place.run].append(Mistimed(place.final.topic, place.final.partition, int(row["count"]), *numbers))
    return {run: tuple(each) for run, each in found.items()}


def ask_due(tables: Tables) -> DataFrame | None:
    """Where the last value stands that was acknowledged without an offset by ``due_ns``; None if there can be none.

    Of each stream that is the last one that the final log has; of its copies, the first.
    """
    if all(place.due_ns < 0 for place in tables.places):
        return None
    told = tables.history.filter((F.col("f") == "send") & (F.col("type") == "ok") & well_formed())
    nowhere = told.filter((F.col("first_offset") < 0) & F.col("complete_ns").between(0, F.col("due_ns")))
    last = nowhere.groupBy("place", "stream").agg(F.max("last_sequence").alias("due"))
    stored = tables.log.join(last, ["place", "stream"]).filter(F.col("first_sequence") <= F.col("due"))
    step = F.least(F.col("last_offset") - F.col("first_offset"), F.col("due") - F.col("first_sequence"))
    ends = F.struct((F.col("first_sequence") + step).alias("sequence"), (-F.col("first_offset") - step).alias("back"))
    by_stream = stored.groupBy("place", "stream").agg(F.max(ends).alias("end"))
    return by_stream.groupBy("place").agg(F.max(-F.col("end.back")).alias("offset"))


def due(rows: QuestionRows, places: Sequence[Place]) -> dict[str, dict[tuple[str, int], int]]:
    """The offset of what was acknowledged without one and is due, by run and partition, from ``ask_due``."""
    found: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for row in rows:
        place = places[row["place"]]
        found[place.run][place.final.topic, place.final.partition] = int(row["offset"])
    return found


def ask_deleted(tables: Tables) -> DataFrame | None:
    """Acknowledged values that were deleted on purpose, by run; None if nothing was to be deleted."""
    if not any(place.from_offset for place in tables.places):
        return None
    told = tables.history.filter((F.col("f") == "send") & (F.col("type") == "ok") & well_formed())
    below = F.least(F.col("last_offset") + 1, F.col("from_offset")) - F.col("first_offset")
    gone = told.filter((F.col("first_offset") >= 0) & (below > 0))
    return gone.groupBy("run").agg(F.sum(below).alias("deleted"))


def ask_untold(tables: Tables) -> DataFrame:
    """The producer ids in the final leaders' logs that no row of the value's stream tells about.

    Of a stream with a producer instance that was never told its id, nothing is known: it may have ended before.
    """
    told = tables.history.filter((F.col("stream") >= 0) & F.col("f").isin("send", "incarnation"))
    key = ["place", "stream"]
    has_id = F.col("producer_id") >= 0
    unaware = told.groupBy(*key, "incarnation").agg(
        F.max((F.col("f") == "incarnation") & (F.col("type") == "invoke")).alias("begun"), F.max(has_id).alias("knows")
    )
    unaware = unaware.filter(F.col("begun") & ~F.col("knows")).select(*key).distinct()
    of_load = F.col("stream").isNotNull() & ~F.col("sentinel")
    stored = tables.claims.filter((F.col("source") == LOG) & of_load & has_id)
    return (
        stored.select(*key, "producer_id")
        .distinct()
        .join(told.filter(has_id).select(*key, "producer_id").distinct(), [*key, "producer_id"], "left_anti")
        .join(unaware, key, "left_anti")
    )


def untold(rows: QuestionRows, places: Sequence[Place]) -> dict[str, tuple[Untold, ...]]:
    """From the answer to ``ask_untold``, by run."""
    found: dict[str, list[Untold]] = defaultdict(list)
    for row in rows:
        place = places[row["place"]]
        found[place.run].append(Untold(place.final.topic, place.final.partition, row["stream"], row["producer_id"]))
    return {run: tuple(sorted(each)) for run, each in found.items()}


def ask_gaps(history: DataFrame) -> DataFrame:
    """The longest time between two acknowledgements in each partition, and the first and the last one."""
    acks = history.filter((F.col("f") == "send") & (F.col("type") == "ok") & (F.col("complete_ns") >= 0))
    before = F.lag("complete_ns").over(Window.partitionBy(*NAMED).orderBy("complete_ns"))
    gap = F.struct((F.col("complete_ns") - F.col("before_ns")).alias("longest_ns"), "before_ns", "complete_ns")
    return (
        acks.select(*NAMED, "complete_ns")
        .withColumn("before_ns", before)
        .groupBy(*NAMED)
        .agg(
            F.max(F.when(F.col("before_ns").isNotNull(), gap)).alias("gap"),
            F.min("complete_ns").alias("first_ns"),
            F.max("complete_ns").alias("last_ns"),
        )
    )


def gaps(rows: QuestionRows) -> dict[str, tuple[Gap, ...]]:
    """The longest time without an acknowledgement in each partition, by run, from the answer to ``ask_gaps``.

    Counted between the first and the last acknowledgement of the whole load, so that a partition that came late or
    stopped early shows it.
    """
    begin_ns: dict[str, int] = {}
    end_ns: dict[str, int] = {}
    for row in rows:
        begin_ns[row["run"]] = min(begin_ns.get(row["run"], row["first_ns"]), row["first_ns"])
        end_ns[row["run"]] = max(end_ns.get(row["run"], row["last_ns"]), row["last_ns"])
    found: dict[str, list[Gap]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["topic"], row["partition"])):
        run = row["run"]
        spans = [(begin_ns[run], row["first_ns"]), (row["last_ns"], end_ns[run])]
        if row["gap"] is not None:
            spans.append((row["gap"]["before_ns"], row["gap"]["complete_ns"]))
        start, end = max(spans, key=lambda span: span[1] - span[0])
        found[run].append(Gap(row["topic"], row["partition"], end - start, start, end))
    return {run: tuple(each) for run, each in found.items()}
