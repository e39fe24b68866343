"""What all checks found: how they are asked together, and what found something again. Owns no check and no verdict.

Each check is a query; all are one job, and what they find is kept, so that none is computed twice. A check that raises
fails alone: the others are still asked.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier import collect, tables
from verifier.anomalies import ANOMALIES, NAMES
from verifier.checks.common import COLUMNS
from verifier.evidence.run_model import RunModel
from verifier.excuses import by_partition
from verifier.excuses.by_value import Excuses
from verifier.excuses.expectation import Expectation
from verifier.explain.events import event_text
from verifier.facts import Found
from verifier.places import Place
from verifier.spark import questions
from verifier.telling import anomaly_files

logger = logging.getLogger(__name__)

#: Queries that are prepared, or asked, at the same time.
THREADS = 2

#: The checks that are queries, in the order in which a report leads with them.
CHECKED = tuple(anomaly.name for anomaly in ANOMALIES if anomaly.asks_spark)

#: The name under which ``Answers.rows`` has what all checks found.
CHECKS = "checks"

#: Of an anomaly that was judged, what is collected.
_JUDGED = ("check", *COLUMNS, "excuse", "event")


@dataclass(frozen=True, slots=True)
class Answers:
    """What Spark said: ``found`` has every anomaly of every check (``check``, ``COLUMNS``), computed once.

    ``rows`` are the answers by question, ``failures`` the checks that raised, with the reason.
    """

    found: DataFrame | None
    rows: dict[str, questions.QuestionRows]
    failures: dict[str, str]


def answers_to(built: tables.Tables, names: Sequence[str] = CHECKED) -> Answers:
    """Asks Spark for the ledger and for the checks of these names.

    The checks are one job. If it fails, each is asked alone, so that one that raises silences no other.
    """
    asked = {
        "ledger": collect.ask_ledger(built),
        "untold": collect.ask_untold(built),
        "deleted": collect.ask_deleted(built),
        "due": collect.ask_due(built),
        "mistimed": collect.ask_mistimed(built),
    }
    needed = {name: question for name, question in asked.items() if question is not None}
    checks, failures = _queries(built, names)
    empty: dict[str, questions.QuestionRows] = {CHECKS: []}
    try:
        found = _together(list(checks.values()))
        if found is not None:
            found = built.made(questions.in_few_tasks(found), CHECKS)
        counted = _counted(None if found is None else _unexcused(found))
        return Answers(found, empty | questions.ask(needed | counted), failures)
    except Exception:  # Spark does not say which of the checks it was, so each is asked alone
        logger.warning("the checks fail together; each is asked alone", exc_info=True)
    answers = questions.ask(needed) | empty
    alone = []
    for name, anomalies in checks.items():
        try:
            own = built.made(anomalies, f"{CHECKS}-{name}")
            answers[CHECKS] += questions.ask(_counted(_unexcused(own)))[CHECKS]
            alone.append(own)
        except Exception as error:  # as above: it becomes this check's failure, and the run is unknown
            logger.exception("check %s failed", name)
            failures[name] = questions.reason(error)
    return Answers(_together(alone), answers, failures)


def _queries(built: tables.Tables, names: Sequence[str]) -> tuple[dict[str, DataFrame], dict[str, str]]:
    """The query of each check, and the checks that raised with the reason.

    Spark analyzes a query in the thread that makes it, so two threads prepare them faster.
    """

    def query(name: str) -> DataFrame:
        find = importlib.import_module(f"verifier.checks.{name.replace('-', '_')}").find
        return find(built).select(F.lit(name).alias("check"), *COLUMNS)

    checks: dict[str, DataFrame] = {}
    failures: dict[str, str] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for name, made in [(name, pool.submit(query, name)) for name in names]:
            try:
                checks[name] = made.result()
            except Exception as error:  # Spark raises many kinds; one check that fails must not take the others along
                logger.exception("check %s failed", name)
                failures[name] = questions.reason(error)
    return checks, failures


def examined(
    answers: Answers, models: Mapping[str, RunModel], looked_for: Excuses, built: tables.Tables
) -> tuple[list[tuple[str, Found]], dict[str, dict[str, pa.Table]], dict[str, str]]:
    """What each check found, with the run; every anomaly, by check and run; the checks that raised.

    What excuses an anomaly is looked for only where the settings of its run permit any of its kind.
    """
    if answers.found is None or not answers.rows[CHECKS]:
        return [], {}, {}
    found, places = answers.found, built.places
    expectations = {name: Expectation.of(model) for name, model in models.items()}
    owners: dict[str, set[str]] = defaultdict(set)
    for row in answers.rows[CHECKS]:
        owners[row["check"]].add(places[row["place"]].run)
    asked = [name for name in owners if any(expectations[run].can_allow(name) for run in owners[name])]
    plain = sorted(set(owners) - set(asked))
    counted = [row for row in answers.rows[CHECKS] if row["check"] in plain]
    parts = [_unexcused(found.filter(F.col("check").isin(plain)))] if plain else []
    judged, own, failures = _judged(asked, found, looked_for, built)
    parts += judged
    counted += own
    together = _together([part.select(*_JUDGED) for part in parts])
    most = sum(row["rows"] for row in counted)
    names = sorted({row["check"] for row in counted})

    def words(run: str, excuse: str, event: Mapping[str, Any]) -> str:
        return event_text(excuse, event, models[run])

    every = {} if together is None else anomaly_files.collect(together, names, most, places, words)
    return _found(counted, places, models), every, failures


def _judged(
    checks: Sequence[str], found: DataFrame, looked_for: Excuses, built: tables.Tables
) -> tuple[list[DataFrame], questions.QuestionRows, dict[str, str]]:
    """What these checks found, with what excuses it; the same counted; those that raised.

    All are one job. If it fails, each is asked alone, so that one that raises silences no other.
    """
    judged: list[DataFrame] = []
    counted: questions.QuestionRows = []
    failures: dict[str, str] = {}

    def judge(names: Sequence[str], name: str) -> None:
        own = built.made(questions.in_few_tasks(looked_for.split(names, found)), name)
        counted.extend(questions.ask(_counted(own))[CHECKS])
        judged.append(own)

    try:
        if checks:
            judge(checks, "judged")
        return judged, counted, failures
    except Exception:  # whatever one check raises, the others are asked
        logger.warning("the excuses fail together; each is looked for alone", exc_info=True)
    for name in checks:
        try:
            judge([name], f"judged-{name}")
        except Exception as error:  # of this check alone
            logger.exception("check %s failed", name)
            failures[name] = questions.reason(error)
    return judged, counted, failures


def _together(frames: Sequence[DataFrame]) -> DataFrame | None:
    return questions.union(frames) if frames else None


def _unexcused(found: DataFrame) -> DataFrame:
    return by_partition.unexcused(found, "check")


def _counted(judged: DataFrame | None) -> dict[str, DataFrame]:
    """One question: how many anomalies there are of each kind, and in how many ``rows`` they are described.

    Anomalies (as ``Excuses.split`` gives them, with ``check``) are grouped by check, partition, cause, excuse and
    election. The first of each group is its example.
    """
    if judged is None:
        return {}
    example = F.struct("offset", "stream", "sequence", F.col("size").alias("example_size"), "detail", "step", "event")
    counted = judged.groupBy("check", "place", "cause", "excuse", F.col("event.epoch").alias("epoch")).agg(
        F.sum("count").alias("count"),
        F.sum(F.col("count") * F.col("size")).alias("size"),
        F.count("*").alias("rows"),
        F.min(example).alias("example"),
    )
    return {CHECKS: counted}


def _found(
    rows: questions.QuestionRows, places: Sequence[Place], models: Mapping[str, RunModel]
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
        del values["example"], values["place"], values["rows"]
        values |= {"topic": place.final.topic, "partition": place.final.partition}
        values["detail"] = anomaly_files.moved(json.loads(values["detail"] or "{}"), step)
        values["event_ns"] = None if event is None else event["at_ns"]
        values["event"] = None if event is None else event_text(excuse, event, models[place.run])
        found.append((place.run, Found(**values)))
    return found
