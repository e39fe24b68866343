"""The members of a load's consumer group on a real cluster: they come, leave and crash, and nothing is missed."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cluster.client import Admin, Consumer, NewTopic
from loadgen.command import locust_commands
from loadgen.settings import LoadSettings
from tests.support.histories import read_histories
from tests.support.kafka_clients import wait_for
from tests.support.native_clients import new_topic
from tests.support.up_cluster import UpCluster
from verifier.checks.pipeline_exactly_once import pipeline_exactly_once
from verifier.evidence.history import read_history
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.sequenced_value import decode
from verifier.groups.group_checks import audit
from verifier.groups.model import GroupEvidence, OffsetSpan, ReadableLog, Spans
from verifier.groups.pipeline import pipeline
from verifier.groups.rows import group_partitions

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

PARTITIONS = 3
RUN_ID = 47_110
PROCESSES = ("members-confluent", "members-native")
#: On a machine that does much else.
LOAD_S = 120.0
Row = dict[str, Any]


def loaded(cluster: UpCluster, admin: Admin, home: Path, committed: str, **members: Any) -> tuple[list[Row], str]:
    """The histories of a short load whose members live for a few seconds each, and its topic.

    ``committed``: the rows that say that something was.
    """
    topic = new_topic(admin, PARTITIONS)
    settings = LoadSettings(
        run_id=RUN_ID,
        producers_bootstrap=cluster.bootstrap,
        readers_bootstrap=cluster.bootstrap,
        topic=topic,
        partitions=PARTITIONS,
        producers=PARTITIONS,
        rate=300.0,
        readers=(),
        flush_timeout_s=5.0,
        members={"native": 2, "confluent": 2, "lives_s": 3, **members},
    )
    run = RunDirectory(home).prepare()
    started = []
    try:
        for command in locust_commands(settings, run):
            with (home / f"{command.name}.log").open("w") as log:
                started.append(
                    subprocess.Popen(
                        command.argv, env=command.env, cwd=command.cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                    )
                )
        wait_for(partial(_is_enough, run, committed), "members of both clients to commit, in every partition", LOAD_S)
        for process in started:
            process.send_signal(signal.SIGINT)
        assert [process.wait(60) for process in started] == [0] * len(started)
    finally:
        for process in started:
            process.kill()
            process.wait()
    return read_histories(run.history_dir).table.to_pylist(), topic


def _is_enough(run: RunDirectory, committed: str) -> bool:
    """Whether each partition was read, one changed hands, and members of both clients have committed."""
    paths = [run.history(process) for process in PROCESSES]
    if not all(path.exists() for path in paths):
        return False
    rows = [row for path in paths for row in read_history(path).to_pylist()]
    begun = Counter(row["partition"] for row in rows if row["f"] == "resume")
    who = {row["process"] for row in rows if (row["f"], row["type"]) == (committed, "ok")}
    return who == set(PROCESSES) and len(begun) == PARTITIONS < begun.total()


def evidence_of(rows: list[Row], topic: str) -> GroupEvidence:
    """With the log that the producers' acknowledgements tell."""
    spans: dict[int, list[OffsetSpan]] = defaultdict(list)
    for row in rows:
        if (row["f"], row["type"]) == ("send", "ok"):
            spans[row["partition"]].append(OffsetSpan(row["first_offset"], row["last_offset"]))
    logs = {(topic, partition): ReadableLog(0, Spans(found)) for partition, found in spans.items()}
    own = [row for row in rows if row["process"].startswith("members")]
    return GroupEvidence(group_partitions(own, logs, is_whole=True))


def values(rows: list[Row], partition: int) -> Iterator[tuple[int, tuple[int, int]]]:
    for row in rows:
        if (row["f"], row["type"], row["partition"]) == ("send", "ok", partition):
            for step in range(row["last_sequence"] - row["first_sequence"] + 1):
                yield row["first_offset"] + step, (row["stream"], row["first_sequence"] + step)


@pytest.mark.full
def test_a_group_misses_nothing(shared_cluster: UpCluster, admin: Admin, tmp_path: Path) -> None:
    """Of both clients, dynamic and static: every session has its rows, and no check of groups finds anything."""
    rows, topic = loaded(shared_cluster, admin, tmp_path, "offset-commit")
    evidence = evidence_of(rows, topic)
    assert audit(evidence) == []
    assert len(evidence.partitions) == PARTITIONS
    for process in PROCESSES:
        own = [row for row in rows if row["process"] == process]
        sessions = {row["session"] for row in own if row["f"] == "member"}
        assert {row["session"] for row in own if row["f"] in ("resume", "poll", "revoke")} <= sessions
        committed = [row for row in own if (row["f"], row["type"]) == ("offset-commit", "ok")]
        assert committed and all(row["incarnation"] > 0 for row in committed)
        assert sum(row["high_watermark"] > row["last_offset"] for row in own if row["f"] == "poll") > 0


def test_a_pipeline_writes_each_record_once(shared_cluster: UpCluster, admin: Admin, tmp_path: Path) -> None:
    """What was committed past is in the output exactly once, although members crash in the middle of transactions."""
    admin.create_topics([NewTopic(OUTPUT_TOPIC, PARTITIONS, 3)])
    rows, topic = loaded(shared_cluster, admin, tmp_path, "commit", transform=True)
    evidence = evidence_of(rows, topic)
    assert audit(evidence) == []
    outputs = _outputs(shared_cluster, evidence)
    found = [
        pipeline(group, place, partition, values(rows, place[1]), outputs[place[1]])
        for (group, place), partition in evidence.partitions.items()
    ]
    assert len(found) == PARTITIONS
    assert list(pipeline_exactly_once(found)) == []
    assert sum(len(each.outputs) for each in found) >= sum(each.certain for each in found) > 0


def _outputs(cluster: UpCluster, evidence: GroupEvidence) -> dict[int, list[tuple[int, tuple[int, int]]]]:
    """The values in the output, by offset, as a reader of committed records is handed them."""
    found: dict[int, list[tuple[int, tuple[int, int]]]] = {number: [] for number in range(PARTITIONS)}
    config = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"}
    with Consumer({**config, "isolation.level": "read_committed"}) as consumer:
        consumer.assign([(OUTPUT_TOPIC, number) for number in found])
        wanted = {place[1]: partition for (_, place), partition in evidence.partitions.items()}

        def is_whole() -> bool:
            for record in consumer.poll(0.2):
                value = decode(record.value or b"")
                if value is not None:
                    found[record.partition].append((record.offset, (value.stream_id, value.sequence)))
            return all(
                len(found[number]) >= max((each.offset for each in partition.certain), default=0)
                for number, partition in wanted.items()
            )

        wait_for(is_whole, "all that was committed past to be in the output")
    return found
