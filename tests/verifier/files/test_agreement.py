"""The rules and their slow twins agree on the files of mutated runs; without Spark, so that there can be many."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random

from tests.support.stories import Story, clean
from tests.verifier.mutations import MUTATIONS
from tests.verifier.oracle.files import CHECKS
from tests.verifier.oracle.reading import load, read
from verifier.evidence.run_directory import RunDirectory
from verifier.files.find import replica_directories
from verifier.files.replica import check
from verifier.run_checks import RunEvidence

#: Besides those that Spark judges in ``test_checks``.
CASES = 5_000 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 60

Counts = dict[tuple[str, str | None, int], tuple[int, int]]


def test_the_rules_and_the_oracle_agree(tmp_path: Path) -> None:
    """Of every check, cause and partition both find as many, and the same lowest offset; each check is put to use."""
    found_at_all: set[str] = set()
    for seed in range(CASES):
        name, story = mutated(Random(seed))
        directory = story.write(tmp_path / str(seed), sealed=False)
        wanted = by_oracle(directory)
        assert by_rules(directory, story) == wanted, f"seed {seed}: {name}"
        found_at_all |= {check_name for check_name, _, _ in wanted}
        shutil.rmtree(directory.path)
    assert len(found_at_all) == len(CHECKS)


def mutated(random: Random) -> tuple[str, Story]:
    story = clean(
        partitions=random.randint(1, 2),
        streams=random.randint(2, 3),
        batches=random.randint(2, 4),
        size=random.randint(1, 3),
        brokers=random.randint(2, 3),
    )
    story.split_at, story.index_interval = random.randint(0, 3), random.choice([4096, 0, 100, 300])
    names = []
    for _ in range(random.randint(1, 3)):
        mutation = random.choice([mutation for mutation in MUTATIONS if mutation.is_possible(story)])
        mutation(story, random)
        names.append(mutation.__name__)
    return " + ".join(names), story


def by_oracle(directory: RunDirectory) -> Counts:
    found = [anomaly for evidence in load(directory, *read(directory)) for each in CHECKS for anomaly in each(evidence)]
    return summed([((each.check, each.cause, each.partition), 1, each.offset) for each in found])


def by_rules(directory: RunDirectory, story: Story) -> Counts:
    model = story.model()
    judged = {
        (final.partition, broker)
        for final in model.final
        if final.status == "ok"
        for broker in (final.leader, *final.log_end_offsets)
    }
    return summed(
        [
            ((found.check, found.cause, replica.partition), found.places, found.offset)
            for replica in replica_directories(model, RunEvidence.of(directory, model).segments)
            if (replica.partition, replica.broker) in judged
            for found in check(replica)
        ]
    )


def summed(found: list[tuple[tuple[str, str | None, int], int, int | None]]) -> Counts:
    counts: Counter[tuple[str, str | None, int]] = Counter()
    lowest: dict[tuple[str, str | None, int], int] = {}
    for key, places, offset in found:
        counts[key] += places
        lowest[key] = min(-1 if offset is None else offset, lowest.get(key, 1 << 62))
    return {key: (count, lowest[key]) for key, count in counts.items()}
