"""The partitions that are judged: which, by what bounds, and as rows beside those of their files. Pure, without Spark.

``place`` is one partition of one run, as a number: its index among all that are judged together. A partition whose
final state is not known, or not final, is judged by the bytes of its replicas alone, each beside the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa

from verifier.bounds import Bounds, bounds
from verifier.closing.closing import due_ns
from verifier.closing.wall_clock import ClockShift
from verifier.deletions import Deletions
from verifier.evidence.run_model import FinalPartition, RunModel
from verifier.excuses.expectation import Expectation
from verifier.facts import ReaderReach, reader_masks

#: How the rows of files name a partition; ``place`` stands for all three from here on.
NAMED = ["run", "topic", "partition"]
#: Above any offset: nothing says up to where replicas that did not settle may be compared.
NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True)
class Place:
    """One judged partition of one run; ``brokers`` are those of its replicas whose files were found.

    ``from_offset``: what was acknowledged or read below it was deleted on purpose, and its absence is no loss.
    ``judges_deleted``: whether clients may not contradict each other there either. They may where the settings allow
    that an election cuts off what was acknowledged: the epochs that would tell are deleted with the records.
    ``starts``: from where on each of the replicas is compared with the leader. ``due_ns``: see ``closing.due_ns``; -1
    where every acknowledgement tells its offset, so that nothing need be looked up. ``is_transactional``: the run's
    clients may use transactions. ``is_settled``: its replicas had come to one end, by which all else is judged.
    """

    run: str
    final: FinalPartition
    brokers: tuple[int, ...]
    from_offset: int
    judges_deleted: bool
    starts: tuple[int, ...]
    bounds: Bounds
    due_ns: int
    is_transactional: bool = False
    is_settled: bool = True


def judged(
    run: str, model: RunModel, replicas: Set[tuple[str, int, int]], deletions: Deletions, shift: ClockShift
) -> list[Place]:
    """The partitions of a run that can be judged: their final state is known, and their leader's log is there.

    ``replicas`` are the (topic, partition, broker) of which any segment was found. Without the leader's files
    everything would look lost, though it is the evidence that is; so would what a compaction removed.
    """
    within = bounds(model, shift)
    judges_deleted = not Expectation.of(model).can_allow("inconsistent-offsets")
    # all others are told where what they wrote stands
    placeless = model.settings.idempotence or model.settings.acks == "0"
    due = due_ns(model) if placeless else -1
    compacted = {topic.name for topic in model.topics if topic.is_compacted}
    return [
        _place(run, final, replicas, deletions, within, judges_deleted, due)
        for final in model.final
        if final.status == "ok"
        and final.high_watermark >= 0
        and (final.topic, final.partition, final.leader) in replicas
        and final.topic not in compacted
    ]


def unsettled(
    run: str, model: RunModel, replicas: Set[tuple[str, int, int]], deletions: Deletions, shift: ClockShift
) -> list[Place]:
    """The partitions of a run that ``judged`` leaves out, as far as any bytes of them are left.

    What a compaction changed says nothing.
    """
    settled = {(place.final.topic, place.final.partition) for place in judged(run, model, replicas, deletions, shift)}
    found = []
    for topic in model.topics:
        for partition in range(topic.partitions):
            name = (topic.name, partition)
            brokers = tuple(broker for broker in _declared(model, *name) if (*name, broker) in replicas)
            if brokers and name not in settled and not topic.is_compacted:
                final = FinalPartition(*name, status="unavailable: its replicas did not settle")
                starts = (0,) * len(brokers)
                found.append(Place(run, final, brokers, 0, False, starts, Bounds(), -1, is_settled=False))
    return found


def _declared(model: RunModel, topic: str, partition: int) -> list[int]:
    return sorted(model.evidence.replicas.get(f"{topic}-{partition}", []))


def _place(
    run: str,
    final: FinalPartition,
    replicas: Set[tuple[str, int, int]],
    deletions: Deletions,
    within: Bounds,
    judges_deleted: bool,
    due: int,
) -> Place:
    name, start = (final.topic, final.partition), final.log_start_offset
    brokers = tuple(broker for broker in _brokers(final) if (*name, broker) in replicas)
    # the leader's own start is what all are measured by
    starts = tuple(start if b == final.leader else deletions.compared_from(b, *name, start) for b in brokers)
    return Place(run, final, brokers, deletions.judged_from(*name, start), judges_deleted, starts, within, due)


def _brokers(final: FinalPartition) -> list[int]:
    return sorted({final.leader, *final.log_end_offsets})


def partition_rows(places: Sequence[Place], readers: Sequence[ReaderReach]) -> pa.Table:
    """One row per place; ``reader_mask`` has one bit for each final reader that reached the sentinel,
    ``isolated_mask`` one for each of them that is handed only what is committed."""
    masks = reader_masks(readers)
    isolated = reader_masks([reader for reader in readers if reader.is_isolated])
    rows = [
        {
            "run": place.run,
            "topic": place.final.topic,
            "partition": place.final.partition,
            "place": number,
            "high_watermark": place.final.high_watermark,
            "from_offset": place.from_offset,
            "judges_deleted": place.judges_deleted,
            "sentinel_offset": place.final.sentinel_offset,
            "due_ns": place.due_ns,
            "reader_mask": masks.get((place.run, place.final.topic, place.final.partition), 0),
            "isolated_mask": isolated.get((place.run, place.final.topic, place.final.partition), 0),
        }
        for number, place in enumerate(places)
        if place.is_settled
    ]
    fields = [columns("run", "topic"), columns("partition", "place", kind=pa.int32())]
    numbers = ("high_watermark", "from_offset", "sentinel_offset", "due_ns", "reader_mask", "isolated_mask")
    fields.append(columns(*numbers, kind=pa.int64()))
    fields.append(columns("judges_deleted", kind=pa.bool_()))
    return table_of(rows, fields)


def replica_rows(places: Sequence[Place]) -> pa.Table:
    """One row per replica of a place that settled. ``limit``: the smaller of the high watermark and its own log end
    offset; ``brokers``: how many replicas the place has."""
    return _replica_rows(places, is_settled=True)


def unsettled_rows(places: Sequence[Place]) -> pa.Table:
    """The same columns for each replica of a place that did not settle. None is the leader, and nothing limits it."""
    return _replica_rows(places, is_settled=False)


def _replica_rows(places: Sequence[Place], *, is_settled: bool) -> pa.Table:
    rows = [
        {
            "run": place.run,
            "topic": place.final.topic,
            "partition": place.final.partition,
            "place": number,
            "broker": broker,
            "brokers": len(place.brokers),
            "is_leader": broker == place.final.leader,
            "limit": _limit(place, broker),
            "start": start,
            "final_epoch": place.final.leader_epoch,
            "earliest_ms": place.bounds.earliest_ms,
            "latest_ms": place.bounds.latest_ms,
            "producer_ids_below": place.bounds.producer_ids_below,
            "begins_at_zero": place.bounds.begins_at_zero,
            "is_transactional": place.is_transactional,
        }
        for number, place in enumerate(places)
        if place.is_settled is is_settled
        for broker, start in zip(place.brokers, place.starts, strict=True)
    ]
    fields = [columns("run", "topic"), columns("partition", "place", "broker", "brokers", kind=pa.int32())]
    fields.append(columns("is_leader", "begins_at_zero", "is_transactional", kind=pa.bool_()))
    numbers = ("limit", "start", "final_epoch", "earliest_ms", "latest_ms", "producer_ids_below")
    fields.append(columns(*numbers, kind=pa.int64()))
    return table_of(rows, fields)


def _limit(place: Place, broker: int) -> int:
    final = place.final
    if not place.is_settled:
        return NO_LIMIT
    return final.high_watermark if broker == final.leader else min(final.high_watermark, final.log_end_offsets[broker])


def columns(*names: str, kind: pa.DataType | None = None) -> list[tuple[str, pa.DataType]]:
    """Columns of one type, texts unless it is told."""
    return [(name, kind or pa.string()) for name in names]


def table_of(rows: Sequence[Mapping[str, object]], fields: list[list[tuple[str, pa.DataType]]]) -> pa.Table:
    """These rows, with these columns."""
    schema = pa.schema([pa.field(name, kind) for group in fields for name, kind in group])
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
