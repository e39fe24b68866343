"""An unclean start takes over what was synced by its indexes, and reads only what lies beyond the recovery point."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cluster.log import segment_start
from cluster.log.config import LogConfig
from cluster.log.invariants import validate_segment
from cluster.log.partition_log import PartitionLog
from cluster.protocol.records import NewRecord, build_batch
from cluster.seams.memory_storage import MemoryFile
from tests.cluster.log.builders import (
    DIRECTORY,
    NOW_MS,
    Bench,
    append,
    bench,
    offset_for_timestamp,
    open_log,
    read_all,
)

CONFIG = LogConfig(segment_bytes=8000, index_interval_bytes=300)
BATCHES = 1000


@pytest.fixture
def on() -> Bench:
    """Two producers and three leader epochs over some twelve segments, left as by kill -9."""
    made = bench()
    log = open_log(made, CONFIG)
    for number in range(BATCHES):
        fields = {"producer_id": 7 + number % 2, "producer_epoch": 0, "base_sequence": number // 2}
        append(log, leader_epoch=number // 400, timestamp=NOW_MS + 3 * number, payload=b"x" * 30, **fields)
    return made


def described(log: PartitionLog) -> dict[str, object]:
    return {
        "bases": log.segment_base_offsets,
        "end": log.log_end_offset,
        "records": read_all(log),
        "epochs": log.epochs.entries,
        "producers": {entry.producer_id: entry for entry in log.producers},
        "newest": log.max_timestamp,
        "indexes": [
            (list(segment.offset_index), list(segment.time_index), segment.first_timestamp, segment.max_timestamp)
            for segment in log._local.segments
        ],
    }


def index_files(on: Bench) -> dict[str, bytes]:
    names = [name for name in on.storage.listdir(DIRECTORY) if name.endswith(("index", "checkpoint"))]
    return {name: on.storage.read(f"{DIRECTORY}/{name}") for name in names}


def test_what_was_synced_is_taken_over_and_not_read(on, monkeypatch) -> None:
    """The log is the same as if all had been read, at the cost of a few headers a segment."""
    whole = open_log(on, CONFIG)
    expected, files, bases = described(whole), index_files(on), whole.segment_base_offsets
    read = [0]
    real = MemoryFile.pread

    def pread(file: MemoryFile, size: int, offset: int) -> bytes:
        data = real(file, size, offset)
        read[0] += len(data)
        return data

    monkeypatch.setattr(MemoryFile, "pread", pread)
    log = open_log(on, CONFIG, recovery_point=bases[-1])
    last = on.storage.open(f"{DIRECTORY}/{bases[-1]:020d}.log").size_bytes
    assert log.verified_bytes == last
    assert read[0] - last < 1500 * len(bases) < whole.size_bytes / 4
    assert described(log) == expected
    assert index_files(on) == files


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: None,
        lambda data: b"",
        lambda data: b"nonsense",
        lambda data: data[:-24],
        lambda data: data[: -12 + -len(data) % 4],
        lambda data: data[:48],
        lambda data: data[:-24] + bytes(24),
        lambda data: data + bytes(24),
        lambda data: data[:48] + data,
    ],
    ids=["lost", "empty", "garbage", "cut", "last", "short", "zeros", "longer", "twice"],
)
def test_an_index_that_cannot_be_right_is_made_again(on, kind, spoil) -> None:
    """Indexes are not synced: whatever a power loss left of them, the log is the same, and so are the files then."""
    whole = open_log(on, CONFIG)
    expected, files, base = described(whole), index_files(on), whole.segment_base_offsets[3]
    path = f"{DIRECTORY}/{base:020d}.{kind}"
    data = spoil(on.storage.read(path))
    on.storage.remove(path)
    if data is not None:
        on.storage.write_atomic(path, data)
    log = open_log(on, CONFIG, recovery_point=whole.segment_base_offsets[8])
    assert described(log) == expected
    assert index_files(on) == files


@pytest.mark.parametrize("left_bytes", [0, 12])
def test_the_time_that_a_roll_noted_is_noted_again(left_bytes: int) -> None:
    """A segment of few large batches has no other entry; without it, a search by time passes the segment over."""
    on, config = bench(), LogConfig(segment_bytes=8000, index_interval_bytes=6000)
    log = open_log(on, config)
    for number in range(10):
        append(log, timestamp=NOW_MS + 3 * number, payload=b"x" * 3500)
    whole = open_log(on, config)
    expected, files, bases = described(whole), index_files(on), whole.segment_base_offsets
    assert len(bases) > 3
    for base in bases[:-1]:
        path = f"{DIRECTORY}/{base:020d}.timeindex"
        on.storage.write_atomic(path, on.storage.read(path)[:left_bytes])
    log = open_log(on, config, recovery_point=bases[-1])
    assert described(log) == expected
    assert index_files(on) == files


@pytest.mark.parametrize("kept", [[], [2, 5], [5, 8]])
def test_without_a_note_of_the_producers_more_is_read(on, kept) -> None:
    """The newest note at or below the recovery point is where reading begins; a torn one is passed over."""
    whole = open_log(on, CONFIG)
    expected, bases = described(whole), whole.segment_base_offsets
    for number, base in enumerate(bases[1:], start=1):
        path = f"{DIRECTORY}/{base:020d}.producers"
        if number not in kept:
            on.storage.write_atomic(path, on.storage.read(path)[:-9])
    assert described(open_log(on, CONFIG, recovery_point=bases[8] + 5)) == expected


def test_a_note_of_records_that_are_no_more_is_not_believed(on, caplog) -> None:
    """A power loss may bring back the file of a branch that was cut off: its record has another leader's epoch."""
    whole = open_log(on, CONFIG)
    base = whole.segment_base_offsets[8]
    path = f"{DIRECTORY}/{base:020d}.producers"
    stale = on.storage.read(path)
    whole.truncate_to(whole.segment_base_offsets[7])
    while whole.log_end_offset < base + 200:
        append(whole, leader_epoch=9, timestamp=NOW_MS, payload=b"x" * 30)
    expected = described(open_log(on, CONFIG))
    assert base in expected["bases"]
    on.storage.write_atomic(path, stale)
    log = open_log(on, CONFIG, recovery_point=base)
    assert "are of other records" in caplog.text
    assert described(log) == expected


def test_an_index_with_too_few_entries_is_made_again(monkeypatch, caplog) -> None:
    """It was written with a huge index.interval.bytes, before that had a bound. A lookup would read most of a segment.
    Large batches need no entry but their own."""
    monkeypatch.setattr(segment_start, "LONGEST_GAP_BYTES", 1000)
    made = bench()
    log = open_log(made, LogConfig(segment_bytes=50_000, index_interval_bytes=1_000_000))
    for number in range(BATCHES):
        append(log, payload=b"x" * (10_000 if number % 50 == 0 else 30), timestamp=NOW_MS + number)
    log.flush()
    segments, records = log.segment_base_offsets, read_all(log)
    assert len(segments) > 3
    assert all(not len(segment.offset_index) for segment in log._local.segments)
    bounded = LogConfig(segment_bytes=50_000, index_interval_bytes=300)
    for told in (len(segments) - 1, 0):
        caplog.clear()
        log = open_log(made, bounded, recovery_point=log.log_end_offset)
        assert caplog.text.count("has too few entries, and is rebuilt") == told
        assert (log.segment_base_offsets, read_all(log)) == (segments, records)
        entries = [[0, *(position for _, position in segment.offset_index)] for segment in log._local.segments]
        gaps = [there - here for positions in entries for here, there in pairwise(positions)]
        assert len([gap for gap in gaps if gap > 500]) <= 2 * BATCHES // 50


@pytest.mark.parametrize("before", [700, 1_000_000])
def test_with_a_smaller_interval_times_are_still_found(before: int) -> None:
    """The new entries of the offset index have times of their own: the last one of the time index, made at the roll,
    names a batch at the end of the segment, and a search would begin right before that (seed 403037)."""
    made = bench()
    log = open_log(made, LogConfig(segment_bytes=2000, index_interval_bytes=before))
    for number in range(100):
        append(log, bytearray(build_batch([NewRecord(NOW_MS + 10 * (number // 2), None, b"")])))
    log.flush()
    log = open_log(made, LogConfig(segment_bytes=2000, index_interval_bytes=0), recovery_point=log.log_end_offset)
    assert len(log.segment_base_offsets) > 3
    for number in range(0, 100, 2):
        timestamp = NOW_MS + 10 * (number // 2)
        assert offset_for_timestamp(log, timestamp - 3, log.log_end_offset) == (timestamp, number)
    for segment in log._local.segments:
        validate_segment(segment, log.epochs, 0, holes_allowed=False)
