"""Producer entries: how batches change them, how they go back, and Kafka's snapshot bytes."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c

from cluster.log.errors import CheckpointError
from cluster.log.log_ends import MOMENT_MS, ROOM_MS
from cluster.log.producer_snapshot import parse_snapshot, snapshot_bytes
from cluster.log.producers import ProducerStates
from cluster.log.sequence import BatchMetadata, ProducerEntry
from cluster.log.snapshots import histories_bytes, parse_histories
from tests.cluster.log.builders import NOW_MS, make_header

CONTROL = 0x30


def test_the_last_five_batches_are_kept():
    """Of seven batches the newest five are remembered, with the offsets at which the log took them."""
    producers = ProducerStates()
    for number in range(7):
        producers.update(make_header(base_sequence=number * 2, count=2, timestamp=number), 100 + number * 2)
    entry = producers.get(7)
    assert entry is not None
    assert entry.batches == tuple(BatchMetadata(n * 2, n * 2 + 1, 100 + n * 2, 101 + n * 2, n) for n in range(2, 7))
    assert entry.complete and not entry.wrapped
    assert entry.last_timestamp == 6
    assert repr(producers) == "ProducerStates(1 producers, 0 marks)"


def test_a_history_that_does_not_begin_at_zero_is_not_complete():
    """What was accepted after the log start moved (KIP-360) has an unknown past, until a new epoch begins."""
    producers = ProducerStates()
    producers.update(make_header(base_sequence=5), 0)
    producers.update(make_header(base_sequence=6), 1)
    entry = producers.get(7)
    assert entry is not None and not entry.complete
    producers.update(make_header(producer_epoch=1, base_sequence=0), 2)
    entry = producers.get(7)
    assert entry is not None and entry.complete and len(entry.batches) == 1


@pytest.mark.parametrize("base_sequence", [4, 1, 0])
def test_a_batch_that_does_not_follow_leaves_a_hole(base_sequence):
    """A gap, an overlap or a restart in the same epoch: the log is as it is, but its history is not complete."""
    producers = ProducerStates()
    producers.update(make_header(base_sequence=0, count=3), 0)
    producers.update(make_header(base_sequence=base_sequence), 3)
    producers.update(make_header(base_sequence=base_sequence + 1), 4)
    entry = producers.get(7)
    assert entry is not None and not entry.complete


def test_the_wrap_is_remembered():
    """After 2147483647 comes 0, without a hole, and the entry knows that numbers have come round."""
    producers = ProducerStates()
    producers.update(make_header(base_sequence=0, count=2**31 - 1), 0)
    producers.update(make_header(base_sequence=2**31 - 1, count=3), 10)
    producers.update(make_header(base_sequence=2), 13)
    entry = producers.get(7)
    assert entry is not None and entry.complete and entry.wrapped
    assert entry.last_sequence == 2


def test_batches_without_producer_are_passed_over():
    """A producer id of -1 leaves no entry."""
    producers = ProducerStates()
    producers.update(make_header(producer_id=-1, producer_epoch=-1, base_sequence=-1), 0)
    assert len(producers) == 0


def test_a_marker_of_a_higher_epoch_clears_the_batches():
    """A marker that bumps the epoch makes sequence 0 the next; at the same epoch batches stay (ProducerAppendInfo)."""
    producers = ProducerStates()
    producers.update(make_header(base_sequence=0, count=3), 0)
    producers.update(make_header(base_sequence=-1, attributes=CONTROL, timestamp=NOW_MS + 5), 3)
    entry = producers.get(7)
    assert entry is not None and len(entry.batches) == 1 and entry.last_timestamp == NOW_MS + 5
    producers.update(make_header(producer_epoch=1, base_sequence=-1, attributes=CONTROL), 4)
    entry = producers.get(7)
    assert entry is not None and entry.batches == () and entry.producer_epoch == 1 and entry.complete
    producers.update(make_header(producer_id=8, base_sequence=-1, attributes=CONTROL), 5)
    unknown = producers.get(8)
    assert unknown is not None and not unknown.complete


def test_expiry_is_by_the_newest_batch():
    """now - last timestamp >= producer.id.expiration.ms: the entry goes, once it has been idle here for as long."""
    producers = ProducerStates()
    producers.update(make_header(producer_id=1, timestamp=1000), 0)
    producers.update(make_header(producer_id=2, timestamp=1002), 1)
    assert producers.expire(2000, 0, 1000) == 0, "not seen idle yet"
    assert producers.expire(2001, 1000, 1000) == 1
    assert [entry.producer_id for entry in producers] == [2]


def test_a_producer_of_old_times_is_not_forgotten_while_it_writes():
    """Timestamps are the client's clock: whoever writes history would lose its state at the next look."""
    producers = ProducerStates()
    for number in range(4):
        producers.update(make_header(base_sequence=number, timestamp=5), number)
        assert producers.expire(10**12, 600 * number, 1000) == 0
    assert producers.expire(10**12, 600 * 3 + 999, 1000) == 0
    assert producers.expire(10**12, 600 * 3 + 1000, 1000) == 1


def test_holds_above_tells_whether_a_truncation_matters():
    """Only a producer with a batch at or above the offset makes a rebuild necessary; a marker alone might."""
    producers = ProducerStates()
    producers.update(make_header(base_sequence=0, count=3), 10)
    assert producers.holds_above(12)
    assert not producers.holds_above(13)
    producers.update(make_header(producer_id=9, base_sequence=-1, attributes=CONTROL), 13)
    assert producers.holds_above(99)


def test_snapshot_bytes():
    """The empty file is one that Kafka wrote; an entry is 46 bytes in the order of Kafka's ProducerStateManager."""
    assert snapshot_bytes([]).hex() == "000148674bc700000000"
    batches = (BatchMetadata(0, 2, 50, 52, 7), BatchMetadata(3, 6, 53, 56, 8))
    data = snapshot_bytes([ProducerEntry(1000, 5, batches, True, 9)])
    body = bytes.fromhex(
        "00000001"  # count
        "00000000000003e8 0005 00000006 0000000000000038 00000003 0000000000000009 ffffffff ffffffffffffffff"
    )
    assert data == b"\x00\x01" + struct.pack(">I", crc32c(body)) + body
    assert len(data) == 10 + 46


def test_snapshot_has_the_newest_batch_alone():
    """What comes back has one batch for each producer and a history that is not known to be complete."""
    producers = ProducerStates()
    for number in range(3):
        producers.update(make_header(base_sequence=number * 4, count=4), number * 4)
    producers.update(make_header(producer_id=9, producer_epoch=2, base_sequence=-1, attributes=CONTROL), 12)
    again = ProducerStates()
    again.load_snapshot(producers.snapshot())
    entry = again.get(7)
    assert entry is not None
    assert entry.batches == (BatchMetadata(8, 11, 8, 11, NOW_MS),) and not entry.complete
    marker = again.get(9)
    assert marker is not None and marker.batches == () and marker.producer_epoch == 2


def test_snapshot_across_the_wrap():
    """The base sequence is counted back across 0."""
    producers = ProducerStates()
    producers.update(make_header(base_sequence=2**31 - 2, count=4), 0)
    (entry,) = parse_snapshot(producers.snapshot())
    assert entry.batches[0][:2] == (2**31 - 2, 1)


@pytest.mark.parametrize("position", range(0, 56, 5))
def test_a_damaged_snapshot_is_refused(position):
    """Any byte that is not as it was raises CheckpointError, and so does any length."""
    data = bytearray(snapshot_bytes([ProducerEntry(1, 0, (BatchMetadata(0, 0, 0, 0, 0),), True, 0)]))
    with pytest.raises(CheckpointError):
        parse_snapshot(bytes(data[:position]))
    data[position] ^= 1
    with pytest.raises(CheckpointError):
        parse_snapshot(bytes(data))


def test_a_snapshot_of_another_count_is_refused():
    """A checksum that holds does not excuse a count that does not."""
    body = struct.pack(">i", 2) + bytes(46)
    with pytest.raises(CheckpointError, match="for 2 producers"):
        parse_snapshot(b"\x00\x01" + struct.pack(">I", crc32c(body)) + body)


def test_histories_and_back():
    """All that is known comes back, and a byte that is wrong anywhere is noticed."""
    producers = ProducerStates()
    producers.restore(
        [
            ProducerEntry(7, 1, tuple(BatchMetadata(n, n, n, n, NOW_MS) for n in range(5)), True, NOW_MS),
            ProducerEntry(2**62, 0, (), False, -1, True),
        ]
    )
    data = histories_bytes(3, producers)
    assert parse_histories(data) == (3, list(producers))
    for at in range(len(data)):
        with pytest.raises(CheckpointError):
            parse_histories(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(CheckpointError):
            parse_histories(data[:at])


def test_producers_have_a_bound():
    """Who wrote nothing for five minutes makes room for another; of those who write nobody is forgotten."""
    producers = ProducerStates()

    def comes(producer_id, offset, monotonic_ms):
        if producers.get(producer_id) is None and not producers.has_room(10, offset, monotonic_ms):
            return False
        producers.update(make_header(producer_id=producer_id, base_sequence=0), offset)
        return True

    assert all(comes(number, number, number) for number in range(10))
    assert not comes(10, 10, 10)
    assert not comes(10, 10, MOMENT_MS + 10)
    assert comes(3, 10, ROOM_MS // 2)
    assert not comes(11, 11, ROOM_MS + MOMENT_MS)
    assert comes(12, 11, ROOM_MS + MOMENT_MS + 10)
    assert {entry.producer_id for entry in producers} == {3, 12}


def test_a_log_that_was_cut_forgets_when_it_ended_where():
    """Else what is written where it was cut would look old."""
    producers = ProducerStates()
    for number in range(10):
        producers.update(make_header(producer_id=number, base_sequence=0), number)
    assert not producers.has_room(10, 100, 0)
    producers.drop_marks_above(10)
    assert not producers.has_room(10, 10, ROOM_MS + MOMENT_MS)
    assert len(producers) == 10
