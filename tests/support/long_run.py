"""The run directory of a long run in which nothing went wrong, of any size: what verification at size is tested on.

Like ``tests.support.stories``, but written as it is made, so that millions of records need no memory: one stream per
partition, segments of a given size, and equal replicas (links to one file, so that the disk holds them once).
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.batches import BatchFields, Record, encode_batch
from tests.support.closed import TOPIC_ID, closed, declared, partition_metadata, write_series
from tests.support.settings import run_model, settings
from tests.support.side_files import leader_epochs
from tests.support.stories import RUN_ID, SECOND, SENTINEL_STREAM, TOPIC, Batch, row
from verifier.evidence import seal
from verifier.evidence.history import HistoryWriter
from verifier.evidence.run_directory import RunDirectory, write_json_atomic
from verifier.evidence.run_model import FinalPartition, TopicSpec
from verifier.evidence.values import ValueEncoder

BROKERS = (1, 2, 3)
#: A final reader's row spans this many batches.
POLLED_BATCHES = 8


class _StoppedClock:
    def monotonic_ns(self) -> int:
        return 0


def write_long_run(
    path: Path, *, partitions: int, batches: int, size: int, value_bytes: int = 200, segment_bytes: int = 1 << 20
) -> RunDirectory:
    """``batches`` batches of ``size`` values in each partition; acknowledged and read batch by batch."""
    directory = RunDirectory(path)
    path.mkdir(parents=True, exist_ok=True)
    directory.prepare()
    names = ("producers", "readers", "sentinel", "final-confluent")
    histories = {name: HistoryWriter(directory.history(name), name, _StoppedClock()) for name in names}
    final = [
        _write_partition(directory, histories, index, batches, size, value_bytes, segment_bytes)
        for index in range(partitions)
    ]
    for history in histories.values():
        history.close()
    replicas = {f"{TOPIC}-{index}": BROKERS for index in range(partitions)}
    evidence = declared(names, replicas, range(1, partitions + 1))
    model = run_model(
        name="long",
        seed=1,
        run_id=RUN_ID,
        started="2023-11-14T22:13:00Z",
        settings=settings(brokers=len(BROKERS), partitions=partitions, rate=0.0),
        topics=[TopicSpec(TOPIC, partitions, len(BROKERS), TOPIC_ID)],
        final=final,
        final_topic_ids={TOPIC: TOPIC_ID},
        **closed(evidence),
    )
    write_json_atomic(directory.run_json, model.to_json())
    directory.faults_jsonl.touch()
    write_series(directory, evidence)
    seal.take(directory)
    return directory


def _write_partition(
    directory: RunDirectory,
    histories: dict[str, HistoryWriter],
    index: int,
    batches: int,
    size: int,
    value_bytes: int,
    segment_bytes: int,
) -> FinalPartition:
    homes = [directory.node(broker) / "data" / f"{TOPIC}-{index}" for broker in BROKERS]
    for home in homes:
        home.mkdir(parents=True)
        (home / "partition.metadata").write_text(partition_metadata(), encoding="utf-8")
        (home / "leader-epoch-checkpoint").write_bytes(leader_epochs([], 0, 1))
    stream, encoder = index + 1, ValueEncoder(RUN_ID, index + 1, value_bytes)
    histories["producers"].append(row("reserve", "invoke", index, stream, 0, batches * size - 1, -1))
    segment, segment_base = bytearray(), 0
    for number in range(batches):
        first = number * size
        records = [Record(encoder.encode(first + step, 1)) for step in range(size)]
        fields = BatchFields(first, 1, 1000 + stream, 0, first)
        data = encode_batch(records, fields)
        if segment and len(segment) + len(data) > segment_bytes:
            _write_segment(homes, segment_base, segment)
            segment, segment_base = bytearray(), first
        segment += data
        for name, f in (("producers", "send"), ("readers", "poll")):
            histories[name].append(row(f, "ok", index, stream, first, first + size - 1, first))
        if (number + 1) % POLLED_BATCHES == 0 or number == batches - 1:
            begin = number // POLLED_BATCHES * POLLED_BATCHES * size
            last = first + size - 1
            histories["final-confluent"].append(row("poll", "ok", index, stream, begin, last, begin, phase="final"))
    end = batches * size
    sentinel = Batch(end, ((SENTINEL_STREAM, index),), producer_id=2000, base_sequence=0, sentinel=True)
    _write_segment(homes, segment_base, segment + sentinel.encode())
    whose = (index, SENTINEL_STREAM, index, index)
    histories["sentinel"].append(row("reserve", "invoke", *whose, -1, phase="final"))
    sent_ns = (10 + end) * SECOND // 10  # when all is acknowledged
    placed = row("sentinel", "ok", *whose, end, phase="final")
    histories["sentinel"].append(placed._replace(invoke_ns=sent_ns, complete_ns=sent_ns))
    histories["final-confluent"].append(row("poll", "ok", *whose, end, phase="final"))
    ends = dict.fromkeys(BROKERS, end + 1)
    return FinalPartition(TOPIC, index, BROKERS[index % len(BROKERS)], 1, end + 1, 0, ends, end)


def _write_segment(homes: list[Path], base_offset: int, data: bytes | bytearray) -> None:
    name = f"{base_offset:020d}.log"
    (homes[0] / name).write_bytes(data)
    for home in homes[1:]:
        os.link(homes[0] / name, home / name)
