"""Recovery's walk over a segment's file: the same as noting every batch by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.log import segment_start
from cluster.log.config import LogConfig
from cluster.log.epochs import LeaderEpochCache
from cluster.log.producers import ProducerStates
from cluster.log.replay import LogReplay
from cluster.log.segment import Segment
from cluster.log.segment_start import walk
from cluster.protocol.batch import parse_header
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.log.builders import NOW_MS, make_batch

CONFIG = LogConfig(index_interval_bytes=150)
LAST = 2**31 - 1

#: (producer id, epoch, what becomes of its sequence, records, payload, milliseconds later, begins a leader epoch)
BATCHES = st.lists(
    st.tuples(
        st.integers(-1, 2),
        st.sampled_from([0, 0, 0, 0, 1]),
        st.sampled_from(["next", "next", "next", "next", "again", "gap", "marker", "near the wrap"]),
        st.integers(1, 5),
        st.integers(0, 300),
        st.integers(-20, 40),
        st.booleans(),
    ),
    max_size=40,
)


def made(rows: list[tuple[int, int, str, int, int, int, bool]]) -> list[bytes]:
    """The batches of a segment, in order."""
    batches: list[bytes] = []
    following: dict[int, int] = {}
    offset, timestamp, leader_epoch = 0, NOW_MS, 0
    for producer_id, producer_epoch, kind, count, size, later_ms, begins in rows:
        sequence = following.get(producer_id, 0)
        if kind == "gap":
            sequence += 7
        elif kind == "again":
            sequence = 0
        elif kind == "near the wrap":
            sequence = LAST - 2
        elif kind == "marker":
            sequence = -1
        if producer_id < 0:
            sequence = producer_epoch = -1
        if sequence >= 0:
            sequence &= LAST
            following[producer_id] = (sequence + count) & LAST
        timestamp += later_ms
        leader_epoch += begins
        batches.append(
            bytes(
                make_batch(
                    count,
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    base_sequence=sequence,
                    base_offset=offset,
                    leader_epoch=leader_epoch,
                    timestamp=timestamp,
                    payload=b"x" * size,
                )
            )
        )
        offset += count
    return batches


def stored_nothing() -> MemoryStorage:
    storage = MemoryStorage()
    storage.makedirs("data")
    return storage


def described(segment: Segment) -> dict[str, object]:
    return {
        "end": (segment.next_offset, segment.size_bytes),
        "times": (segment.first_timestamp, segment.max_timestamp, segment.max_timestamp_offset),
        "indexes": (list(segment.offset_index), list(segment.time_index)),
        "found": [segment.locate(offset) for offset in range(segment.next_offset + 1)],
    }


@pytest.mark.parametrize("chunk", [100, 1_048_576])
@pytest.mark.parametrize("check_crc", [True, False])
@given(rows=BATCHES)
def test_a_walk_makes_what_appending_made(rows, check_crc, chunk) -> None:
    """Ends, times, indexes, lookups, epochs and every producer: identical, whatever the order and the read size."""
    batches = made(rows)
    storage = stored_nothing()
    appended = Segment("data", 0, CONFIG, storage, NOW_MS)
    epochs, producers = LeaderEpochCache(), ProducerStates()
    for batch in batches:
        header = parse_header(batch)
        epochs.assign(header.leader_epoch, header.base_offset)
        appended.write_batches([batch])
        producers.update(header, header.base_offset)
    walked = Segment("data", 0, CONFIG, storage, NOW_MS)
    replay = LogReplay(LeaderEpochCache(), ProducerStates(), holes_allowed=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_start, "CRC_CHUNK_BYTES", chunk)
        patch.setattr(segment_start, "SCAN_CHUNK_BYTES", chunk)
        assert walk(walked, replay, check_crc=check_crc) is None
    replay.settle()
    replay.settle()  # as at each segment: what was settled is not settled again
    assert described(walked) == described(appended)
    assert replay.epochs.entries == epochs.entries
    assert {e.producer_id: e for e in replay.producers} == {e.producer_id: e for e in producers}


@given(rows=BATCHES.filter(bool), data=st.data())
def test_the_walk_ends_where_a_byte_is_wrong(rows, data) -> None:
    """Whichever byte it is, but for the epoch's, which nothing covers: what comes before is taken, and it is said."""
    batches = made(rows)
    hit = data.draw(st.integers(0, len(batches) - 1), "batch")
    byte = data.draw(st.integers(0, len(batches[hit]) - 1).filter(lambda at: not 12 <= at < 16), "byte")
    stored = bytearray(b"".join(batches))
    start = sum(map(len, batches[:hit]))
    stored[start + byte] ^= 0x40
    storage = stored_nothing()
    segment = Segment("data", 0, CONFIG, storage, NOW_MS)
    segment.write(stored)
    walked = Segment("data", 0, CONFIG, storage, NOW_MS)
    problem = walk(walked, LogReplay(LeaderEpochCache(), ProducerStates(), holes_allowed=False), check_crc=True)
    assert problem
    assert walked.size_bytes == start
