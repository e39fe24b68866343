"""What is judged of replicas that never settled once more, slow and obvious: each batch beside each other one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.verifier.oracle.model import Anomaly, Batch
from tests.verifier.oracle.reading import read_replica
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel

Log = list[Batch]


def find_all(directory: RunDirectory, run: RunModel) -> Iterator[Anomaly]:
    for final in run.final:
        if final.status == "ok" or any("compact" in topic.config.get("cleanup.policy", "") for topic in run.topics):
            continue
        name = f"{final.topic}-{final.partition}"
        logs: list[Log] = []
        for broker in run.evidence.replicas[name]:
            files = sorted(directory.node(broker).rglob(f"{name}/*.log"))
            logs.append([each for each in read_replica(files, run.run_id).batches if each.problem is None])
        for log in logs:
            yield from backwards(final.partition, log)
        yield from twice(final.partition, logs)
        yield from after_others(final.partition, logs)


def backwards(partition: int, log: Log) -> Iterator[Anomaly]:
    for number, batch in enumerate(log):
        if any(batch.leader_epoch < each.leader_epoch for each in log[:number]):
            yield Anomaly("epoch-regression", None, partition, None, None, batch.base_offset)
        if any(batch.base_offset < each.next_offset for each in log[:number]):
            yield Anomaly("log-reorder", "offsets", partition, None, None, batch.base_offset)


def twice(partition: int, logs: list[Log]) -> Iterator[Anomaly]:
    """One leader wrote an offset once."""
    claims: dict[tuple[int, int], set[tuple[int, int, int]]] = defaultdict(set)
    for batch in [batch for log in logs for batch in log]:
        claims[batch.leader_epoch, batch.base_offset].add((batch.crc, batch.size, batch.next_offset))
    for (_, offset), found in claims.items():
        if len(found) > 1:
            yield Anomaly("split-brain", None, partition, None, None, offset, len(found))


def after_others(partition: int, logs: list[Log]) -> Iterator[Anomaly]:
    """Who has a batch has what its leader had before it."""
    before: dict[tuple[int, ...], set[tuple[int, ...]]] = defaultdict(set)
    for log in logs:
        for number, batch in enumerate(log[1:]):
            if log[number].next_offset == batch.base_offset:
                before[identity(batch)].add(identity(log[number]))
    for (_, base_offset, *_), found in before.items():
        if len(found) > 1:
            yield Anomaly("log-divergence", "before", partition, None, None, base_offset)


def identity(batch: Batch) -> tuple[int, ...]:
    return batch.leader_epoch, batch.base_offset, batch.crc, batch.size, batch.next_offset
