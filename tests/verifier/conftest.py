"""One Spark session, and one audit of all planted and mutated runs, for all tests of this directory.

A session costs seconds and half a gigabyte, a job most of a second: hundreds of small runs are judged in one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.stories import Story, clean
from tests.verifier.mutations import MUTATIONS, broken_stories
from tests.verifier.planted import PLANTED, planted_story
from verifier.audit import RunEvidence, audit, staged
from verifier.evidence.run_directory import RunDirectory
from verifier.facts import Audit

#: Cases with several mutations that hypothesis draws, besides each mutation alone.
DRAWN = 400 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 40


@dataclass(frozen=True)
class Judged:
    """One run that was judged, with its files."""

    story: Story
    directory: RunDirectory
    audit: Audit


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running ``SparkSession``; its JVM is gone when the tests are."""
    from verifier import spark as sessions

    with sessions.session(tmp_path_factory.mktemp("spark")) as started:
        yield started.spark


@pytest.fixture(scope="session")
def judged(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    """Every planted and every mutated run, judged in one Spark job each way, by name."""
    stories = {f"planted: {name}": planted_story(name) for name in PLANTED}
    for mutation in MUTATIONS:
        # a stream alone in its partition is told, stored and read in one long stretch
        for seed, streams in ((1, 2), (2, 2), (3, 1)):
            story = clean(partitions=min(seed, streams), streams=streams, final_readers=min(seed, 2))
            mutation(story, Random(seed))
            stories[f"{mutation.__name__}, seed {seed}"] = story
    stories |= {f"drawn {number}: {name}": story for number, (name, story) in enumerate(draw(DRAWN))}
    home = tmp_path_factory.mktemp("runs")
    directories = {name: story.write(home / str(number)) for number, (name, story) in enumerate(stories.items())}
    runs = [RunEvidence.of(directories[name], story.model(), name) for name, story in stories.items()]
    audits = audit(spark, runs, here=staged(tmp_path_factory.mktemp("staged") / "rows", runs))
    return {name: Judged(story, directories[name], audits[name]) for name, story in stories.items()}


def draw(count: int) -> list[tuple[str, Story]]:
    """Mutated stories as hypothesis varies them, the simplest first."""
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
