"""Appends of producers' batches, case by case: answers, errors, timestamps."""

from __future__ import annotations

import pytest

from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ACCEPTED
from cluster.protocol.batch import crc_ok, parse_header
from cluster.protocol.errors import ErrorCode
from tests.cluster.log.builders import (
    DIRECTORY,
    NOW_MS,
    Bench,
    append,
    bench,
    code_of,
    make_batch,
    open_log,
    produce,
    read_all,
)


@pytest.fixture
def on() -> Bench:
    return bench()


def test_offset_and_epoch_are_patched_in_place(on):
    """The batch that was handed over carries its offset and epoch, with the checksum as it was."""
    log = open_log(on)
    produce(log, 0, 3)
    batch = make_batch(2, producer_id=7, producer_epoch=0, base_sequence=3)
    before = bytes(batch)
    info = append(log, batch, leader_epoch=5)
    header = parse_header(batch)
    assert (header.base_offset, header.leader_epoch) == (3, 5)
    assert bytes(batch[16:]) == before[16:] and crc_ok(batch, 0, len(batch))
    assert (info.first_offset, info.last_offset, info.log_append_time_ms, info.log_start_offset) == (3, 4, -1, 0)
    assert read_all(log)[-len(batch) :] == bytes(batch)
    assert repr(log) == "PartitionLog(t-0, [0, 5), 1 segments, LeaderEpochCache(0@0 5@3))"


def test_log_append_time(on):
    """LogAppendTime sets the bit and the max timestamp, with a new checksum; a duplicate has the original's time."""
    log = open_log(on, LogConfig(message_timestamp_type="LogAppendTime"))
    batch = make_batch(2, producer_id=7, producer_epoch=0, base_sequence=0, timestamp=5)
    info = append(log, batch)
    header = parse_header(batch)
    assert header.is_log_append_time and header.max_timestamp == NOW_MS and crc_ok(batch, 0, len(batch))
    assert info.log_append_time_ms == NOW_MS
    assert log.max_timestamp == NOW_MS
    again = produce(log, 0, 2)
    assert again.duplicate and again.log_append_time_ms == NOW_MS


@pytest.mark.parametrize(
    ("timestamp", "attributes", "refused"),
    [
        (NOW_MS - 1000, 0, False),
        (NOW_MS - 1001, 0, True),
        (NOW_MS + 500, 0, False),
        (NOW_MS + 501, 0, True),
        (-1, 0, False),
        (NOW_MS, 0x08, True),
    ],
)
def test_create_time_bounds(on, timestamp, attributes, refused):
    """Too old, too new, or LogAppendTime set by a producer: INVALID_TIMESTAMP; -1 is exempt."""
    config = LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500)
    log = open_log(on, config)
    if refused:
        assert code_of(lambda: append(log, timestamp=timestamp, attributes=attributes)) == ErrorCode.INVALID_TIMESTAMP
        assert log.log_end_offset == 0
    else:
        append(log, timestamp=timestamp, attributes=attributes)


def test_a_batch_larger_than_a_segment(on):
    """RECORD_LIST_TOO_LARGE above segment.bytes."""
    log = open_log(on, LogConfig(segment_bytes=100))
    assert code_of(lambda: append(log, payload=bytes(40))) == ErrorCode.RECORD_LIST_TOO_LARGE
    append(log, payload=bytes(39))


def test_an_older_leader_epoch_is_refused(on):
    """A leader of the past leaves no trace: no batch, no epoch, no roll."""
    log = open_log(on)
    append(log, leader_epoch=4)
    assert code_of(lambda: append(log, leader_epoch=3)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert log.epochs.entries == ((4, 0),) and log.log_end_offset == 1


def test_a_duplicate_below_the_window_says_what_must_be_committed(on):
    """DUPLICATE_SEQUENCE_NUMBER, no offsets, and everything before the first cached batch must be committed."""
    log = open_log(on)
    for number in range(7):
        produce(log, number * 2, 2)
    info = produce(log, 2, 2)
    assert info.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER and info.duplicate
    assert (info.first_offset, info.last_offset, info.must_commit_offset) == (-1, -1, 3)
    assert log.log_end_offset == 14


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("gapless", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ("seed", ErrorCode.UNKNOWN_PRODUCER_ID),
        ("kafka", ErrorCode.NONE),
    ],
)
def test_the_setting_for_unknown_producers(on, setting, expected):
    """The log's configuration decides about a producer it does not know."""
    log = open_log(on, LogConfig(unknown_producer=setting))
    if expected is ErrorCode.NONE:
        produce(log, 5)
        assert code_of(lambda: produce(log, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # its past is not known
    else:
        assert code_of(lambda: produce(log, 5)) == expected


def test_an_unknown_producer_is_accepted_once_the_log_start_has_moved(on):
    """What it wrote before may have been deleted; its history is then not complete (KIP-360)."""
    log = open_log(on, log_start_offset=10)
    assert produce(log, 5).first_offset == 10
    entry = log.producers.get(7)
    assert entry is not None and not entry.complete
    assert code_of(lambda: produce(log, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_another_sequence_check_may_be_given(on):
    """The check is the log's collaborator: without it duplicates are stored."""
    log = PartitionLog.open(
        DIRECTORY, "t", 0, LogConfig(), on.storage, on.clock, clean=True, check_sequence=lambda *_: ACCEPTED
    )
    produce(log, 0)
    assert produce(log, 0).first_offset == 1
