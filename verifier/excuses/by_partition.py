"""What excuses anomalies of polls and batch headers, which have no single value to go by. Owns the questions to Spark.

If the settings permit them after a retry, any retry into the partition excuses them. If the settings permit them after
an unclean election, that election must have moved the reader, or the watermark that it was told:

- The reader or watermark reached its position before the old leader was certainly gone, and left it after the election
  may have begun.
- Right before it moved, the reader was handed a value that is no longer there; the watermark had risen above the offset
  at which the new epoch begins.

An example. A reader is handed offsets 0 to 59, the last by a leader whose log was cut off at 50, and then offset 50:
``nonmonotonic-poll``. Offset 59 of the final log holds another value than the one that it was handed, and the conductor
saw an election between the two polls: excused. If the reader had been handed the value that is at 59 now, no election
would have moved it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import COLUMNS
from verifier.excuses.event_rows import EVENT
from verifier.excuses.events import Events
from verifier.excuses.expectation import ELECTION, RETRY, Expectation
from verifier.tables import Tables
from verifier.witness.witness import WitnessedElection

#: By check and place (a partition of a run, by its number): whether a retry excuses anything there, and the elections.
_TIMES: list[tuple[str, pa.DataType]] = [(name, pa.int64()) for name in ("from_ns", "until_ns", "start_offset")]
_KNOWN: list[tuple[str, pa.DataType]] = [
    ("check", pa.string()),
    ("place", pa.int32()),
    ("again", pa.bool_()),
    ("elections", pa.list_(pa.struct(_TIMES))),
]
_POLLS = ("poll-skip", "int-poll-skip", "nonmonotonic-poll", "int-nonmonotonic-poll")


def by_partition(checks: Sequence[str], found: DataFrame, tables: Tables, events: Events) -> DataFrame:
    """The anomalies of these checks with the columns of ``Excuses.split``."""
    expectations = {run: Expectation(each.settings, by_order=each.by_order) for run, each in events.grounds.items()}
    asked = {
        (check, number): {each.excuse for each in expectations[place.run].allowances if each.check == check}
        for number, place in enumerate(tables.places)
        for check in checks
    }
    retried: set[int] = set()
    if any(RETRY in kinds for kinds in asked.values()):
        retried = {row["place"] for row in events.of(RETRY).select("place").distinct().collect()}
    elections = events.elections.seen() if any(ELECTION in kinds for kinds in asked.values()) else {}
    rows = [
        {
            "check": check,
            "place": number,
            "again": RETRY in kinds and number in retried,
            "elections": [_times(each) for each in elections.get(number, ())] if ELECTION in kinds else [],
        }
        for (check, number), kinds in asked.items()
    ]
    known = tables.replicas.sparkSession.createDataFrame(pa.Table.from_pylist(rows, schema=pa.schema(_KNOWN)))
    is_poll = F.col("check").isin(*_POLLS)
    moved = F.exists("elections", lambda each: _in_time(each) & (is_poll | (_detail("before") > each["start_offset"])))
    judged = (
        unexcused(found, "check")
        .join(F.broadcast(known), ["check", "place"], "left")
        .withColumn("moved", F.coalesce(moved, F.lit(False)))
    )
    if elections:
        judged = _was_cut_off(judged, is_poll, tables.log)
    excuse = F.when(F.col("moved"), ELECTION).when(F.col("again"), RETRY)
    return judged.withColumn("excuse", excuse).drop("moved", "again", "elections")


def unexcused(found: DataFrame, *more: str) -> DataFrame:
    """Anomalies of which none is excused, with the columns of ``Excuses.split`` and ``more`` of their own."""
    return found.select(
        *more,
        *COLUMNS,
        F.lit(None).cast("string").alias("excuse"),
        F.lit(None).cast(EVENT).alias("event"),
        F.lit(0).cast("bigint").alias("step"),
    )


def _times(election: WitnessedElection) -> dict[str, int]:
    return {name: getattr(election, name) for name, _ in _TIMES}


def _detail(name: str) -> Column:
    return F.get_json_object("detail", f"$.{name}").cast("bigint")


def _in_time(election: Column) -> Column:
    return (_detail("before_ns") <= election["until_ns"]) & (_detail("complete_ns") >= election["from_ns"])


def _was_cut_off(judged: DataFrame, is_poll: Column, log: DataFrame) -> DataFrame:
    """Sets ``moved`` to false for a reader whose last value is still in the log, or whose last value is not known."""
    at, log = _detail("expected") - 1, log.alias("log")
    stands = (
        is_poll
        & (F.col("found.place") == F.col("log.place"))
        & at.between(F.col("log.first_offset"), F.col("log.last_offset"))
        & (F.col("log.stream") == _detail("had_stream"))
        & (F.col("log.first_sequence") + at - F.col("log.first_offset") == _detail("had_sequence"))
    )
    known, rows = _detail("had_stream").isNotNull() | ~is_poll, judged.alias("found")
    gone = rows.join(log, stands, "left_anti").withColumn("moved", F.col("moved") & known)
    return gone.unionByName(rows.join(log, stands, "left_semi").withColumn("moved", F.lit(False)))
