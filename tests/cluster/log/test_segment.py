"""Segment: every read there is, by each of its three ways, and what truncation must not leave behind."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from cluster.log import segment as segment_module
from cluster.log.config import LogConfig
from cluster.log.segment import Segment
from cluster.protocol.batch import parse_header
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.log.builders import NOW_MS, content, make_batch

CONFIG = LogConfig(index_interval_bytes=300)


class Stored(NamedTuple):
    data: bytes
    base_offset: int
    last_offset: int


def make_segment(recent: int, monkeypatch: pytest.MonkeyPatch) -> Segment:
    monkeypatch.setattr(segment_module, "RECENT_BATCHES", recent)
    storage = MemoryStorage()
    storage.makedirs("d")
    return Segment("d", 100, CONFIG, storage, NOW_MS)


def fill(segment: Segment, sizes: list[int]) -> list[Stored]:
    """Batches of one to three records with so many bytes of payload."""
    stored = []
    for number, size in enumerate(sizes):
        base_offset = segment.next_offset
        batch = bytes(make_batch(1 + number % 3, base_offset=base_offset, payload=bytes([number]) * size))
        header = parse_header(batch)
        segment.write(batch)
        segment.note(header.last_offset, header.max_timestamp, len(batch))
        stored.append(Stored(batch, base_offset, header.last_offset))
    return stored


def expected_read(
    stored: list[Stored], offset: int, max_bytes: int, upper: int, at_least_one: bool
) -> tuple[bytes, int]:
    """The batches, and the bytes there would be if the last could be cut."""
    below = [batch.data for batch in stored if offset <= batch.last_offset < upper]
    taken = b""
    for data in below:
        if len(taken) + len(data) > max_bytes and not (at_least_one and not taken):
            break
        taken += data
    return taken, max(len(taken), min(max_bytes, sum(map(len, below))))


@pytest.mark.parametrize("recent", [1, 4, 256])
def test_every_read(recent, monkeypatch):
    """All offsets, bounds and sizes, near the end and far from it, read once and read on."""
    segment = make_segment(recent, monkeypatch)
    stored = fill(segment, [7, 120, 0, 260, 40, 3, 90, 500, 0, 0, 33, 80])
    end = segment.next_offset
    for at_least_one in (True, False):
        for max_bytes in (1, 60, 61, 130, 200, 400, 900, 5000):
            for upper in range(99, end + 2):
                for offset in range(100, end):
                    position = segment.locate(offset)
                    assert position is not None
                    records, readable = segment.read(position, max_bytes, upper, at_least_one)
                    expected = expected_read(stored, offset, max_bytes, upper, at_least_one)
                    assert (content(records), readable) == expected
    assert segment.locate(end) is None


@pytest.mark.parametrize("keep", range(12))
def test_what_is_remembered_does_not_outlive_a_truncation(keep, monkeypatch):
    """Places where readers stopped, recent batches and index entries are those of the batches that are there now."""
    segment = make_segment(1, monkeypatch)
    stored = fill(segment, [50] * 12)

    def read_each(batches: list[Stored]) -> None:
        for batch in batches:
            position = segment.locate(batch.base_offset)
            assert position is not None
            assert content(segment.read(position, 130, segment.next_offset, True)[0]) == batch.data

    read_each(stored)
    segment.truncate_to(stored[keep].base_offset)
    assert segment.next_offset == stored[keep].base_offset
    stored = stored[:keep] + fill(segment, [71] * 8)
    read_each(stored[::-1])
    fresh = make_segment(1, monkeypatch)
    for batch in stored:
        fresh.write(batch.data)
        fresh.note(batch.last_offset, NOW_MS, len(batch.data))
    assert list(segment.offset_index) == list(fresh.offset_index)
    assert repr(segment) == f"Segment([100, {segment.next_offset}), {segment.size_bytes} bytes)"


def test_max_timestamp_goes_back_with_the_batches(monkeypatch):
    """Also when the newest record was not in the last batch, nor in the index."""
    segment = make_segment(256, monkeypatch)
    timestamps = [50, 20, 70, 30, 60, 90, 10, 80, 85, 15]
    for offset, timestamp in enumerate(timestamps, start=100):
        batch = make_batch(base_offset=offset, timestamp=timestamp, payload=bytes(100))
        segment.write(batch)
        segment.note(offset, timestamp, len(batch))
    for keep in range(9, -1, -1):
        segment.truncate_to(100 + keep)
        newest = max(timestamps[:keep], default=-1)
        assert segment.max_timestamp == newest
        if keep:
            assert segment.max_timestamp_offset == 100 + timestamps.index(newest)


def test_indexes_that_cannot_be_written_stay_pending(monkeypatch, caplog):
    """An append does not fail because of a hint: the entries are written later, or made again from the log."""
    monkeypatch.setattr(segment_module, "PENDING_ENTRIES", 2)
    segment = make_segment(256, monkeypatch)
    monkeypatch.setattr(segment, "flush_indexes", lambda: (_ for _ in ()).throw(OSError(28, "No space left")))
    fill(segment, [400] * 6)
    assert "cannot write the indexes" in caplog.text
    assert segment.offset_index.pending == 5
    monkeypatch.undo()
    segment.seal()
    assert segment.offset_index.pending == segment.time_index.pending == 0
