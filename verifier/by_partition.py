"""What excuses anomalies of polls and batch headers, which have no single value to go by. Owns the questions to Spark.

Where the settings call for a retry, any into the partition excuses them. Where they call for an election (an unclean
one), it must have moved the reader, or the watermark that it was told:

- It had come there before the old leader was surely gone, and continues after it may have been replaced.
- A reader was last handed a value that no longer is there. A watermark had come above what was cut off.

An example. A reader is handed offsets 0 to 59, the last by a leader whose log was cut off at 50, and then offset 50:
``nonmonotonic-poll``. Offset 59 of the final log holds another value than the one that it was handed, and the conductor
saw an election between the two polls: excused. Had it been handed what is at 59, nothing would have moved it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import COLUMNS
from verifier.event_rows import EVENT
from verifier.events import Events
from verifier.expectation import ELECTION, RETRY, Expectation
from verifier.tables import Place, Tables
from verifier.witness import WitnessedElection

_POLLS = ("poll-skip", "int-poll-skip", "nonmonotonic-poll", "int-nonmonotonic-poll")


def by_partition(check: str, found: DataFrame, tables: Tables, events: Events) -> DataFrame:
    """The anomalies with the columns of ``Excuses.split``."""
    asked = [_asked(place, check, events) for place in tables.places]
    retried = {row["place"] for row in events.of(RETRY).select("place").distinct().collect()}
    again, moved = F.lit(False), F.lit(False)
    elections = events.elections.seen() if any(ELECTION in each for each in asked) else {}
    for number, kinds in enumerate(asked):
        here = F.col("place") == number
        if RETRY in kinds and number in retried:
            again |= here
        for election in elections.get(number, ()) if ELECTION in kinds else ():
            moved |= here & F.coalesce(_in_time(election) & _reached(check, election), F.lit(False))
    judged = unexcused(found).withColumn("moved", moved)
    if check in _POLLS and elections:
        judged = _was_cut_off(judged, tables.log)
    return judged.withColumn("excuse", F.when(F.col("moved"), ELECTION).when(again, RETRY)).drop("moved")


def unexcused(found: DataFrame, *more: str) -> DataFrame:
    """Anomalies of which none is excused, with the columns of ``Excuses.split`` and ``more`` of their own."""
    return found.select(
        *more,
        *COLUMNS,
        F.lit(None).cast("string").alias("excuse"),
        F.lit(None).cast(EVENT).alias("event"),
        F.lit(0).cast("bigint").alias("step"),
    )


def _asked(place: Place, check: str, events: Events) -> set[str]:
    settings = events.grounds[place.run].settings
    return {each.excuse for each in Expectation(settings).allowances if each.check == check}


def _detail(name: str) -> Column:
    return F.get_json_object("detail", f"$.{name}").cast("bigint")


def _in_time(election: WitnessedElection) -> Column:
    return (_detail("before_ns") <= election.until_ns) & (_detail("complete_ns") >= election.from_ns)


def _reached(check: str, election: WitnessedElection) -> Column:
    return F.lit(True) if check in _POLLS else _detail("before") > election.start_offset


def _was_cut_off(judged: DataFrame, log: DataFrame) -> DataFrame:
    """Not ``moved`` is a reader that was last handed what still is there, or of which that is not known."""
    at, log = _detail("expected") - 1, log.alias("log")
    stands = (
        (F.col("found.place") == F.col("log.place"))
        & at.between(F.col("log.first_offset"), F.col("log.last_offset"))
        & (F.col("log.stream") == _detail("had_stream"))
        & (F.col("log.first_sequence") + at - F.col("log.first_offset") == _detail("had_sequence"))
    )
    known, rows = _detail("had_stream").isNotNull(), judged.alias("found")
    gone = rows.join(log, stands, "left_anti").withColumn("moved", F.col("moved") & known)
    return gone.unionByName(rows.join(log, stands, "left_semi").withColumn("moved", F.lit(False)))
