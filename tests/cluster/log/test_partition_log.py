"""PartitionLog, case by case: rolls, reads, cutting, flushing, the end."""

from __future__ import annotations

from bisect import bisect_left
from uuid import UUID

import pytest

from cluster.log.config import LogConfig
from cluster.log.errors import OffsetOutsideLog, StorageFailed
from cluster.log.removal import OPEN_MS, Doomed
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import NewRecord, build_batch
from tests.cluster.log.builders import (
    DIRECTORY,
    NOW_MS,
    Bench,
    append,
    bench,
    code_of,
    content,
    make_batch,
    offset_for_timestamp,
    open_log,
    produce,
    replicated,
)

TOPIC_ID = UUID("f3b1c0de-0000-4000-8000-0123456789ab")


@pytest.fixture
def on() -> Bench:
    return bench()


def test_a_roll_leaves_indexes_and_a_snapshot(on):
    """The old segment's time index gets its final entry; the snapshot is named after the new base offset."""
    log = open_log(on, LogConfig(segment_bytes=150))
    for sequence in range(4):
        produce(log, sequence, timestamp=NOW_MS + sequence)
    assert log.segment_base_offsets == [0, 2]
    names = on.storage.listdir(DIRECTORY)
    assert names == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000002.index",
        "00000000000000000002.log",
        "00000000000000000002.producers",
        "00000000000000000002.snapshot",
        "00000000000000000002.timeindex",
        "leader-epoch-checkpoint",
    ]
    assert on.storage.read(f"{DIRECTORY}/{0:020d}.timeindex") == (NOW_MS + 1).to_bytes(8, "big") + bytes([0, 0, 0, 1])
    log.close(clean=True)
    assert "00000000000000000004.snapshot" in on.storage.listdir(DIRECTORY)


def test_segment_jitter_is_less_than_the_time_it_shortens(on):
    """Kafka's LogConfig.randomSegmentJitter: with more of it each batch would begin a segment."""
    for number in range(20):
        log = open_log(bench(), LogConfig(segment_ms=10**9, segment_jitter_ms=10**18), directory=f"/data/t-{number}")
        append(log)
        append(log, timestamp=NOW_MS)
        assert log.segment_base_offsets == [0]


def test_segment_jitter_shortens_the_time_differently_for_each_log(on):
    """segment.jitter.ms spreads the rolls; the draw depends on the log alone, so it is the same after a restart."""
    config = LogConfig(segment_ms=1000, segment_jitter_ms=900)

    def rolls(directory: str, age_ms: int) -> bool:
        log = open_log(bench(), config, directory=directory)
        append(log)
        append(log, timestamp=NOW_MS + age_ms)
        return len(log.segment_base_offsets) > 1

    def rolls_after(directory: str) -> int:
        return bisect_left(range(1002), True, key=lambda age_ms: rolls(directory, age_ms))

    ages = [rolls_after(f"data/t-{partition}") for partition in range(3)]
    assert len(set(ages)) == 3 and all(100 <= age <= 1001 for age in ages)
    assert rolls_after("data/t-0") == ages[0]


def test_a_snapshot_that_cannot_be_written_does_not_stop_the_log(on, monkeypatch, caplog):
    """It can be made again from the log."""
    log = open_log(on, LogConfig(segment_bytes=150))
    log.epochs.assign(0, 0)
    monkeypatch.setattr(on.storage, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
    for sequence in range(4):
        produce(log, sequence)
    assert log.log_end_offset == 4
    assert "cannot write the snapshot" in caplog.text


def test_settings_can_be_changed(on):
    """A new configuration holds for the next append."""
    log = open_log(on)
    append(log)
    append(log)
    log.update_config(LogConfig(segment_bytes=150))
    append(log)
    assert log.segment_base_offsets == [0, 2]


def test_partition_metadata(on):
    """The topic id is stored, and known again after a start."""
    log = open_log(on)
    assert log.topic_id is None
    log.set_topic_id(TOPIC_ID)
    assert open_log(on).topic_id == TOPIC_ID


@pytest.mark.parametrize("cut", [4, 3, 0])
def test_what_was_found_before_a_cut_is_not_read_after_it(on, cut):
    """The log was cut and written again at the same places: what stands there now is not what was promised."""
    log = open_log(on)
    append(log, count=3)
    append(log, count=3)
    kept = log.read(0, 1000, 6).records
    assert kept is not None and content(kept) == kept.read()
    log.truncate_to(cut)
    append(log, count=3, leader_epoch=1)
    append(log, count=3, leader_epoch=1)
    with pytest.raises(OSError, match="was cut"):
        kept.read()
    found = log.read(0, 1000, log.log_end_offset).records
    assert found is not None and content(found) == found.read()


def test_reads_outside_the_log(on):
    """Below the start or above the end: OFFSET_OUT_OF_RANGE; at the end, or at the bound, nothing."""
    log = open_log(on, log_start_offset=5)
    append(log, count=3)
    for offset in (-1, 4, 9):
        with pytest.raises(OffsetOutsideLog) as caught:
            log.read(offset, 100, 8)
        assert caught.value.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (caught.value.log_start_offset, caught.value.log_end_offset) == (5, 8)
    assert log.read(8, 100, 8).records is None
    assert log.read(5, 100, 5).records is None
    assert log.read(6, 100, 7).records is None  # the batch straddles the bound
    assert log.read(7, 100, 8).records is not None


def test_offset_for_timestamp(on):
    """The first record as new or newer, by record; above the bound or newer than all: None."""
    log = open_log(on, LogConfig(segment_bytes=300, index_interval_bytes=80))
    for number in range(20):
        records = [NewRecord(1000 + number * 10, None, b"a"), NewRecord(1005 + number * 10, None, b"b")]
        append(log, bytearray(build_batch(records, codec=number % 5)))
    assert len(log.segment_base_offsets) > 2
    for timestamp in range(990, 1196):
        expected = max(0, -(-(timestamp - 1000) // 5))
        assert offset_for_timestamp(log, timestamp, 40) == (1000 + expected * 5, expected)
    assert offset_for_timestamp(log, 1196, 40) is None
    assert offset_for_timestamp(log, 1100, 20) is None
    assert offset_for_timestamp(log, 1100, 21) == (1100, 20)
    assert log.max_timestamp == 1195
    log.advance_log_start_offset(21)
    assert offset_for_timestamp(log, 1000, 40) == (1105, 21)


def test_truncation_into_a_batch_removes_it(on):
    """The log ends at a whole batch, below what was asked."""
    log = open_log(on)
    append(log, count=3)
    append(log, count=3)
    assert log.truncate_to(4) == 3
    assert log.log_end_offset == 3
    append(log, count=1)
    assert log.log_end_offset == 4


def test_truncation_rolls_the_sequence_check_back(on):
    """What was cut off is not a duplicate any more, and an older retry is known again from the log."""
    log = open_log(on, LogConfig(segment_bytes=250))
    for sequence in range(12):
        produce(log, sequence)
    assert produce(log, 3).error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    log.truncate_to(6)
    assert produce(log, 3).first_offset == 3
    assert produce(log, 1).first_offset == 1
    assert produce(log, 0).must_commit_offset == 0
    assert code_of(lambda: produce(log, 7)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 6).first_offset == 6 and not produce(log, 7).duplicate


def test_truncation_forgets_what_was_noted_of_producers_above_it(on):
    """Also where the only producers there have expired: else a later cut would bring back a batch that is in no log."""
    log = open_log(on, LogConfig(segment_bytes=250))
    for _ in range(6):
        append(log)
    assert produce(log, 0).first_offset == 6
    for _ in range(6):
        append(log)  # the roll notes producer 7
    for now_ms in (0, 1):
        log.producers.expire(NOW_MS + 1, now_ms, 1)
    assert len(log.producers) == 0
    log.truncate_to(5)
    log.update_config(LogConfig())  # other rolls than before
    for _ in range(10):
        append(log)
    append(log, producer_id=8, producer_epoch=0, base_sequence=0)
    log.truncate_to(log.log_end_offset - 1)
    assert log.producers.get(7) is None and log.producers.get(8) is None
    info = produce(log, 0)
    assert (info.first_offset, info.duplicate) == (15, False)


def test_truncate_fully_and_start_at(on):
    """Nothing of the old log is left: segments, snapshots, epochs, producers."""
    log = open_log(on, LogConfig(segment_bytes=150))
    for sequence in range(6):
        produce(log, sequence)
    log.set_topic_id(TOPIC_ID)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point, log.size_bytes) == (100, 100, 0, 0)
    assert len(log.producers) == 0 and log.epochs.entries == ()
    assert on.storage.listdir(DIRECTORY) == [
        f"{100:020d}.index",
        f"{100:020d}.log",
        f"{100:020d}.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    log.append_as_follower(replicated(make_batch(base_offset=100, leader_epoch=2)))
    again = open_log(on)
    assert (again.log_start_offset, again.log_end_offset) == (100, 101)


def test_truncation_below_the_first_segment_starts_over(on):
    """As Kafka: a target below everything that is left wipes the log."""
    log = open_log(on, log_start_offset=50)
    append(log, count=4)
    assert log.truncate_to(20) == 4
    assert (log.log_start_offset, log.log_end_offset) == (20, 20)


def test_log_start_moves_up_alone(on):
    """Whole segments below it go with their snapshots; epochs collapse; above the end is an error."""
    log = open_log(on, LogConfig(segment_bytes=150))
    for sequence in range(6):
        produce(log, sequence, leader_epoch=sequence // 2)
    assert log.segment_base_offsets == [0, 2, 4]
    log.advance_log_start_offset(3)
    log.advance_log_start_offset(1)
    assert log.log_start_offset == 3 and log.segment_base_offsets == [2, 4]
    assert log.epochs.entries == ((1, 3), (2, 4))
    with pytest.raises(OffsetOutsideLog):
        log.read(2, 100, 6)
    with pytest.raises(OffsetOutsideLog):
        log.advance_log_start_offset(7)
    assert produce(log, 0).duplicate  # the memory of producers outlives their records
    log.advance_log_start_offset(4)
    assert log.segment_base_offsets == [4]
    log.advance_log_start_offset(6)
    assert log.segment_base_offsets == [4]
    snapshots = [name for name in on.storage.listdir(DIRECTORY) if name.endswith("snapshot")]
    assert snapshots == [f"{4:020d}.snapshot"]
    again = open_log(on, log_start_offset=6)
    assert (again.log_start_offset, again.log_end_offset) == (6, 6)
    assert again.epochs.entries == ((2, 6),)
    entry = again.producers.get(7)
    assert entry is not None and entry.last_sequence == 5 and not entry.complete


def test_flush_moves_the_recovery_point(on):
    """Everything below it survives a power loss."""
    log = open_log(on, LogConfig(segment_bytes=150))
    for _ in range(5):
        append(log)
    log.flush(up_to=3)
    assert log.recovery_point == 3
    log.flush()
    log.flush()
    assert log.recovery_point == 5
    append(log)
    on.storage.power_loss()
    assert open_log(on, recovery_point=5).log_end_offset == 5


def test_a_flush_syncs_the_names_of_new_segments_and_of_the_log(on):
    """KAFKA-3968: bytes that were synced are lost with a name that was not."""
    log = open_log(on, LogConfig(segment_bytes=150))
    for _ in range(7):
        append(log)
    log.flush()
    assert len(log.segment_base_offsets) > 2
    on.storage.power_loss()
    again = open_log(on, recovery_point=7)
    assert (again.log_end_offset, again.recovery_point) == (7, 7)


def test_a_clean_close_syncs_the_name_of_an_empty_segment(on):
    """It alone says where the log begins."""
    log = open_log(on)
    log.truncate_fully_and_start_at(48)
    log.close(clean=True)
    on.storage.power_loss()
    assert open_log(on, clean=True).log_start_offset == 48


def test_a_roll_during_a_flush_is_left_to_the_next(on):
    """The plan knows no name that was given after it was made."""
    log = open_log(on)
    append(log)
    pending = log.begin_flush()
    log.roll("for the test")
    append(log)
    pending.run()
    log.finish_flush(pending)
    assert log.begin_flush().directories == ("data/t-0",)


def test_flush_messages_and_flush_ms(on):
    """flush.messages syncs as records come; what flush.ms makes due is begun by begin_flush_due."""
    log = open_log(on, LogConfig(flush_messages=3, flush_ms=1000))
    append(log, count=2)
    assert log.recovery_point == 0
    append(log, count=2)
    assert log.recovery_point == 4
    on.clock.advance_ms(5000)
    assert log.begin_flush_due(on.clock.monotonic_ms()) is None
    append(log)
    assert log.begin_flush_due(on.clock.monotonic_ms()).offset == 5
    log.flush()
    append(log)
    assert log.begin_flush_due(on.clock.monotonic_ms() + 999) is None
    log.append_as_follower(replicated(make_batch(9, base_offset=6, leader_epoch=0)))
    assert log.recovery_point == 15


def test_a_flush_that_ran_while_the_log_was_cut_proves_nothing(on):
    """What was synced is gone, and what came instead is not (KAFKA-10101): the recovery point stays."""
    log = open_log(on)
    append(log)
    append(log)
    pending = log.begin_flush()
    assert pending is not None
    pending.run()
    log.truncate_to(1)
    append(log)
    log.finish_flush(pending)
    assert log.recovery_point == 0
    log.finish_flush(pending, OSError("a file that was closed meanwhile"))
    assert not log.is_failed
    pending = log.begin_flush()
    assert pending is not None
    with pytest.raises(StorageFailed):
        log.finish_flush(pending, OSError("a real one"))
    assert log.is_failed


def test_flushes_may_end_in_any_order(on):
    """The recovery point never goes back because an older plan is finished later."""
    log = open_log(on)
    append(log)
    older = log.begin_flush()
    append(log)
    newer = log.begin_flush()
    assert older is not None and newer is not None
    for pending in (newer, older):
        pending.run()
        log.finish_flush(pending)
        assert log.recovery_point == 2


def test_a_segment_deleted_during_its_flush_is_no_failure(on):
    """Nothing is concluded from it: the log was cut meanwhile. The file is still there to be synced."""
    log = open_log(on, LogConfig(segment_bytes=150))
    for sequence in range(5):
        produce(log, sequence)
    pending = log.begin_flush_due(0)
    assert pending is not None
    log.advance_log_start_offset(3)
    pending.run()
    log.finish_flush(pending)
    assert not log.is_failed and log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 5


def test_truncation_below_the_log_start_lowers_it(on):
    """The log cannot begin above its end."""
    log = open_log(on)
    append(log, count=2)
    append(log, count=4)
    log.advance_log_start_offset(4)
    log.truncate_to(5)
    assert (log.log_start_offset, log.log_end_offset) == (2, 2)


def test_what_is_deleted_is_closed_long_before_it_is_removed(on):
    """However long file.delete.delay.ms is: at once if it holds nothing, else when an answer had time to leave."""
    doomed = Doomed(on.clock)
    log = open_log(on, LogConfig(file_delete_delay_ms=3_600_000), doomed=doomed)
    append(log)
    log.roll("the next one is empty")
    full, empty = [segment.file for segment in log._local.segments]
    records = log.read(0, 1000, 1).records
    expected = content(records)
    log.delete()
    with pytest.raises(OSError, match="closed"):
        empty.pread(1, 0)
    on.clock.advance_ms(OPEN_MS - 1)
    assert doomed.take_due() == []
    assert content(records) == expected
    on.clock.advance_ms(1)
    (removal,) = doomed.take_due()
    removal.run(on.storage)
    with pytest.raises(OSError, match="closed"):
        full.pread(1, 0)
    (name,) = on.storage.listdir("data")
    assert name.startswith("t-0.") and name.endswith("-delete")
    on.clock.advance_ms(3_600_000 - OPEN_MS)
    for removal in doomed.take_due():
        removal.run(on.storage)
    assert on.storage.listdir("data") == [] and len(doomed) == 0


def test_delete_removes_the_directory(on):
    """It has another name at once, and the log takes nothing more; the files go after ``file.delete.delay.ms``."""
    doomed = Doomed(on.clock)
    log = open_log(on, LogConfig(file_delete_delay_ms=50), doomed=doomed)
    append(log)
    log.delete()
    (name,) = on.storage.listdir("data")
    assert name.startswith("t-0.") and name.endswith("-delete")
    assert code_of(lambda: append(log)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert doomed.take_due() == []
    on.clock.advance_ms(50)
    (removal,) = doomed.take_due()
    removal.run(on.storage)
    assert on.storage.listdir("data") == [] and len(doomed) == 0
