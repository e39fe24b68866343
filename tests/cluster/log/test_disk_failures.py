"""A disk that fails under a log: what is counted, what is answered, what is left."""

from __future__ import annotations

import logging

import pytest

from cluster.log.config import LogConfig
from cluster.log.errors import LogError, StorageFailed
from cluster.log.manager import LogManager
from cluster.protocol.batch import parse_header
from cluster.protocol.errors import ErrorCode
from cluster.seams.memory_storage import MemoryFile
from tests.cluster.log.builders import (
    NOW_MS,
    Bench,
    append,
    bench,
    code_of,
    content,
    offset_for_timestamp,
    open_log,
    produce,
    read_all,
)
from tests.cluster.log.crashing import Died, dying_after, full_after


@pytest.fixture
def on() -> Bench:
    return bench()


def test_a_failed_write_leaves_no_half_batch(on, monkeypatch):
    """The file is cut back, nothing is counted, and the same batch is accepted once the disk has room."""
    log = open_log(on)
    produce(log, 0)
    real_append = MemoryFile.append

    def half(file, *buffers):
        real_append(file, bytes(buffers[0])[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(MemoryFile, "append", half)
    assert code_of(lambda: produce(log, 1)) == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert log.log_end_offset == 1 and not log.is_failed
    entry = log.producers.get(7)
    assert entry is not None and entry.last_sequence == 0
    assert produce(log, 1).first_offset == 1
    assert read_all(open_log(on)) == read_all(log)


def test_a_failed_write_that_cannot_be_undone_is_overwritten(on, monkeypatch, caplog):
    """Even if the cut fails too, the next append or the next start gets rid of the half batch."""
    log = open_log(on)
    produce(log, 0)
    monkeypatch.setattr(MemoryFile, "append", lambda *_: (_ for _ in ()).throw(OSError(5, "I/O error")))
    monkeypatch.setattr(MemoryFile, "truncate", lambda *_: (_ for _ in ()).throw(OSError(5, "I/O error")))
    with caplog.at_level(logging.WARNING):
        assert code_of(lambda: produce(log, 1)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert "cannot cut" in caplog.text
    monkeypatch.undo()
    assert produce(log, 1).first_offset == 1


def test_a_failed_fsync_fails_the_log_for_good(on, monkeypatch):
    """Pages may be gone although the next fsync succeeds: KAFKA_STORAGE_ERROR until the log is opened again."""
    log = open_log(on)
    append(log)
    monkeypatch.setattr(MemoryFile, "fsync", lambda _: (_ for _ in ()).throw(OSError(5, "I/O error")))
    assert code_of(log.flush) == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert log.is_failed and log.recovery_point == 0
    for call in (log.flush, lambda: append(log), lambda: log.read(0, 1, 1), lambda: log.truncate_to(0)):
        assert code_of(call) == ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(lambda: log.append_as_follower(memoryview(b""))) == ErrorCode.KAFKA_STORAGE_ERROR
    assert "failed: syncing" in repr(log)
    with pytest.raises(StorageFailed):
        log.close(clean=True)


def test_an_unreadable_file_is_a_storage_error(on, monkeypatch):
    """An I/O error or damage met by a lookup is KAFKA_STORAGE_ERROR, not an exception of another kind."""
    log = open_log(on, LogConfig(segment_bytes=200))
    for _ in range(8):
        append(log)
    monkeypatch.setattr(MemoryFile, "pread", lambda *_: (_ for _ in ()).throw(OSError(5, "I/O error")))
    assert code_of(lambda: log.read(1, 100, 8)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(lambda: offset_for_timestamp(log, NOW_MS, 8)) == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    monkeypatch.setattr(MemoryFile, "pread", lambda *_: bytes(100))
    assert code_of(lambda: log.read(1, 100, 8)) == ErrorCode.KAFKA_STORAGE_ERROR


TINY = LogConfig(segment_bytes=200, index_interval_bytes=60, file_delete_delay_ms=0, retention_ms=1000)


def a_life(made: LogManager, acknowledged: list[int], errors: list[LogError]) -> None:
    """Appends with rolls, flushes, every checkpoint, retention, a clean stop; what fails does not end it."""

    def tried(call):
        try:
            return call()
        except LogError as error:
            errors.append(error)
            return None

    tried(made.load)
    log = tried(lambda: made.get_or_create("t", 0, None, TINY))
    if log is not None:
        for sequence in range(9):
            if tried(lambda s=sequence: produce(log, len(acknowledged), timestamp=NOW_MS + s, leader_epoch=s // 3)):
                acknowledged.append(sequence)
        for call in (
            log.flush,
            made.checkpoint_recovery_points,
            made.checkpoint_log_starts,
            lambda: made.checkpoint_high_watermarks({("t", 0): len(acknowledged)}),
            lambda: log.advance_log_start_offset(min(3, log.log_end_offset)),
        ):
            tried(call)
    tried(lambda: made.close(clean=True))


def test_a_disk_that_is_full_from_any_write_on_loses_nothing_acknowledged():
    """ENOSPC on append, roll, index, snapshot, epochs or checkpoint: KAFKA_STORAGE_ERROR, or it does not matter. When
    there is room again the next start has every acknowledged record."""
    for writes in range(1000):
        on = bench()
        acknowledged: list[int] = []
        errors: list[LogError] = []
        with full_after(writes) as done:
            a_life(LogManager("data", on.storage, on.clock, TINY), acknowledged, errors)
        assert all(error.error_code is ErrorCode.KAFKA_STORAGE_ERROR for error in errors)
        assert all("No space left" in error.message or "failed before" in error.message for error in errors)
        check_life(on, acknowledged)
        if done[0] <= writes:
            assert errors == [] and len(acknowledged) == 9
            return
        # What is not told is made again at the next start: indexes, snapshots.
        assert errors or len(acknowledged) == 9
    raise AssertionError("it never ended")


@pytest.mark.parametrize("power", [False, True])
def test_a_broker_that_dies_at_any_operation_loses_nothing(power):
    """kill -9 anywhere in a life keeps all that was appended; a power loss all that was flushed."""
    for operations in range(1000):
        on = bench()
        acknowledged: list[int] = []
        try:
            with dying_after(operations):
                a_life(LogManager("data", on.storage, on.clock, TINY), acknowledged, [])
        except Died:
            flushed = len(acknowledged) if on.storage.exists("data/log-start-offset-checkpoint") else 0
            if power:
                on.storage.power_loss()
            check_life(on, acknowledged if not power else acknowledged[:flushed])
        else:
            return
    raise AssertionError("it never ended")


def check_life(on: Bench, acknowledged: list[int]) -> None:
    made = LogManager("data", on.storage, on.clock, TINY)
    made.load()
    log = made.get_or_create("t", 0, None, TINY)
    assert log.log_end_offset >= len(acknowledged) and log.log_start_offset <= 3
    offset = log.log_start_offset
    while offset < len(acknowledged):
        header = parse_header(content(log.read(offset, 1, log.log_end_offset).records))
        assert (header.base_offset, header.base_sequence) == (offset, offset)
        assert header.max_timestamp == NOW_MS + acknowledged[offset]
        offset = header.next_offset
    if acknowledged:
        again = produce(log, len(acknowledged) - 1, leader_epoch=3)
        assert again.duplicate and again.first_offset == len(acknowledged) - 1
    assert produce(log, log.log_end_offset, leader_epoch=3).first_offset == log.log_end_offset - 1


def test_one_directory_serves_one_broker(on):
    """Kafka's .lock: the second is told who is in its way and what to do; after the first has gone it may."""
    first, second = (LogManager("data", on.storage, on.clock, TINY) for _ in range(2))
    first.lock()
    with pytest.raises(StorageFailed, match=r"data is in use by another broker .*\.lock.*log\.dirs of its own"):
        second.lock()
    first.load()
    first.close(clean=False)
    second.lock()
    second.close(clean=False)


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"]
)
@pytest.mark.parametrize("data", [None, b"", b"garbage\n", b"0\n7\nt 0 1\n", b"\xff\xfe"])
def test_a_lost_checkpoint_costs_a_longer_look_and_no_record(on, name, data):
    """Without a recovery point all is verified, without a watermark 0 is known, without a start the first segment's."""
    made = LogManager("data", on.storage, on.clock, TINY)
    a_life(made, acknowledged := [], [])
    on.storage.remove("data/.kafka_cleanshutdown")
    if data is None:
        on.storage.remove(f"data/{name}")
    else:
        on.storage.write_atomic(f"data/{name}", data)
    made = LogManager("data", on.storage, on.clock, TINY)
    made.load()
    log = made.get("t", 0)
    assert log is not None and log.log_end_offset == 9
    assert log.recovery_point == (0 if name.startswith("recovery") else 9)
    assert made.high_watermark("t", 0) == (0 if name.startswith("replication") else 9)
    assert log.log_start_offset == (2 if name.startswith("log-start") else 3)
    check_life(on, acknowledged)
