"""A log that lacks a file descriptor when the broker starts is opened later, as it would have been at the start."""

from __future__ import annotations

import errno

import pytest

from cluster.log.config import LogConfig
from cluster.log.errors import LogOffline, OutOfFiles
from cluster.log.manager import LogManager
from cluster.log.partition_log import PartitionLog
from tests.cluster.log.builders import Bench, append, bench

SMALL = LogConfig(segment_bytes=150)
COMPACTED = LogConfig(segment_bytes=150, cleanup_policy=("compact",))
MARKER = "data/.kafka_cleanshutdown"
RECOVERY_POINTS = "data/recovery-point-offset-checkpoint"


class Full:
    """A storage that opens no file of ``t-0`` while it is full."""

    def __init__(self, on: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = True
        self.refused = 0
        open_file = on.storage.open

        def opening(path: str, *, create: bool = True, keep: bool = False):
            if self.is_full and "/t-0/" in path and keep:
                self.refused += 1
                raise OSError(errno.EMFILE, "too many open files", path)
            return open_file(path, create=create, keep=keep)

        monkeypatch.setattr(on.storage, "open", opening)


@pytest.fixture
def on() -> Bench:
    return bench()


def started(on: Bench) -> LogManager:
    made = LogManager("data", on.storage, on.clock, SMALL)
    made.load()
    return made


def stopped(on: Bench, *, clean: bool, config: LogConfig = SMALL) -> PartitionLog:
    """The log of ``t-0`` as it was before the stop: eight batches, of which five were synced; it begins at 3."""
    logs = started(on)
    log = logs.get_or_create("t", 0, None, config)
    for _ in range(5):
        append(log)
    log.flush()
    log.advance_log_start_offset(3)
    for _ in range(3):
        append(log)
    logs.checkpoint_recovery_points()
    logs.checkpoint_log_starts()
    logs.checkpoint_high_watermarks({("t", 0): 7})
    if clean:
        logs.close(clean=True)
    return log


def lines(on: Bench, name: str) -> list[str]:
    return on.storage.read(f"data/{name}").decode().splitlines()[2:]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("prepares", [True, False])
def test_it_is_opened_when_it_is_asked_for_again(on, monkeypatch, clean, prepares) -> None:
    """With its batches, its start, its recovery point and its high watermark: never as a new log."""
    before = stopped(on, clean=clean)
    full = Full(on, monkeypatch)
    logs = started(on)
    assert logs.get("t", 0) is None and repr(logs) == "LogManager(data, 0 logs, 1 offline)"
    for _ in range(2):
        if prepares:
            logs.prepare({("t", 0): SMALL})
        with pytest.raises(OutOfFiles):
            logs.get_or_create("t", 0, None, SMALL)
        logs.checkpoint_recovery_points()
        logs.checkpoint_log_starts()
    full.is_full = False
    if prepares:
        logs.prepare({("t", 0): SMALL})
    log = logs.get_or_create("t", 0, None, SMALL)
    assert log is logs.get("t", 0) is logs.get_or_create("t", 0, None, SMALL)
    assert (log.log_start_offset, log.log_end_offset) == (3, 8)
    assert log.recovery_point == (8 if clean else 5)
    assert log.segment_base_offsets == before.segment_base_offsets
    assert logs.high_watermark("t", 0) == 7
    assert (log.verified_bytes == 0) is clean
    assert repr(logs) == "LogManager(data, 1 logs, 0 offline)"
    logs.close(clean=True)
    assert on.storage.exists(MARKER)


def test_it_may_have_holes_if_it_was_compacted(on, monkeypatch) -> None:
    """Its line in the cleaner's checkpoint says so, whatever the topic's settings are now."""
    stopped(on, clean=False, config=COMPACTED)
    full = Full(on, monkeypatch)
    logs = started(on)
    logs.checkpoint_cleaned()
    full.is_full = False
    log = logs.get_or_create("t", 0, None, SMALL)
    assert log.log_end_offset == 8
    assert lines(on, "cleaner-offset-checkpoint") == ["t 0 0"]


def test_a_stop_before_that_is_not_clean(on, monkeypatch) -> None:
    """The next start verifies the log from its recovery point on; another thread may have opened it meanwhile."""
    stopped(on, clean=True)
    full = Full(on, monkeypatch)
    logs = started(on)
    logs.close(clean=True)
    assert not on.storage.exists(MARKER)
    assert lines(on, "recovery-point-offset-checkpoint") == ["t 0 8"]
    logs = started(on)
    full.is_full = False
    logs.prepare({("t", 0): SMALL})
    logs.close(clean=True)
    assert not on.storage.exists(MARKER)
    log = started(on).get("t", 0)
    assert log is not None and (log.log_start_offset, log.log_end_offset) == (3, 8)


@pytest.mark.parametrize("opened", [True, False])
def test_it_can_be_deleted(on, monkeypatch, opened) -> None:
    """Open or not. Then a topic of this name begins with nothing."""
    stopped(on, clean=True)
    full = Full(on, monkeypatch)
    logs = started(on)
    full.is_full = not opened
    logs.prepare({("t", 0): SMALL})
    logs.delete("t", 0)
    full.is_full = False
    assert logs.get_or_create("t", 0, None, SMALL).log_end_offset == 0
    assert logs.high_watermark("t", 0) == 0


def test_what_is_damaged_besides_stays_offline(on, monkeypatch) -> None:
    """Whoever asks again is told so, and no file is touched anymore."""
    stopped(on, clean=True)
    full = Full(on, monkeypatch)
    logs = started(on)
    full.is_full = False
    on.storage.write_atomic("data/t-0/partition.metadata", b"no topic id")
    for _ in range(2):
        logs.prepare({("t", 0): SMALL})
        with pytest.raises(LogOffline):
            logs.get_or_create("t", 0, None, SMALL)
    on.storage.remove("data/t-0/partition.metadata")
    with pytest.raises(LogOffline):
        logs.get_or_create("t", 0, None, SMALL)


def test_one_attempt_each_time_it_is_asked(on, monkeypatch) -> None:
    """What ``prepare`` tried, off the loop, is not tried again on it."""
    stopped(on, clean=False)
    full = Full(on, monkeypatch)
    logs = started(on)
    logs.prepare({("t", 0): SMALL})
    full.refused = 0
    for _ in range(3):
        with pytest.raises(OutOfFiles):
            logs.get_or_create("t", 0, None, SMALL)
    assert full.refused == 0


def test_a_lost_recovery_point_stays_unknown(on, monkeypatch) -> None:
    """Until the log can be opened its line is -1; then all of it was verified."""
    stopped(on, clean=False)
    on.storage.remove(RECOVERY_POINTS)
    full = Full(on, monkeypatch)
    logs = started(on)
    logs.checkpoint_recovery_points()
    assert lines(on, "recovery-point-offset-checkpoint") == ["t 0 -1"]
    full.is_full = False
    log = logs.get_or_create("t", 0, None, SMALL)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (3, 8, 0)
    assert log.verified_bytes > 0
