"""Spark beside the oracle: mutated runs drawn by hypothesis, what each of the two finds of them, and the difference.

    .venv/bin/python -m tests.verifier.agreement --count 5000 [--first N]

A block of runs is drawn from one seed and judged in one audit, so a block that differs can be drawn again alone. The
gate judges fewer of them beside every planted run (``test_checks``). The oracle's rules are in ``oracle``, the
mutations in ``mutations``. Exit status 1 if any run differs or makes a check raise.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.stories import Story
from tests.verifier import oracle
from tests.verifier.mutations import broken_stories
from verifier.accounts.summing import accounts
from verifier.checks.stalled import stalled
from verifier.closing.closing import gather
from verifier.deletions import deletions
from verifier.evidence.run_directory import RunDirectory
from verifier.facts import Audit, Found
from verifier.findings import CHECKED
from verifier.groups.group_checks import of_groups
from verifier.in_sync.in_sync_checks import of_in_sync
from verifier.places import partition_rows, replica_rows, unsettled_rows
from verifier.run_checks import RunEvidence, audit, judged_places, staged
from verifier.spark import session as sessions
from verifier.spark.staging import Staged
from verifier.suspects import examine, suspects
from verifier.transactions.transaction_checks import of_internal_replicas, transactional

#: Runs that are drawn from one seed and judged in one audit.
TOGETHER = 500

#: Check, cause, partition, excuse and epoch: how many, what they cover, and stream, sequence and offset of the first.
Summary = Mapping[tuple[Any, ...], tuple[Any, ...]]
#: Check: the partitions that it suspects.
Suspected = dict[str, set[int]]


def draw(count: int, seed: int | None = None) -> list[tuple[str, Story]]:
    """Mutated stories as hypothesis varies them, the simplest first; without a seed always the same."""
    cases: list[tuple[str, Story]] = []

    @settings(
        max_examples=count, derandomize=seed is None, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(broken_stories())
    def collect(case: tuple[str, Story]) -> None:
        cases.append(case)

    if seed is not None:
        collect = hypothesis.seed(seed)(collect)
    collect()
    return cases


def evidence_of(name: str, story: Story, directory: RunDirectory) -> RunEvidence:
    """As the verifier gathers it. What was deleted is looked up in the histories only where they speak of it."""
    asked = any(row.f == "delete" for rows in story.rows.values() for row in rows)
    histories = sorted(directory.history_dir.glob("*.arrow")) if asked else []
    model = story.model()
    return RunEvidence.of(directory, model, name, deletions(directory, model, accounts(histories)))


def completed(audited: Audit, story: Story, directory: RunDirectory) -> Audit:
    """The audit with what is found without Spark too."""
    # without phases of its own, the load ends as soon as everything is healed
    idle = stalled(story.model(), gather(directory, story.model())) if story.phases else ()
    asked = directory, story.model()
    here = (*transactional(*asked), *of_groups(*asked), *of_internal_replicas(*asked), *of_in_sync(*asked))
    return replace(audited, found=(*audited.found, *idle, *here))


def expected(anomalies: list[oracle.Anomaly]) -> Summary:
    """The oracle's anomalies as an audit sums them up: how many, what they cover, and the first of them."""
    groups: dict[tuple[Any, ...], list[oracle.Anomaly]] = defaultdict(list)
    for each in anomalies:
        groups[each.check, each.cause, each.partition, each.excuse, each.epoch].append(each)

    def order(each: oracle.Anomaly) -> tuple[int, ...]:
        numbers = (each.offset, each.stream, each.sequence)
        return tuple(-1 if number is None else number for number in numbers)

    summed = {}
    for key, found in groups.items():
        first = min(found, key=order)
        summed[key] = (len(found), sum(e.size for e in found), first.stream, first.sequence, first.offset)
    return summed


def summed_up(audit: Audit) -> Summary:
    """The same of an audit."""
    return {
        (each.check, each.cause, each.partition, each.excuse, _epoch(each)): (
            each.count,
            each.size,
            each.stream,
            each.sequence,
            each.offset,
        )
        for each in audit.found
    }


def suspected(evidence: Sequence[RunEvidence], rows: Staged, audits: Mapping[str, Audit]) -> dict[str, Suspected]:
    """By run, the checks that would be asked if it were judged alone, with the partitions that they suspect."""
    places = judged_places(evidence)
    readers = [reader for each in audits.values() for reader in each.facts.readers]
    found: dict[str, Suspected] = {each.name: {} for each in evidence}
    tables = replica_rows(places), partition_rows(places, readers), unsettled_rows(places)
    for check, numbers in suspects(examine(rows, *tables)).items():
        for number in numbers:
            found[places[number].run].setdefault(check, set()).add(places[number].final.partition)
    return found


def missed(suspicious: Suspected, anomalies: Iterable[oracle.Anomaly | Found]) -> set[tuple[str, int]]:
    """What is there, by check and partition, and is not where the check suspects it."""
    there = {(each.check, each.partition) for each in anomalies if each.check in CHECKED}
    return {(check, partition) for check, partition in there if partition not in suspicious.get(check, ())}


def _epoch(found: Found) -> int | None:
    """The epoch of an election, as the event tells it."""
    words = (found.event or "").split()
    return int(words[3]) if words[:3] == ["election", "of", "epoch"] else None


def report(different: Mapping[str, tuple[Summary, Summary]]) -> str:
    """The runs that differ, the simplest first."""
    lines = [f"{len(different)} runs differ"]
    for name, (found, wanted) in sorted(different.items(), key=lambda item: len(item[0]))[:5]:
        lines += [name, f"  Spark:  {sorted(found.items() - wanted.items(), key=str)}"]
        lines += [f"  oracle: {sorted(wanted.items() - found.items(), key=str)}"]
    return "\n".join(map(str, lines))


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.verifier.agreement", description="Judge mutated runs twice.")
    parser.add_argument("--count", type=int, default=TOGETHER, help="how many mutated runs")
    parser.add_argument("--first", type=int, default=0, help=f"the first seed; each gives up to {TOGETHER} runs")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    done, wrong, seed, began = 0, 0, arguments.first, time.monotonic()
    found: Counter[str] = Counter()
    with TemporaryDirectory(prefix="gapless-agree-") as name, sessions.session(Path(name) / "spark") as started:
        while done < arguments.count:
            drawn = draw(min(TOGETHER, arguments.count - done), seed)
            with TemporaryDirectory(dir=name) as home:
                words, checks = compared(started.spark, drawn, Path(home))
            sys.stdout.write("".join(f"seed {seed}: {word}\n" for word in words))
            sys.stdout.flush()
            found.update(checks)
            done, wrong, seed = done + len(drawn), wrong + len(words), seed + 1
            rate = done / (time.monotonic() - began)
            sys.stderr.write(f"{done} of {arguments.count} runs, {rate:.1f}/s, {wrong} blocks with a difference\n")
    sys.stdout.write("".join(f"{check:28} {count:6} runs\n" for check, count in sorted(found.items())))
    sys.stdout.write(f"RESULT runs={done} seeds={arguments.first}-{seed - 1} blocks_that_differ={wrong}\n")
    return int(wrong > 0)


def compared(spark: Any, drawn: list[tuple[str, Story]], home: Path) -> tuple[list[str], Counter[str]]:
    """What differs in these runs, in words, and in how many of them each check found something."""
    runs = {f"{number}: {name}": story for number, (name, story) in enumerate(drawn)}
    directories = {name: story.write(home / str(number)) for number, (name, story) in enumerate(runs.items())}
    evidence = [evidence_of(name, story, directories[name]) for name, story in runs.items()]
    rows = staged(home / "staged", evidence)
    audits = audit(spark, evidence, here=rows)
    words = [f"{name}: {each.failures}" for name, each in audits.items() if each.failures]
    suspicious = suspected(evidence, rows, audits)
    different, found = {}, Counter[str]()
    for name, story in runs.items():
        ours = summed_up(completed(audits[name], story, directories[name]))
        anomalies = oracle.find_all(directories[name])
        wanted = expected(anomalies)
        words += [
            f"{name}: not suspected: {sorted(unseen)}" for unseen in [missed(suspicious[name], anomalies)] if unseen
        ]
        found.update({key[0] for key in wanted})
        if ours != wanted:
            different[name] = (ours, wanted)
    return words + ([report(different)] if different else []), found


if __name__ == "__main__":
    sys.exit(main())
