"""Several questions as one job of Spark: what each costs by itself (planning, stages, tasks) is paid once.

A question is a DataFrame; its rows come back as dictionaries. Owns how questions are put together and answers taken
apart; what is asked is its callers' matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.spark.settings import is_tiny

#: The rows of an answer, as JSON has them.
QuestionRows = list[dict[str, Any]]

#: Characters of an error that are shown.
LONGEST_REASON = 300


def ask(questions: Mapping[str, DataFrame]) -> dict[str, QuestionRows]:
    """The rows of each, by name, in no order. Questions that raise make this raise."""
    if not questions:
        return {}
    told = [
        frame.select(
            F.lit(name).alias("question"),
            F.to_json(F.struct(*frame.columns), {"ignoreNullFields": "false"}).alias("row"),
        )
        for name, frame in questions.items()
    ]
    answers: dict[str, QuestionRows] = {name: [] for name in questions}
    for row in union(told).collect():
        answers[row["question"]].append(json.loads(row["row"]))
    return answers


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all (one at least).

    Halves are put together, for Spark analyzes each union with all that it is made of: one after the other, the first
    frame would be analyzed as often as there are others.
    """
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union(frames[:middle]).union(union(frames[middle:]))


def in_few_tasks(together: DataFrame) -> DataFrame:
    """The same rows, of many questions put together: in as few tasks as there are cores if the evidence is tiny.

    Each task is sent the plans of all of them, which Java then takes longer to read than the rows.
    """
    spark = together.sparkSession
    return together.coalesce(spark.sparkContext.defaultParallelism) if is_tiny(spark) else together


def reason(error: Exception) -> str:
    """One line that says why."""
    return (str(error).strip().splitlines() or [repr(error)])[0][:LONGEST_REASON]
