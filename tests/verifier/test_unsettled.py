"""Replicas that never settled: which are judged by their bytes alone, and what follows for the verdict."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.stories import Story, clean
from tests.verifier.planted import planted_story
from tests.verifier.test_verdict import a_run, audit, closing, decide, found
from verifier import explain
from verifier.evidence.run_directory import read_json
from verifier.evidence.run_model import RunModel, TopicSpec
from verifier.facts import Found
from verifier.places import NO_LIMIT, partition_rows, replica_rows, unsettled_rows
from verifier.run_checks import RunEvidence, judged_places

GONE = "unavailable: it has no leader"


def evidence(story: Story, path: Path, model: RunModel | None = None) -> RunEvidence:
    return RunEvidence.of(story.write(path), story.model() if model is None else model)


def two_partitions() -> Story:
    """Of which the first one never settled."""
    story = clean(partitions=2)
    story.partitions[0].status = GONE
    return story


def test_each_partition_is_judged_in_one_way(tmp_path: Path) -> None:
    """By its final leader's log, or by the bytes of its replicas alone; the numbers are those of both."""
    places = judged_places([evidence(two_partitions(), tmp_path / "run")])
    assert [(place.final.partition, place.is_settled) for place in places] == [(1, True), (0, False)]
    assert partition_rows(places, [])["place"].to_pylist() == [0]
    assert set(replica_rows(places)["place"].to_pylist()) == {0}
    rows = unsettled_rows(places).to_pylist()
    assert [(row["place"], row["broker"], row["is_leader"], row["limit"]) for row in rows] == [
        (1, broker, False, NO_LIMIT) for broker in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"final": []},
        {"final": [replace(clean().model().final[0], high_watermark=-1)]},
        {"final": [replace(clean().model().final[0], leader=9)]},
    ],
    ids=["no final state", "no watermark", "no file of its leader"],
)
def test_whatever_is_not_judged_by_a_leader_is_by_its_bytes(change: dict[str, object], tmp_path: Path) -> None:
    """Also of a run that did not get to its end, or whose final leader left nothing."""
    story = clean()
    places = judged_places([evidence(story, tmp_path / "run", replace(story.model(), **change))])  # type: ignore[arg-type]
    assert [(place.is_settled, place.brokers) for place in places] == [(False, (1, 2, 3))]


def test_what_compaction_changed_is_not_judged(tmp_path: Path) -> None:
    """Nor is a log of which there is nothing."""
    story = two_partitions()
    model = story.model()
    compacted = [TopicSpec("t", 2, 3, model.topics[0].topic_id, {"cleanup.policy": "compact"})]
    assert judged_places([evidence(story, tmp_path / "compacted", replace(model, topics=compacted))]) == []
    undeclared = replace(model, evidence=replace(model.evidence, replicas={}))
    assert [each.is_settled for each in judged_places([evidence(story, tmp_path / "none", undeclared)])] == [True]


SPLIT = replace(
    found("split-brain"),
    detail={
        "leader_epoch": 1, "least_broker": 1, "most_broker": 2, "least_crc": 5, "most_crc": 6,
        "least_size_bytes": 70, "most_size_bytes": 70,
    },
)  # fmt: skip


@pytest.mark.parametrize("ends", [{1: 26, 2: 26, 3: 25}, {1: 26, 2: 26}, {}])
def test_what_no_lag_explains_is_invalid(ends: dict[int, int]) -> None:
    """It outranks that the partition is unavailable, however many of its replicas answered in the end."""
    run = a_run()
    stuck = replace(run, final=[replace(run.final[0], status=GONE, log_end_offsets=ends)])
    assert decide(stuck, audit(), closing()).verdict == "unknown"
    verdict = decide(stuck, audit(SPLIT), closing())
    assert verdict.verdict == "invalid"
    assert verdict.accusations[0].startswith("split-brain") and f"t-0: {GONE}" in verdict.doubts


def test_a_strange_replica_still_blinds() -> None:
    """That a partition is on a broker that it does not belong to contradicts the final state in any case."""
    run = a_run()
    stuck = replace(run, final=[replace(run.final[0], status=GONE, log_end_offsets={1: 26, 9: 26})])
    verdict = decide(stuck, audit(SPLIT), closing())
    assert verdict.verdict == "unknown" and verdict.checks["split-brain"].withheld


def test_what_stands_before_a_batch_of_both_in_words() -> None:
    """Both brokers, and what each of them has."""
    detail = {
        "leader_epoch": 3, "least_broker": 3, "least_epoch": 1, "least_base_offset": 3, "least_crc": 8,
        "most_broker": 1, "most_epoch": 2, "most_base_offset": 3, "most_crc": 9,
    }  # fmt: skip
    told = explain.sentence(Found("log-divergence", "before", "t", 0, 1, 1, None, None, 6, 1, detail))
    assert told == (
        "t-0: two brokers have the same batch of leader epoch 3 at offset 6, and before it others: broker 3 one of "
        "epoch 1 from offset 3 on (CRC 8), broker 1 one of epoch 2 from offset 3 on (CRC 9)"
    )


@pytest.mark.full
@pytest.mark.integration
@pytest.mark.timeout(600)
def test_a_whole_run_that_never_settled_is_invalid(tmp_path: Path) -> None:
    """From the files to the verdict, in a process of its own: accused, with the anomaly's file beside it."""
    directory = planted_story("two leaders of one epoch, and nothing settled").write(tmp_path / "run")
    command = [sys.executable, "-m", "verifier.main", str(directory.path)]
    assert subprocess.run(command, timeout=400, check=False, capture_output=True).returncode == 0
    verdict = read_json(directory.verdict_json)
    assert verdict["verdict"] == "invalid"
    assert [name for name, check in verdict["checks"].items() if check["count"]] == ["split-brain"]
    assert (directory.anomalies_dir / "split-brain.csv").exists()
