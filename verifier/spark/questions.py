"""Several questions as one Spark job, so that planning, stages and tasks are paid for once.

A question is a DataFrame; its rows come back as dictionaries. Owns how questions are combined and their answers
separated again. Callers decide what is asked.
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

#: How many characters of an error are shown.
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
    """The rows of all frames, of which there is at least one.

    Built as a balanced tree. Spark analyzes each union with everything below it, so in a chain of unions the first
    frame would be analyzed once for each of the others.
    """
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union(frames[:middle]).union(union(frames[middle:]))


def in_few_tasks(together: DataFrame) -> DataFrame:
    """The same rows of many combined questions; if the evidence is tiny, in no more tasks than there are cores.

    Each task receives the plans of all questions, and reading those then takes Java longer than reading the rows.
    """
    spark = together.sparkSession
    return together.coalesce(spark.sparkContext.defaultParallelism) if is_tiny(spark) else together


def reason(error: Exception) -> str:
    """One line that says why."""
    return (str(error).strip().splitlines() or [repr(error)])[0][:LONGEST_REASON]
