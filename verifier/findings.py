"""What all checks found: how they are asked together, and what found something again. Owns no check and no verdict.

Each check is a question; all are one job, so that a run in which nothing is found costs one. A check that raises fails
alone: the others are still asked.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier import anomaly_files, asking, collect, excuses, tables
from verifier.anomalies import ANOMALIES, NAMES
from verifier.checks.common import COLUMNS
from verifier.evidence.run_model import RunModel
from verifier.excuses import Excuses
from verifier.expectation import Expectation
from verifier.explain.events import event_text
from verifier.facts import Found

logger = logging.getLogger(__name__)

#: Questions that are asked at the same time.
THREADS = 2

#: The checks that are queries, in the order in which a report leads with them.
CHECKED = tuple(anomaly.name for anomaly in ANOMALIES if anomaly.asks_spark)

#: The question that holds what all checks found.
CHECKS = "checks"

#: Offsets in an anomaly's detail that move on with its values.
MOVING = frozenset(f"{end}_{source}" for end in ("first", "last") for source in ("ack", "log", "read"))


def answers_to(built: tables.Tables) -> tuple[dict[str, DataFrame], dict[str, asking.Rows], dict[str, str]]:
    """The checks; what Spark says of the ledger and to all of them, in one job; those that raised, with the reason.

    If the one job fails, each check is asked alone, so that one that raises silences no other.
    """
    needed = {"ledger": collect.ask_ledger(built)}
    deleted = collect.ask_deleted(built)
    if deleted is not None:
        needed["deleted"] = deleted
    checks: dict[str, DataFrame] = {}
    failures: dict[str, str] = {}
    for name in CHECKED:
        try:
            find = importlib.import_module(f"verifier.checks.{name.replace('-', '_')}").find
            checks[name] = find(built).select(*COLUMNS)
        except Exception as error:  # Spark raises many kinds; one check that fails must not take the others along
            logger.exception("check %s failed", name)
            failures[name] = asking.reason(error)
    empty: dict[str, asking.Rows] = {CHECKS: []}
    asked = {name: excuses.unexcused(anomalies) for name, anomalies in checks.items()}
    try:
        return checks, empty | asking.ask(needed | _counted(asked)), failures
    except Exception:  # Spark does not say which of the checks it was, so each is asked alone
        logger.warning("the checks fail together; each is asked alone", exc_info=True)
    answers = asking.ask(needed) | empty
    for name, anomalies in asked.items():
        try:
            answers[CHECKS] += asking.ask(_counted({name: anomalies}))[CHECKS]
        except Exception as error:  # as above: it becomes this check's failure, and the run is unknown
            logger.exception("check %s failed", name)
            failures[name] = asking.reason(error)
    return checks, answers, failures


def examined(
    checks: Mapping[str, DataFrame],
    rows: asking.Rows,
    models: Mapping[str, RunModel],
    looked_for: Excuses,
    places: Sequence[tables.Place],
) -> tuple[list[tuple[str, Found]], dict[str, dict[str, pa.Table]], dict[str, str]]:
    """What each check found, with the run; every anomaly, by check and run; the checks that raised.

    Only what found something is asked again, for all it found. What excuses an anomaly is looked for only where the
    settings of its run permit any of its kind.
    """
    expectations = {name: Expectation(model.settings) for name, model in models.items()}
    found_by = {name: [row for row in rows if row["check"] == name] for name in checks}

    def examine(name: str) -> tuple[asking.Rows, dict[str, pa.Table]]:
        judged, counted = excuses.unexcused(checks[name]), found_by[name]
        owners = {places[row["place"]].run for row in counted}
        if any(expectations[owner].asks_for(name) for owner in owners):
            judged = looked_for.split(name, checks[name])
            counted = asking.ask(_counted({name: judged}))[CHECKS]
        return counted, anomaly_files.collect(judged, places)

    counted: asking.Rows = []
    every: dict[str, dict[str, pa.Table]] = {}
    failures: dict[str, str] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for name, answer in [(name, pool.submit(examine, name)) for name in checks if found_by[name]]:
            try:
                own, every[name] = answer.result()
                counted += own
            except Exception as error:  # as above
                logger.exception("check %s failed", name)
                failures[name] = asking.reason(error)
    return _found(counted, places, models), every, failures


def _counted(checks: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """One question: how many anomalies there are of each kind.

    Anomalies (as ``Excuses.split`` gives them) are grouped by check, partition, cause, excuse and election. The first
    of each group is its example.
    """
    if not checks:
        return {}
    example = F.struct("offset", "stream", "sequence", F.col("size").alias("example_size"), "detail", "step", "event")
    together = reduce(DataFrame.union, [each.withColumn("check", F.lit(name)) for name, each in checks.items()])
    counted = together.groupBy("check", "place", "cause", "excuse", F.col("event.epoch").alias("epoch")).agg(
        F.sum("count").alias("count"),
        F.sum(F.col("count") * F.col("size")).alias("size"),
        F.min(example).alias("example"),
    )
    return {CHECKS: counted}


def _found(
    rows: asking.Rows, places: Sequence[tables.Place], models: Mapping[str, RunModel]
) -> list[tuple[str, Found]]:
    """The answer to ``_counted``, in the order of ``NAMES``, with the run of each."""
    found = []
    order = ("cause", "place", "excuse", "epoch")

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return NAMES.index(row["check"]), *((row[name] is not None, row[name] or 0) for name in order)

    for row in sorted(rows, key=key):
        place = places[row["place"]]
        values = row | row["example"]
        step, event, excuse = values.pop("step"), values.pop("event"), values["excuse"]
        del values["example"], values["place"], values["epoch"]
        values |= {"topic": place.final.topic, "partition": place.final.partition}
        values["detail"] = {
            name: value + step if name in MOVING and value is not None else value
            for name, value in json.loads(values["detail"] or "{}").items()
        }
        values["event"] = None if event is None else event_text(excuse, event, models[place.run])
        found.append((place.run, Found(**values)))
    return found
