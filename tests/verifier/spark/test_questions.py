"""Many questions as one job; and a check that raises, which fails alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.verifier.planted import PLANTED, planted_story
from tests.verifier.planted.changes import remove
from verifier import findings
from verifier.run_checks import RunEvidence, audit, staged
from verifier.spark.questions import ask

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_answers_are_told_apart(spark: Any) -> None:
    """Each question has its own columns and rows, nulls and large numbers included; none is an answer too."""
    large = (1 << 63) - 1
    answers = ask(
        {
            "numbers": spark.sql(f"select * from values ({large}L, null), (-1L, 'x') as t(a, b)"),
            "nothing": spark.sql("select 1 as a where false"),
            "nested": spark.sql("select named_struct('c', true, 'd', cast(null as int)) as e"),
        }
    )
    assert sorted(answers["numbers"], key=lambda row: row["a"]) == [{"a": -1, "b": "x"}, {"a": large, "b": None}]
    assert answers["nothing"] == []
    assert answers["nested"] == [{"e": {"c": True, "d": None}}]
    assert ask({}) == {}


def test_a_check_that_raises_fails_alone(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is planned or while it runs: it is named with the reason, and all others are answered."""
    from pyspark.sql import functions as F

    from verifier.checks import log_gap, unseen

    find = unseen.find

    def broken(tables: Any) -> Any:
        found = find(tables)
        return found.withColumn("count", F.raise_error(F.lit("this check is broken")).cast("bigint")).union(
            tables.replicas.selectExpr(
                "place", "string(null)", "0L", "0L", "0L", "bigint(raise_error('this check is broken'))", "0L", "''"
            )
        )

    def unplanned(tables: Any) -> Any:
        raise LookupError("no such column")

    # each of them is asked alone in the end, which costs a second of processor time
    checked = ("lost-write", "inconsistent-offsets", "log-gap", "unseen", "sequence-gap")
    monkeypatch.setattr(findings, "CHECKED", checked)
    monkeypatch.setattr(unseen, "find", broken)
    monkeypatch.setattr(log_gap, "find", unplanned)
    name = "lost in the middle"
    story = planted_story(name)
    # a check that suspects nothing is not asked
    remove(story, "poll", (1, 1), "final-1")
    run = RunEvidence.of(story.write(tmp_path / "run"), story.model())
    (judged,) = audit(spark, [run], here=staged(tmp_path / "rows", [run])).values()
    assert set(judged.failures) == {"unseen", "log-gap"}
    assert judged.failures["log-gap"] == "no such column"
    assert "this check is broken" in judged.failures["unseen"]
    expected = {key for key in PLANTED[name].expected if key[0] not in judged.failures}
    assert {key[0] for key in expected} == set(checked) - set(judged.failures)
    assert {(each.check, each.cause) for each in judged.found} == expected
    assert sum(region.values for region in judged.regions) == judged.facts.acked
