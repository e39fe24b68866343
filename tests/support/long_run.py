"""The run directory of a long run in which nothing went wrong, of any size: what verification at size is tested on.

Like ``tests.support.stories``, but written as it is made, so that millions of records need no memory: one stream per
partition, segments of a given size, and equal replicas (links to one file, so that the disk holds them once).
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import crc32c
import numpy as np
from numpy.typing import NDArray

from tests.support import side_files
from tests.support.batches import BatchFields, Record, encode_batch
from tests.support.closed import TOPIC_ID, closed, declared, partition_metadata, shaped, write_series
from tests.support.settings import load_settings_of, run_model, settings, topic_config_of
from tests.support.stories import (
    PRODUCER_IDS_BELOW,
    RUN_ID,
    SECOND,
    SENTINEL_STREAM,
    TOPIC,
    Batch,
    assigned,
    first_looks,
    row,
)
from verifier.evidence import seal
from verifier.evidence.history import HistoryWriter
from verifier.evidence.run_directory import RunDirectory, append_json_line, write_json_atomic
from verifier.evidence.run_model import FinalPartition, TopicSpec
from verifier.evidence.sequenced_value import ValueEncoder

BROKERS = (1, 2, 3)
#: A final reader's row spans this many batches.
POLLED_BATCHES = 8
#: No row is longer than a real one can be.
RESERVED = 1_000_000
#: An index has an entry each time that more than so many bytes were appended.
INDEX_INTERVAL = 4096
#: Where a value has its sequence and its header's CRC.
_SEQUENCE, _HEADER_CRC = 24, 44


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
    _write_marks(directory, final)
    replicas = {f"{TOPIC}-{index}": BROKERS for index in range(partitions)}
    evidence = declared(names, replicas, range(1, partitions + 1))
    asked = shaped(settings(rate=0.0), evidence)
    model = run_model(
        name="long",
        seed=1,
        run_id=RUN_ID,
        started="2023-11-14T22:13:00Z",
        settings=asked,
        topics=[TopicSpec(TOPIC, partitions, len(BROKERS), TOPIC_ID, topic_config_of(asked))],
        final=final,
        final_topic_ids={TOPIC: TOPIC_ID},
        producer_ids_below=PRODUCER_IDS_BELOW,
        **closed(evidence),
    )
    write_json_atomic(directory.run_json, model.to_json())
    directory.faults_jsonl.touch()
    for look in first_looks(range(partitions)):
        append_json_line(directory.leaders_jsonl, look)
    write_series(directory, evidence)
    write_json_atomic(directory.load_settings_json, load_settings_of(asked, RUN_ID, TOPIC))
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
    stream, stamp = index + 1, _Stamp(index + 1, size, value_bytes)
    for begin in range(0, batches * size, RESERVED):
        end = min(begin + RESERVED, batches * size)
        histories["producers"].append(row("reserve", "invoke", index, stream, begin, end - 1, -1))
    histories["readers"].append(assigned(index, "load"))
    histories["final-confluent"].append(assigned(index, "final"))
    per_segment = max(1, segment_bytes // stamp.size_bytes)
    for begin in range(0, batches, per_segment):
        whole = stamp.batches(begin, min(batches, begin + per_segment))
        if begin + per_segment < batches:
            _write_segment(homes, begin * size, whole)
            stamp.write_side_files(homes, range(begin, begin + per_segment), begin > 0)
        else:
            last_begin, last_segment = begin, whole
    for number in range(batches):
        first = number * size
        told = index, stream, first, first + size - 1, first
        histories["producers"].append(row("send", "ok", *told))
        histories["readers"].append(row("poll", "ok", *told)._replace(high_watermark=first + size))
        if (number + 1) % POLLED_BATCHES == 0 or number == batches - 1:
            begin = number // POLLED_BATCHES * POLLED_BATCHES * size
            last = first + size - 1
            read = row("poll", "ok", index, stream, begin, last, begin, phase="final")
            histories["final-confluent"].append(read._replace(high_watermark=batches * size + 1))
    end = batches * size
    sent_ns = (10 + end) * SECOND // 10  # when all is acknowledged
    sentinel = Batch(end, ((SENTINEL_STREAM, index),), producer_id=2000, base_sequence=0, sentinel=True)
    _write_segment(homes, last_begin * size, last_segment + sentinel.encode(sent_ns=(sent_ns,)))
    stamp.write_side_files(homes, range(last_begin, batches), last_begin > 0, sentinel)
    whose = (index, SENTINEL_STREAM, index, index)
    histories["sentinel"].append(row("reserve", "invoke", *whose, -1, phase="final"))
    placed = row("sentinel", "ok", *whose, end, phase="final")
    histories["sentinel"].append(placed._replace(invoke_ns=sent_ns, complete_ns=sent_ns))
    seen = row("poll", "ok", *whose, end, phase="final")
    histories["final-confluent"].append(seen._replace(invoke_ns=sent_ns + SECOND, complete_ns=sent_ns + SECOND))
    ends = dict.fromkeys(BROKERS, end + 1)
    return FinalPartition(TOPIC, index, BROKERS[index % len(BROKERS)], 1, end + 1, 0, ends, end)


def _write_segment(homes: list[Path], base_offset: int, data: bytes | bytearray) -> None:
    _write_everywhere(homes, f"{base_offset:020d}.log", data)


def _write_everywhere(homes: list[Path], name: str, data: bytes | bytearray) -> None:
    (homes[0] / name).write_bytes(data)
    for home in homes[1:]:
        os.link(homes[0] / name, home / name)


def _write_marks(directory: RunDirectory, final: list[FinalPartition]) -> None:
    """What a broker writes of all its logs when it stops cleanly."""
    ends = {(each.topic, each.partition): each.high_watermark for each in final}
    marks = {"recovery-point": ends, "replication": ends, "log-start": {}}
    for broker in BROKERS:
        data = directory.node(broker) / "data"
        for name, offsets in marks.items():
            (data / f"{name}-offset-checkpoint").write_bytes(side_files.offsets(offsets))
        (data / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":-1}')


class _Stamp:
    """Makes batches of one partition by changing a few bytes of one that ``encode_batch`` made."""

    def __init__(self, stream: int, size: int, value_bytes: int) -> None:
        encoder = ValueEncoder(RUN_ID, stream, value_bytes)
        self._size = size
        self._stream = stream
        values = [encoder.encode(sequence, 0) for sequence in range(size)]
        data = encode_batch([Record(value) for value in values], BatchFields(0, 1, 1000 + stream, 0, 0))
        self._first = np.frombuffer(data, dtype=np.uint8)
        self._values = [data.index(value) for value in values]
        self.size_bytes = len(data)
        # the CRC of a header is that with zeros, changed by what each byte of the sequence and the send time changes
        header = bytearray(encoder.encode(0, 0)[:_HEADER_CRC])
        self._base = zlib.crc32(header)
        self._tables = np.zeros((16, 256), dtype=np.uint32)
        for position in range(16):
            for byte in range(256):
                header[_SEQUENCE + position] = byte
                self._tables[position, byte] = zlib.crc32(header) ^ self._base
            header[_SEQUENCE + position] = 0

    def write_side_files(self, homes: list[Path], numbers: range, rolled: bool, sentinel: Batch | None = None) -> None:
        """What stands beside the segment of these batches, and of the sentinel that ends the log."""
        base_offset = numbers.start * self._size
        sized: list[tuple[side_files.Written, int]] = [(self._written(number), self.size_bytes) for number in numbers]
        if sentinel is not None:
            sized.append((sentinel, len(sentinel.encode())))
        index, times = side_files.indexes(base_offset, sized, INDEX_INTERVAL)
        _write_everywhere(homes, f"{base_offset:020d}.index", index)
        _write_everywhere(homes, f"{base_offset:020d}.timeindex", times)
        newest = self._written(numbers.start - 1)
        if rolled:
            snapshot = side_files.snapshot(base_offset, [newest])
            _write_everywhere(homes, f"{base_offset:020d}.snapshot", snapshot)
        if sentinel is not None:
            end = sentinel.next_offset
            _write_everywhere(homes, "leader-epoch-checkpoint", side_files.leader_epochs([self._written(0)], 0, 1))
            last = [self._written(numbers.stop - 1), sentinel]
            _write_everywhere(homes, f"{end:020d}.snapshot", side_files.snapshot(end, last))

    def _written(self, number: int) -> Batch:
        first = number * self._size
        values = ((self._stream, 0),) * self._size
        return Batch(first, values, producer_id=1000 + self._stream, base_sequence=first)

    def batches(self, begin: int, end: int) -> bytes:
        """The bytes of the batches with these numbers."""
        rows = np.tile(self._first, (end - begin, 1))
        first = np.arange(begin, end, dtype=np.int64) * self._size
        rows[:, 0:8] = _bytes(first, ">i8")
        rows[:, 53:57] = _bytes(first, ">i4")
        sent_ns = _bytes(np.array([sent_at(number) for number in first.tolist()]), ">u8")
        for step, at in enumerate(self._values):
            varied = np.hstack([_bytes(first + step, ">u8"), sent_ns])
            crc = np.full(first.size, self._base, dtype=np.uint32)
            for position in range(16):
                crc ^= self._tables[position].take(varied[:, position])
            rows[:, at + _SEQUENCE : at + _SEQUENCE + 16] = varied
            rows[:, at + _HEADER_CRC : at + _HEADER_CRC + 4] = _bytes(crc, ">u4")
        crcs = [crc32c.crc32c(row[21:].data) for row in rows]
        rows[:, 17:21] = _bytes(np.array(crcs, dtype=np.uint32), ">u4")
        return rows.tobytes()


def sent_at(first: int) -> int:
    """When the batch that begins with this sequence is sent."""
    return row("send", "ok", 0, 1, first, first, first).invoke_ns


def _bytes(numbers: NDArray[np.integer[Any]], kind: str) -> NDArray[np.uint8]:
    """Each number as a row of bytes."""
    return numbers.astype(kind).view(np.uint8).reshape(numbers.size, -1)
