"""One Spark session, and one audit of all small runs, for all tests of this directory.

A session costs seconds and half a gigabyte. An audit costs half a minute of processor time, whatever it looks at, and
little more for another run: planted, mutated and doctored runs are judged in one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.evidence import sources
from tests.evidence.doctored import CASES
from tests.evidence.fuzzer import Drawn
from tests.evidence.fuzzer import draw as draw_copies
from tests.evidence.judge import Gathered, Judgement, gathered
from tests.support.long_run import write_long_run
from tests.support.stories import Story, clean
from tests.verifier import oracle
from tests.verifier.agreement import completed, draw, evidence_of
from tests.verifier.mutations import MUTATIONS
from tests.verifier.planted import PLANTED, planted_story
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Audit
from verifier.run_checks import RunEvidence, audit, staged
from verifier.spark.staging import Staged

#: Cases with several mutations that hypothesis draws, besides each mutation alone.
DRAWN = 400 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 40
#: Copies of valid runs in which the evidence fuzzer changes one thing.
SEEDS = range(100 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 50)


@dataclass(frozen=True)
class Judged:
    """One run that was judged, with its files."""

    story: Story
    directory: RunDirectory
    audit: Audit


@dataclass(frozen=True)
class Copies:
    """Copies of valid runs below ``home``, by name: the doctored cases, untouched ones, and what the seeds give."""

    sources: Mapping[str, Path]
    home: Path
    drawn: list[Drawn]
    gathered: dict[str, Gathered | Judgement]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running ``SparkSession``; its JVM is gone when the tests are."""
    from verifier.spark import session as sessions

    with sessions.session(tmp_path_factory.mktemp("spark")) as started:
        yield started.spark


@pytest.fixture(scope="session")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Story, RunDirectory]]:
    """Every planted and every mutated run, by name."""
    told = {f"planted: {name}": planted_story(name) for name in PLANTED}
    for mutation in MUTATIONS:
        # a stream alone in its partition is told, stored and read in one long stretch
        for seed, streams in ((1, 2), (2, 2), (3, 1)):
            story = clean(partitions=min(seed, streams), streams=streams, final_readers=min(seed, 2))
            mutation(story, Random(seed))
            told[f"{mutation.__name__}, seed {seed}"] = story
    told |= {f"drawn {number}: {name}": story for number, (name, story) in enumerate(draw(DRAWN))}
    home = tmp_path_factory.mktemp("runs")
    # the audit asks no seal
    return {
        name: (story, story.write(home / str(number), sealed=False))
        for number, (name, story) in enumerate(told.items())
    }


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """What the evidence fuzzer has judged."""
    home, origin = tmp_path_factory.mktemp("doctored"), tmp_path_factory.mktemp("sources")
    valid = {name: sources.write(name, origin / name).path for name in sources.STORIES}
    paths = {name: home / name for name in (*CASES, *valid)}
    for name, copy in paths.items():
        shutil.copytree(valid.get(name, valid["plain"]), copy)
        if name in CASES:
            _expected, path, change = CASES[name]
            change(copy / path)
    drawn = draw_copies(valid, SEEDS, home / "drawn")
    return Copies(valid, home, drawn, gathered(paths | {each.name: each.copy for each in drawn}))


@pytest.fixture(scope="session")
def long_run_directory(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A small run of many segments, as the builder of long runs writes it."""
    home = tmp_path_factory.mktemp("long") / "run"
    return write_long_run(home, partitions=2, batches=20, size=3, segment_bytes=4_000)


@pytest.fixture(scope="session")
def long_run(long_run_directory: RunDirectory) -> RunEvidence:
    directory = long_run_directory
    return RunEvidence.of(directory, RunModel.from_json(directory.read_run()), "long run")


@pytest.fixture(scope="session")
def evidence(
    stories: dict[str, tuple[Story, RunDirectory]], copies: Copies, long_run: RunEvidence
) -> list[RunEvidence]:
    """All runs that are judged in one audit."""
    runs = [evidence_of(name, *told) for name, told in stories.items()]
    runs += [each.evidence for each in copies.gathered.values() if isinstance(each, Gathered)]
    runs.append(long_run)
    assert len({run.name for run in runs}) == len(runs)
    return runs


@pytest.fixture(scope="session")
def rows(evidence: list[RunEvidence], tmp_path_factory: pytest.TempPathFactory) -> Staged:
    """The rows of all these runs."""
    return staged(tmp_path_factory.mktemp("staged") / "rows", evidence)


@pytest.fixture(scope="session")
def audits(spark: Any, evidence: list[RunEvidence], rows: Staged) -> dict[str, Audit]:
    """What Spark finds of each run, in one audit. A check that raises fails for all of them."""
    return audit(spark, evidence, here=rows)


@pytest.fixture(scope="session")
def judged(stories: dict[str, tuple[Story, RunDirectory]], audits: dict[str, Audit]) -> dict[str, Judged]:
    """Every planted and every mutated run, by name, with what is found of it without Spark too."""
    found = {}
    for name, (story, directory) in stories.items():
        found[name] = Judged(story, directory, completed(audits[name], story, directory))
    return found


@pytest.fixture(scope="session")
def twins(stories: dict[str, tuple[Story, RunDirectory]]) -> dict[str, list[oracle.Anomaly]]:
    """What the oracle finds of the same runs."""
    return {name: oracle.find_all(directory) for name, (_, directory) in stories.items()}
