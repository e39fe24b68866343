"""Runs several queries as one Spark job, so that Spark plans and schedules only once.

A question is a DataFrame, and its rows are returned as dictionaries. Owns how questions are combined and their answers
separated again. Does not own the questions: the callers build them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.spark.settings import is_tiny

#: The rows of an answer, with JSON values.
QuestionRows = list[dict[str, Any]]

#: The most characters of an error that ``reason`` returns.
LONGEST_REASON = 300


def ask(questions: Mapping[str, DataFrame]) -> dict[str, QuestionRows]:
    """The rows of each question, by its name, in any order. Raises whatever Spark raises for one of them."""
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
    """The rows of all frames. ``frames`` must not be empty.

    Built as a balanced tree. Spark analyzes each union with everything below it, so in a chain of unions the first
    frame would be analyzed once for each of the others.
    """
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union(frames[:middle]).union(union(frames[middle:]))


def in_few_tasks(together: DataFrame) -> DataFrame:
    """The same rows. If the evidence is tiny, they are computed in at most one task per core.

    Each task receives the plans of all combined questions. For tiny evidence, Java needs more time to read the plans
    than to read the rows.
    """
    spark = together.sparkSession
    return together.coalesce(spark.sparkContext.defaultParallelism) if is_tiny(spark) else together


def reason(error: Exception) -> str:
    """The first line of an error's message."""
    return (str(error).strip().splitlines() or [repr(error)])[0][:LONGEST_REASON]
