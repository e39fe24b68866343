"""LogManager: start, stop, checkpoints and deletion in one broker's data directory."""

from __future__ import annotations

import errno
import gc
import logging
import threading
import weakref
from uuid import UUID

import pytest

from cluster.log.config import LogConfig
from cluster.log.errors import LogError, OutOfFiles, StorageFailed
from cluster.log.manager import LogManager
from cluster.log.sequence import ACCEPTED
from cluster.protocol.errors import ErrorCode
from cluster.seams.memory_storage import MemoryFile
from tests.cluster.log.builders import Bench, append, bench, make_batch, replicated

FIRST_ID = UUID(int=1)
SECOND_ID = UUID(int=2)
SMALL = LogConfig(segment_bytes=150)


@pytest.fixture
def on() -> Bench:
    return bench()


def manager(on: Bench, config: LogConfig = SMALL, **fields) -> LogManager:
    made = LogManager("data", on.storage, on.clock, config, **fields)
    made.load()
    return made


def text(on: Bench, name: str) -> str:
    return on.storage.read(f"data/{name}").decode()


def test_logs_are_found_again(on):
    """Every ``<topic>-<partition>`` is opened; the topic id is checked, the settings are taken."""
    first = manager(on)
    log = first.get_or_create("a-b", 3, FIRST_ID, SMALL)
    for _ in range(5):
        append(log)
    first.close(clean=True)
    assert on.storage.exists("data/.kafka_cleanshutdown")
    second = manager(on)
    assert not on.storage.exists("data/.kafka_cleanshutdown")
    assert len(second) == 1 and [log.topic for log in second] == ["a-b"]
    again = second.get("a-b", 3)
    assert again is not None and again.log_end_offset == again.recovery_point == 5
    config = LogConfig(segment_bytes=999)
    assert second.get_or_create("a-b", 3, FIRST_ID, config) is again and again.config is config
    assert second.get("a-b", 4) is None
    assert repr(second) == "LogManager(data, 1 logs, 0 offline)"


def test_topic_configs_hold_from_the_start(on):
    """What is known of topics before the logs are opened decides about their recovery."""
    manager(on).get_or_create("t", 0, FIRST_ID, SMALL)
    made = LogManager("data", on.storage, on.clock, LogConfig())
    compact = LogConfig(cleanup_policy=("compact",))
    made.load({"t": compact})
    log = made.get("t", 0)
    assert log is not None and log.config is compact


def test_a_topic_of_the_same_name_is_another_topic(on):
    """Another topic id than that of partition.metadata: INCONSISTENT_TOPIC_ID; an unknown id checks nothing."""
    made = manager(on)
    log = made.get_or_create("t", 0, FIRST_ID, SMALL)
    with pytest.raises(LogError) as caught:
        made.get_or_create("t", 0, SECOND_ID, SMALL)
    assert caught.value.error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert made.get_or_create("t", 0, None, SMALL) is log


def test_checkpoints_are_kafkas(on):
    """The three files by name and content; the log start only where no segment's name tells it."""
    made = manager(on)
    for partition in (0, 1):
        log = made.get_or_create("t", partition, FIRST_ID, SMALL)
        for _ in range(5):
            append(log)
    log.flush()
    log.advance_log_start_offset(3)
    made.checkpoint_recovery_points()
    made.checkpoint_log_starts()
    made.checkpoint_high_watermarks({("t", 0): 4})
    made.checkpoint_high_watermarks({("t", 1): 5})
    assert text(on, "recovery-point-offset-checkpoint") == "0\n2\nt 0 0\nt 1 5\n"
    assert text(on, "log-start-offset-checkpoint") == "0\n1\nt 1 3\n"
    assert text(on, "replication-offset-checkpoint") == "0\n2\nt 0 4\nt 1 5\n"
    again = manager(on)
    assert again.high_watermark("t", 0) == 4 and again.high_watermark("t", 1) == 5 and again.high_watermark("x", 0) == 0
    moved = again.get("t", 1)
    assert moved is not None and (moved.log_start_offset, moved.recovery_point) == (3, 5)


def test_unreadable_checkpoints_are_passed_over(on, caplog):
    """More is verified then, and high watermarks are learned again (Kafka's LogManager)."""
    made = manager(on)
    append(made.get_or_create("t", 0, FIRST_ID, SMALL))
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        on.storage.write_atomic(f"data/{name}", b"7\nnonsense\n")
    again = manager(on)
    log = again.get("t", 0)
    assert log is not None and log.log_end_offset == 1 and again.high_watermark("t", 0) == 0
    assert caplog.text.count("passing over") == 3


def test_a_crash_is_not_a_clean_stop(on):
    """The marker is removed first, so that the second start after a clean stop is unclean if it crashed."""
    made = manager(on)
    append(made.get_or_create("t", 0, FIRST_ID, SMALL))
    made.close(clean=True)
    manager(on)  # crashes
    on.storage.open("data/t-0/00000000000000000000.log").append(b"torn")
    log = manager(on).get("t", 0)
    assert log is not None and log.log_end_offset == 1


def test_an_unclean_close_leaves_no_marker(on):
    """An unclean close neither writes the marker nor syncs anything."""
    made = manager(on)
    append(made.get_or_create("t", 0, FIRST_ID, SMALL))
    made.close(clean=False)
    assert not on.storage.exists("data/.kafka_cleanshutdown")
    on.storage.power_loss()
    assert manager(on).get_or_create("t", 0, FIRST_ID, SMALL).log_end_offset == 0


def test_a_clean_stop_survives_a_power_loss(on):
    """Everything was synced before the marker was written."""
    made = manager(on)
    log = made.get_or_create("t", 0, FIRST_ID, SMALL)
    for sequence in range(5):
        append(log, producer_id=7, producer_epoch=0, base_sequence=sequence)
    made.close(clean=True)
    on.storage.power_loss()
    log = manager(on).get_or_create("t", 0, FIRST_ID, SMALL)
    assert log.log_end_offset == 5
    assert append(log, producer_id=7, producer_epoch=0, base_sequence=0).duplicate


def test_a_damaged_log_is_offline_and_stays_so(on, caplog):
    """KAFKA_STORAGE_ERROR for it alone. Its recovery point is kept, so that no later start cuts it either."""
    made = manager(on)
    for partition in (0, 1):
        log = made.get_or_create("t", partition, FIRST_ID, SMALL)
        for _ in range(5):
            append(log)
    made.close(clean=True)
    on.storage.open("data/t-0/00000000000000000002.log").pwrite(b"\x07", 16)
    for _ in range(3):
        with caplog.at_level(logging.ERROR):
            made = manager(on)
        assert "t-0 is offline" in caplog.text
        with pytest.raises(StorageFailed):
            made.get_or_create("t", 0, FIRST_ID, SMALL)
        whole = made.get_or_create("t", 1, FIRST_ID, SMALL)
        assert whole.log_end_offset == 5
        made.checkpoint_recovery_points()
        made.close(clean=True)
        assert not on.storage.exists("data/.kafka_cleanshutdown")
        assert text(on, "recovery-point-offset-checkpoint") == "0\n2\nt 0 5\nt 1 5\n"
    made = manager(on)
    made.delete("t", 0)
    assert not on.storage.exists("data/t-0")
    assert made.get_or_create("t", 0, SECOND_ID, SMALL).log_end_offset == 0


def test_a_truncation_below_the_checkpoint_rewrites_it(on):
    """Else a torn tail below the old recovery point would look like damage to what was synced."""
    made = manager(on)
    log = made.get_or_create("t", 0, FIRST_ID, SMALL)
    for _ in range(5):
        append(log)
    log.flush()
    made.checkpoint_recovery_points()
    log.truncate_to(2)
    assert text(on, "recovery-point-offset-checkpoint") == "0\n1\nt 0 2\n"
    append(log)
    on.storage.open(f"data/t-0/{log.segment_base_offsets[-1]:020d}.log").append(b"torn")
    assert manager(on).get("t", 0).log_end_offset == 3


@pytest.mark.parametrize("start", [3, 7], ids=["within its first segment", "above its first segment"])
def test_a_log_that_was_cut_below_its_checkpointed_start_is_found_as_it_was_cut(on, start):
    """Else the next start would wipe it, begin at the former start, and lack for good what lies between."""
    made = manager(on, LogConfig(segment_bytes=1500))
    log = made.get_or_create("t", 0, FIRST_ID, made._config)
    for _ in range(30):
        append(log, count=3)
    log.advance_log_start_offset(start)
    made.checkpoint_log_starts()
    log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    log.append_as_follower(replicated(make_batch(1, leader_epoch=1)))
    again = manager(on).get("t", 0)
    assert (again.log_start_offset, again.log_end_offset) == (0, 1)


def test_the_log_start_checkpoint_is_lowered_before_the_cut(on, monkeypatch):
    """A crash in between must not leave a log that ends below its checkpointed start."""
    made = manager(on, LogConfig(segment_bytes=1500))
    log = made.get_or_create("t", 0, FIRST_ID, made._config)
    for _ in range(9):
        append(log, count=3)
    log.advance_log_start_offset(20)
    made.checkpoint_log_starts()
    seen = []
    cut = MemoryFile.truncate

    def truncate(file: MemoryFile, size: int) -> None:
        if file.path.endswith(".log"):
            seen.append(text(on, "log-start-offset-checkpoint"))
        cut(file, size)

    monkeypatch.setattr(MemoryFile, "truncate", truncate)
    log.truncate_to(7)
    assert log.log_end_offset == log.log_start_offset == 6
    assert seen == ["0\n1\nt 0 6\n"]


def test_a_checkpoint_above_the_log_is_rewritten_at_start(on):
    """The same after a crash between the truncation and the checkpoint."""
    made = manager(on)
    for _ in range(3):
        append(made.get_or_create("t", 0, FIRST_ID, SMALL))
    on.storage.write_atomic("data/recovery-point-offset-checkpoint", b"0\n1\nt 0 9\n")
    manager(on)
    assert text(on, "recovery-point-offset-checkpoint") == "0\n1\nt 0 3\n"


def test_delete_forgets_the_checkpoints(on):
    """A new log of the same name has nothing of the old one: no start, no high watermark, no recovery point."""
    made = manager(on)
    log = made.get_or_create("t", 0, FIRST_ID, SMALL)
    for _ in range(5):
        append(log)
    log.flush()
    log.advance_log_start_offset(3)
    made.checkpoint_recovery_points()
    made.checkpoint_log_starts()
    made.checkpoint_high_watermarks({("t", 0): 5})
    made.delete("t", 0)
    made.delete("t", 0)
    assert on.storage.listdir("data/t-0") == []
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        assert text(on, name) == "0\n0\n"
    made.get_or_create("t", 0, SECOND_ID, SMALL)
    assert made.high_watermark("t", 0) == 0


def test_a_directory_that_vanished_takes_its_checkpoints_along(on):
    """Somebody wiped a replica: its new log must not be judged by the old one's numbers (KIP-903)."""
    made = manager(on)
    log = made.get_or_create("t", 0, FIRST_ID, SMALL)
    for _ in range(5):
        append(log)
    log.advance_log_start_offset(3)
    made.checkpoint_high_watermarks({("t", 0): 5})
    made.close(clean=True)
    on.storage.remove_tree("data/t-0")
    made = manager(on)
    assert made.get_or_create("t", 0, FIRST_ID, SMALL).log_end_offset == 0
    assert made.high_watermark("t", 0) == 0
    append(made.get_or_create("t", 0, FIRST_ID, SMALL))
    assert manager(on).get("t", 0).log_end_offset == 1


def test_half_deleted_logs_are_removed_at_start(on):
    """A crash during a deletion leaves a directory under its other name."""
    name = "t-0." + "0" * 32 + "-delete"
    on.storage.makedirs(f"data/{name}")
    on.storage.open(f"data/{name}/00000000000000000000.log").append(b"x")
    made = manager(on)
    assert len(made) == 0
    for removal in made.removals():
        removal.run(on.storage)
    assert not on.storage.exists(f"data/{name}")


def test_claim(on):
    """meta.properties names the broker and the cluster; another of either is refused."""
    made = manager(on)
    made.claim(1, "cluster-a")
    made.claim(1, "cluster-a")
    assert text(on, "meta.properties") == "version=0\nbroker.id=1\ncluster.id=cluster-a\n"
    with pytest.raises(LogError) as caught:
        made.claim(1, "cluster-b")
    assert caught.value.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    with pytest.raises(StorageFailed, match="belongs to broker 1"):
        made.claim(2, "cluster-a")


def test_a_data_directory_that_cannot_be_used(on, monkeypatch):
    """An unusable data directory is one clear error at the start."""
    monkeypatch.setattr(on.storage, "makedirs", lambda _: (_ for _ in ()).throw(OSError(13, "Permission denied")))
    with pytest.raises(StorageFailed, match="cannot use the data directory data"):
        manager(on)
    with pytest.raises(StorageFailed, match="cannot use the data directory data"):
        LogManager("data", on.storage, on.clock, SMALL).claim(1, "c")


def test_the_sequence_check_is_handed_to_every_log(on):
    """A manager made with another check makes logs with it."""
    made = manager(on, check_sequence=lambda *_: ACCEPTED)
    log = made.get_or_create("t", 0, FIRST_ID, SMALL)
    for _ in range(2):
        append(log, producer_id=7, producer_epoch=0, base_sequence=9)
    assert log.log_end_offset == 2


def test_a_truncation_is_not_overtaken_by_a_checkpoint(on, monkeypatch):
    """Checkpoints wait for the disk in another thread; one begun before a truncation must not be written after it."""
    made = manager(on)
    log = made.get_or_create("t", 0, FIRST_ID, SMALL)
    for _ in range(5):
        append(log)
    log.flush()
    writing, proceed = threading.Event(), threading.Event()
    real_write = on.storage.write_atomic

    def slow_write(path: str, data: bytes) -> None:
        writing.set()
        assert proceed.wait(10)
        real_write(path, data)

    monkeypatch.setattr(on.storage, "write_atomic", slow_write)
    checkpoint = threading.Thread(target=made.checkpoint_recovery_points)
    checkpoint.start()
    assert writing.wait(10)
    truncation = threading.Thread(target=lambda: log.truncate_to(2))
    truncation.start()
    truncation.join(0.05)
    proceed.set()
    for thread in (checkpoint, truncation):
        thread.join(10)
    assert text(on, "recovery-point-offset-checkpoint") == "0\n1\nt 0 2\n"


class Writes:
    """Counts what is written to each checkpoint."""

    def __init__(self, on: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        write_atomic = on.storage.write_atomic

        def counted(path: str, data: bytes) -> None:
            self.names.append(path.rpartition("/")[2])
            write_atomic(path, data)

        monkeypatch.setattr(on.storage, "write_atomic", counted)


def test_many_logs_are_made_noted_and_deleted_with_one_write_of_each_checkpoint(on, monkeypatch):
    """A topic may have thousands of partitions, and each write waits for the disk."""
    made = manager(on)
    keys = [("t", number) for number in range(20)]
    compacted = LogConfig(cleanup_policy=("compact",))
    for key in keys:
        append(made.get_or_create(*key, FIRST_ID, SMALL))
    made.checkpoint_high_watermarks(dict.fromkeys(keys, 1))
    writes = Writes(on, monkeypatch)
    made.note_holes(keys)
    for key in keys:
        made.get_or_create(*key, FIRST_ID, compacted)
    assert writes.names.count("cleaner-offset-checkpoint") == 1
    assert text(on, "cleaner-offset-checkpoint").count("t ") == 20
    writes.names.clear()
    made.forget(keys)
    for key in keys:
        made.delete(*key)
    assert sorted(writes.names) == ["cleaner-offset-checkpoint", "replication-offset-checkpoint"]
    assert text(on, "cleaner-offset-checkpoint") == text(on, "replication-offset-checkpoint") == "0\n0\n"
    writes.names.clear()
    made.prepare(dict.fromkeys(keys, compacted))
    for key in keys:
        made.get_or_create(*key, None, compacted)
    assert writes.names.count("cleaner-offset-checkpoint") == 1
    assert text(on, "cleaner-offset-checkpoint").count("t ") == 20


def test_what_is_prepared_has_nothing_of_a_former_log(on):
    """Its directory may be lost, or was removed by hand: rows alone are left."""
    made = manager(on)
    made.checkpoint_high_watermarks({("t", 0): 7, ("t", 1): 8})
    made.prepare({("t", 0): SMALL})
    made.get_or_create("t", 0, FIRST_ID, SMALL)
    assert (made.high_watermark("t", 0), made.high_watermark("t", 1)) == (0, 8)
    made.get_or_create("t", 1, FIRST_ID, SMALL)
    assert made.high_watermark("t", 1) == 0


def test_a_deleted_log_is_freed_at_once(on):
    """Nothing refers to it in a circle: no collection of garbage is needed for thousands of logs."""
    made = manager(on)
    log = weakref.ref(made.get_or_create("t", 0, FIRST_ID, SMALL))
    gc.disable()
    try:
        made.delete("t", 0)
        assert log() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("suffix", [".log", ".index", "leader-epoch-checkpoint.tmp"])
def test_a_log_that_lacks_a_descriptor_leaves_nothing(on, monkeypatch, suffix):
    """No open file; no directory either, which the next start would take for a log. What was there before stays."""
    logs = manager(on)
    logs.get_or_create("old", 0, FIRST_ID, SMALL)
    append(logs.get("old", 0))
    logs.close(clean=True)
    logs = LogManager("data", on.storage, on.clock, SMALL)
    opened: list[MemoryFile] = []
    open_file = on.storage.open

    def full(path: str, *, create: bool = True, keep: bool = False):
        if path.endswith(suffix) and "old" not in path:
            raise OSError(errno.EMFILE, "too many open files", path)
        opened.append(open_file(path, create=create, keep=keep))
        return opened[-1]

    logs.load()
    monkeypatch.setattr(on.storage, "open", full)
    with pytest.raises(OutOfFiles):
        logs.get_or_create("new", 0, FIRST_ID, SMALL)
    for file in opened:
        with pytest.raises(OSError, match="closed"):
            file.pread(1, 0)
    assert [name for name in on.storage.listdir("data") if "-0" in name] == ["old-0"]
    monkeypatch.undo()
    assert logs.get_or_create("new", 0, FIRST_ID, SMALL).log_end_offset == 0
