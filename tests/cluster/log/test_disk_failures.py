"""A disk that fails under a log: what is counted, what is answered, what is left."""

from __future__ import annotations

import logging

import pytest

from cluster.log.config import LogConfig
from cluster.log.errors import StorageFailed
from cluster.protocol.errors import ErrorCode
from cluster.seams.memory_storage import MemoryFile
from tests.cluster.log.builders import (
    NOW_MS,
    Bench,
    append,
    bench,
    code_of,
    open_log,
    produce,
    read_all,
)


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
    """Pages may be gone although the next fsync succeeds: KAFKA_STORAGE_ERROR until the log is opened anew."""
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
    assert code_of(lambda: log.offset_for_timestamp(NOW_MS, 8)) == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    monkeypatch.setattr(MemoryFile, "pread", lambda *_: bytes(100))
    assert code_of(lambda: log.read(1, 100, 8)) == ErrorCode.KAFKA_STORAGE_ERROR
