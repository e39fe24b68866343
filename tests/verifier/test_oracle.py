"""Spark's checks and the slow, obvious ones find the same in the same mutated runs.

All cases of a run of this test are judged in one Spark job, kept apart by the column ``run``.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.stories import Story
from tests.verifier import oracle
from tests.verifier.mutations import broken_stories
from verifier.anomalies import NAMES
from verifier.audit import RunEvidence, audit
from verifier.facts import Audit

CASES = 400 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 80


def draw_cases(count: int) -> list[tuple[str, Story]]:
    """Mutated stories, as hypothesis varies them: the simplest first."""
    cases: list[tuple[str, Story]] = []

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(broken_stories())
    def collect(case: tuple[str, Story]) -> None:
        cases.append(case)

    collect()
    return cases


def expected(anomalies: list[oracle.Anomaly]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The oracle's anomalies as Spark sums them up: how many, what they cover, and the first of them."""
    groups: dict[tuple[Any, ...], list[oracle.Anomaly]] = defaultdict(list)
    for each in anomalies:
        groups[each.check, each.cause, each.partition].append(each)

    def order(each: oracle.Anomaly) -> tuple[Any, ...]:
        numbers = (each.offset, each.stream, each.sequence)
        return tuple(number if number is not None else -1 for number in numbers)

    summed = {}
    for key, found in groups.items():
        first = min(found, key=order)
        total = sum(each.size for each in found)
        summed[key] = (len(found), total, first.stream, first.sequence, first.offset)
    return summed


def summed_up(audited: Audit) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The same of an audit."""
    return {
        (each.check, each.cause, each.partition): (each.count, each.size, each.stream, each.sequence, each.offset)
        for each in audited.found
    }


@pytest.mark.integration
def test_spark_and_the_oracle_agree_on_mutated_runs(spark: Any, tmp_path: Path) -> None:
    """Every check finds in every case exactly what its oracle finds, and every check is put to the test."""
    cases = draw_cases(CASES)
    runs, wanted = [], {}
    for number, (name, story) in enumerate(cases):
        directory = story.write(tmp_path / str(number))
        case = f"case {number}: {name}"
        runs.append(RunEvidence.of(directory, story.model(), case))
        wanted[case] = expected(oracle.find_all(directory))

    audits = audit(spark, runs)

    different = {
        case: (summed_up(audits[case]), wanted[case]) for case in wanted if summed_up(audits[case]) != wanted[case]
    }
    assert not different, report(different)
    assert not any(audited.failures for audited in audits.values())
    assert {check for found in wanted.values() for check, _, _ in found} == set(NAMES), (
        "a check was never put to the test"
    )


def report(different: dict[str, tuple[Any, Any]]) -> str:
    """The cases that differ, the simplest first."""
    lines = [f"{len(different)} cases differ"]
    for case, (found, wanted) in sorted(different.items(), key=lambda item: len(item[0]))[:5]:
        lines += [case, f"  Spark:  {sorted(found.items() - wanted.items())}"]
        lines += [f"  oracle: {sorted(wanted.items() - found.items())}"]
    return "\n".join(map(str, lines))
