"""The checks of batch headers once more, slow and obvious."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from tests.verifier.oracle.model import Anomaly, Batch, Evidence


def sound(evidence: Evidence) -> Iterator[tuple[int, Batch]]:
    """All batches of all replicas that are not corrupt, with their broker."""
    for broker in evidence.brokers:
        if broker in evidence.replicas:
            yield from ((broker, batch) for batch in evidence.replicas[broker].batches if batch.problem is None)


def epoch_regression(evidence: Evidence) -> Iterator[Anomaly]:
    highest: dict[int, int] = {}
    for broker, batch in sound(evidence):
        if batch.base_offset < evidence.limit(broker):
            if batch.leader_epoch < highest.get(broker, batch.leader_epoch):
                yield Anomaly("epoch-regression", None, evidence.final.partition, None, None, batch.base_offset)
            highest[broker] = max(batch.leader_epoch, highest.get(broker, batch.leader_epoch))


def sequenced(evidence: Evidence) -> list[Batch]:
    """The leader's batches that carry a sequence, by offset."""
    start, end = evidence.final.log_start_offset, evidence.final.high_watermark
    found = [
        batch
        for batch in evidence.leader.batches
        if batch.producer[0] >= 0 and batch.base_sequence >= 0 and not batch.control
        and batch.next_offset > start and batch.base_offset < end
    ]  # fmt: skip
    return sorted(found, key=lambda batch: (batch.base_offset, batch.segment, batch.position))


def sequence_gap(evidence: Evidence) -> Iterator[Anomaly]:
    circle = 2**31
    expected: dict[tuple[int, int], int] = {}
    for batch in sequenced(evidence):
        cause = None
        if batch.producer not in expected:
            free = evidence.final.log_start_offset > 0 or evidence.run.settings.unknown_producer == "kafka"
            if batch.base_sequence != 0 and not free:
                cause = "first"
        elif batch.base_sequence != expected[batch.producer]:
            ahead = (batch.base_sequence - expected[batch.producer]) % circle
            cause = "skipped" if ahead < circle // 2 else "backwards"
        expected[batch.producer] = (batch.base_sequence + batch.next_offset - batch.base_offset) % circle
        if cause is not None:
            yield Anomaly("sequence-gap", cause, evidence.final.partition, None, None, batch.base_offset)


def producer_epoch_regression(evidence: Evidence) -> Iterator[Anomaly]:
    highest: dict[int, int] = {}
    for batch in sequenced(evidence):
        producer_id, epoch = batch.producer
        if batch.problem is None:
            if epoch < highest.get(producer_id, epoch):
                at = batch.base_offset
                yield Anomaly("producer-epoch-regression", None, evidence.final.partition, None, None, at)
            highest[producer_id] = max(epoch, highest.get(producer_id, epoch))


def sequence_duplicate(evidence: Evidence) -> Iterator[Anomaly]:
    places: dict[tuple[tuple[int, int], int], set[int]] = defaultdict(set)
    for batch in sequenced(evidence):
        places[batch.producer, batch.base_sequence].add(batch.base_offset)
    for found in places.values():
        if len(found) > 1 and max(found) - min(found) < 2**31:
            yield Anomaly("sequence-duplicate", None, evidence.final.partition, None, None, min(found), len(found))


def unknown_producer_id(evidence: Evidence) -> Iterator[Anomaly]:
    below = evidence.run.producer_ids_below
    for _, batch in sound(evidence):
        producer_id = batch.producer[0]
        if producer_id < -1 or (below is not None and producer_id >= below):
            yield Anomaly("unknown-producer-id", None, evidence.final.partition, None, None, batch.base_offset)


def timestamp_outside_run(evidence: Evidence) -> Iterator[Anomaly]:
    run = evidence.run
    started_ms = datetime.fromisoformat(run.started).timestamp() * 1000
    over_ms = None
    if run.phases and all(phase.end_ns is not None for phase in run.phases):
        over_ms = (
            started_ms
            + (max(phase.end_ns or 0 for phase in run.phases) - run.started_ns) / 1e6
            + 60_000
            + evidence.clock[1]
        )
    for _, batch in sound(evidence):
        cause = None
        if min(batch.timestamps) < started_ms - 60_000 - evidence.clock[0]:
            cause = "before"
        elif over_ms is not None and max(batch.timestamps) > over_ms:
            cause = "after"
        if cause is not None:
            yield Anomaly("timestamp-outside-run", cause, evidence.final.partition, None, None, batch.base_offset)


def split_brain(evidence: Evidence) -> Iterator[Anomaly]:
    claims: dict[tuple[int, int], set[tuple[int, int, int]]] = defaultdict(set)
    for _, batch in sound(evidence):
        claims[batch.leader_epoch, batch.base_offset].add((batch.crc, batch.size, batch.next_offset))
    for (_, offset), found in claims.items():
        if len(found) > 1:
            yield Anomaly("split-brain", None, evidence.final.partition, None, None, offset, len(found))


CHECKS = (
    epoch_regression, producer_epoch_regression, sequence_gap, sequence_duplicate, unknown_producer_id,
    timestamp_outside_run, split_brain,
)  # fmt: skip
