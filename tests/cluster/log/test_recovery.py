"""Opening a log after a stop: torn tails, damage, holes, leftovers, lost files."""

from __future__ import annotations

import logging

import pytest

from cluster.log import producer_marks
from cluster.log.config import LogConfig
from cluster.log.errors import LogError, StorageFailed
from cluster.protocol.errors import ErrorCode
from cluster.seams.os_storage import OsStorage
from tests.cluster.log.builders import DIRECTORY, NOW_MS, Bench, append, bench, make_batch, open_log, read_all

SMALL = LogConfig(segment_bytes=200, index_interval_bytes=70)
LOG_FILE = f"{DIRECTORY}/{0:020d}.log"


@pytest.fixture
def on() -> Bench:
    return bench()


def fill(on: Bench, batches: int, config: LogConfig | None = None, **fields) -> list[bytes]:
    """A log of so many batches of one producer, left as by kill -9; returns their bytes."""
    log = open_log(on, config)
    stored = []
    for sequence in range(batches):
        batch = make_batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence, timestamp=NOW_MS + sequence)
        append(log, batch, **fields)
        stored.append(bytes(batch))
    return stored


def overwrite(on: Bench, path: str, data: bytes) -> None:
    file = on.storage.open(path)
    file.truncate(0)
    file.append(data)


def test_torn_at_every_byte_of_the_last_batch(on):
    """Whatever is left of the last batch, the log ends before it; the batch is then accepted as new."""
    stored = fill(on, 4)
    whole = b"".join(stored)
    for left in range(len(stored[3])):
        overwrite(on, LOG_FILE, whole[: len(whole) - len(stored[3]) + left])
        log = open_log(on)
        assert log.log_end_offset == 3
        assert on.storage.read(LOG_FILE) == b"".join(stored[:3])
        entry = log.producers.get(7)
        assert entry is not None and entry.last_sequence == 2 and entry.complete
        again = append(log, producer_id=7, producer_epoch=0, base_sequence=3, timestamp=NOW_MS + 3)
        assert again.first_offset == 3 and not again.duplicate
        assert on.storage.read(LOG_FILE) == whole


@pytest.mark.parametrize("flipped", range(8, 68, 3))
def test_a_flipped_bit_in_the_last_batch_ends_the_log_before_it(on, flipped):
    """Every byte counts: those under the checksum, and those of length and magic. Offset and epoch are outside it."""
    stored = fill(on, 3)
    data = bytearray(b"".join(stored))
    data[-len(stored[2]) + flipped] ^= 0x10
    overwrite(on, LOG_FILE, bytes(data))
    expected = 3 if 12 <= flipped < 16 else 2
    assert open_log(on).log_end_offset == expected


def test_a_wrong_offset_ends_the_log(on):
    """The base offset is outside the checksum, but it must continue the log."""
    stored = fill(on, 3)
    data = bytearray(b"".join(stored))
    data[-len(stored[2]) + 7] += 1
    overwrite(on, LOG_FILE, bytes(data))
    assert open_log(on).log_end_offset == 2


def test_zeros_after_the_last_batch_are_cut_off(on):
    """A preallocated or extended file is no log of empty batches (KAFKA-5431)."""
    stored = fill(on, 2)
    overwrite(on, LOG_FILE, b"".join(stored) + bytes(4096))
    assert open_log(on).log_end_offset == 2
    assert on.storage.read(LOG_FILE) == b"".join(stored)


def test_damage_above_the_recovery_point_cuts_the_log_and_all_later_segments(on, caplog):
    """Scan, checksum, cut at the first bad batch, delete what comes after it; it is said aloud."""
    stored = fill(on, 9, SMALL)
    log = open_log(on, SMALL)
    assert log.segment_base_offsets == [0, 2, 4, 6, 8]
    path = f"{DIRECTORY}/{4:020d}.log"
    data = bytearray(on.storage.read(path))
    data[-1] ^= 1
    overwrite(on, path, bytes(data))
    with caplog.at_level(logging.WARNING):
        log = open_log(on, SMALL, recovery_point=3)
    assert (log.log_end_offset, log.segment_base_offsets, log.recovery_point) == (5, [0, 2, 4], 3)
    assert read_all(log) == b"".join(stored[:5])
    assert not any(name.startswith((f"{6:020d}.log", f"{8:020d}.log")) for name in on.storage.listdir(DIRECTORY))
    assert "truncating the rest and deleting 2 later segments" in caplog.text
    entry = log.producers.get(7)
    assert entry is not None and entry.last_sequence == 4
    append(log, producer_id=7, producer_epoch=0, base_sequence=5)


@pytest.mark.parametrize("clean", [True, False])
def test_damage_in_what_was_synced_is_not_repaired_by_deleting(on, clean):
    """Below the recovery point, or after a clean stop: KAFKA_STORAGE_ERROR, and every file is as it was."""
    fill(on, 9, SMALL)
    path = f"{DIRECTORY}/{4:020d}.log"
    on.storage.open(path).pwrite(b"\x07", 16)  # the magic, which is seen without checksums
    before = {name: on.storage.read(f"{DIRECTORY}/{name}") for name in on.storage.listdir(DIRECTORY)}
    with pytest.raises(StorageFailed, match="once stored safely") as caught:
        open_log(on, SMALL, clean=clean, recovery_point=7)
    assert caught.value.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    logs = {name for name in before if name.endswith(".log")}
    assert {name: on.storage.read(f"{DIRECTORY}/{name}") for name in logs} == {name: before[name] for name in logs}


def test_a_torn_tail_after_a_clean_stop_is_damage(on):
    """It was whole when the marker was written; nothing is cut off silently."""
    stored = fill(on, 3)
    overwrite(on, LOG_FILE, b"".join(stored)[:-1])
    with pytest.raises(StorageFailed, match="where 67 are left"):
        open_log(on, clean=True)


def test_checksums_are_verified_from_the_segment_of_the_recovery_point_on(on):
    """A flipped payload bit is noticed there; before it only headers are read."""
    fill(on, 9, SMALL)
    path = f"{DIRECTORY}/{0:020d}.log"
    data = bytearray(on.storage.read(path))
    data[-1] ^= 1
    overwrite(on, path, bytes(data))
    assert open_log(on, SMALL, recovery_point=2).log_end_offset == 9
    assert open_log(on, SMALL, clean=True).log_end_offset == 9
    assert open_log(on, SMALL, recovery_point=1).log_end_offset == 1


def test_a_log_that_ends_below_its_recovery_point_says_so(on, caplog):
    """A truncation just before the crash, or something that took synced records: nobody can tell, so it is said."""
    fill(on, 3)
    assert open_log(on, recovery_point=5).recovery_point == 3
    assert "ends at 3, although it was synced up to 5" in caplog.text


def test_a_missing_segment_is_a_hole(on, caplog):
    """Unsynced, the log ends before it; synced, it is an error."""
    fill(on, 9, SMALL)
    on.storage.remove(f"{DIRECTORY}/{4:020d}.log")
    with pytest.raises(StorageFailed, match="there is nothing between"):
        open_log(on, SMALL, recovery_point=9)
    log = open_log(on, SMALL, recovery_point=4)
    assert (log.log_end_offset, log.segment_base_offsets) == (4, [0, 2])


def test_a_segment_that_lost_its_tail_is_a_hole_too(on):
    """After a power loss an older segment may end early while a newer one is whole."""
    fill(on, 9, SMALL)
    path = f"{DIRECTORY}/{2:020d}.log"
    overwrite(on, path, on.storage.read(path)[:75])
    log = open_log(on, SMALL)
    assert (log.log_end_offset, log.segment_base_offsets) == (3, [0, 2])


def test_indexes_epochs_and_snapshots_are_made_again(on):
    """All of them lost, or nonsense: the log says what they were."""
    fill(on, 9, SMALL, leader_epoch=3)
    open_log(on, SMALL).close(clean=True)
    before = {name: on.storage.read(f"{DIRECTORY}/{name}") for name in on.storage.listdir(DIRECTORY)}
    for name in before:
        if name.endswith(("index", "checkpoint")):
            overwrite(on, f"{DIRECTORY}/{name}", b"nonsense")
        if name.endswith(".snapshot"):
            on.storage.remove(f"{DIRECTORY}/{name}")
    log = open_log(on, SMALL, clean=True)
    assert log.epochs.entries == ((3, 0),)
    assert repr(log.producers) == "ProducerStates(1 producers, 5 marks)"  # one for each segment
    entry = log.producers.get(7)
    assert entry is not None and entry.complete and [batch.base_sequence for batch in entry.batches] == [4, 5, 6, 7, 8]
    log.close(clean=True)
    after = {name: on.storage.read(f"{DIRECTORY}/{name}") for name in on.storage.listdir(DIRECTORY)}
    assert after == {name: data for name, data in before.items() if name in after}
    assert set(before) - set(after) == {f"{base:020d}.snapshot" for base in (2, 4, 6, 8)}


def test_leftovers_are_removed(on):
    """.deleted and .tmp files, indexes without a log, snapshots of no segment or above the end."""
    fill(on, 5, SMALL)
    junk = [f"{0:020d}.log.deleted", "leader-epoch-checkpoint.tmp", f"{3:020d}.index", f"{3:020d}.timeindex"]
    strays = [f"{3:020d}.snapshot", f"{9:020d}.snapshot"]
    for name in junk + strays:
        overwrite(on, f"{DIRECTORY}/{name}", b"x")
    open_log(on, SMALL)
    assert not set(junk + strays) & set(on.storage.listdir(DIRECTORY))
    assert [name for name in on.storage.listdir(DIRECTORY) if name.endswith("snapshot")] == [
        f"{base:020d}.snapshot" for base in (2, 4, 5)
    ]


def test_an_unclean_start_writes_a_snapshot_at_the_end(on):
    """Kafka's LogLoader does so at the end of a recovery."""
    fill(on, 3)
    open_log(on)
    assert f"{3:020d}.snapshot" in on.storage.listdir(DIRECTORY)


def test_a_log_wholly_below_its_start_is_started_over(on):
    """LEO < log start: drop everything, start at the log start (Kafka's LogLoader)."""
    fill(on, 5, SMALL, leader_epoch=2)
    log = open_log(on, SMALL, log_start_offset=20)
    assert (log.log_start_offset, log.log_end_offset, log.segment_base_offsets) == (20, 20, [20])
    assert len(log.producers) == 0 and log.epochs.entries == ()


@pytest.mark.parametrize("marks", [1, 8])
def test_a_snapshot_speaks_for_producers_whose_batches_are_gone(on, marks, monkeypatch):
    """At the first segment's base it is taken as a start; a damaged one is passed over."""
    monkeypatch.setattr(producer_marks, "MARKS", marks)
    log = open_log(on, SMALL)
    for sequence in range(3):
        append(log, producer_id=1, producer_epoch=0, base_sequence=sequence)
    for sequence in range(4):
        append(log, producer_id=2, producer_epoch=0, base_sequence=sequence)
    log.advance_log_start_offset(5)
    assert log.segment_base_offsets == [4, 6]
    again = open_log(on, SMALL)
    known = again.producers.get(1)
    assert known is not None and known.last_sequence == 2 and not known.complete
    assert append(again, producer_id=1, producer_epoch=0, base_sequence=2).duplicate
    again.truncate_to(5)
    assert again.producers.get(1) is not None  # also after the replay of a truncation
    overwrite(on, f"{DIRECTORY}/{4:020d}.snapshot", b"nonsense")
    assert open_log(on, SMALL).producers.get(1) is None


def test_a_directory_that_cannot_be_made_is_a_storage_error(on, monkeypatch):
    """An OSError at open is KAFKA_STORAGE_ERROR."""
    monkeypatch.setattr(on.storage, "makedirs", lambda _: (_ for _ in ()).throw(OSError(13, "Permission denied")))
    with pytest.raises(StorageFailed, match="Permission denied"):
        open_log(on)


def test_partition_metadata_that_cannot_be_read_is_an_error(on):
    """It says whose log this is: it is never guessed."""
    fill(on, 1)
    overwrite(on, f"{DIRECTORY}/partition.metadata", b"version: 7\n")
    with pytest.raises(LogError):
        open_log(on)


def test_on_real_files(tmp_path):
    """The same on a file system: appends, rolls, a torn tail, a clean stop."""
    on = Bench(OsStorage(), bench().clock)  # type: ignore[arg-type]
    directory = str(tmp_path / "t-0")
    log = open_log(on, SMALL, directory=directory)
    for sequence in range(9):
        append(log, producer_id=7, producer_epoch=0, base_sequence=sequence)
    expected = read_all(log)
    log.flush()
    path = tmp_path / "t-0" / f"{8:020d}.log"
    path.write_bytes(path.read_bytes() + b"torn")
    log = open_log(on, SMALL, directory=directory, recovery_point=9)
    assert read_all(log) == expected
    log.truncate_to(5)
    log.close(clean=True)
    log = open_log(on, SMALL, directory=directory, clean=True)
    assert (log.log_end_offset, log.recovery_point) == (5, 5)
    assert expected.startswith(read_all(log))
    log.delete()
    (left,) = tmp_path.iterdir()
    assert left.name.endswith("-delete")


@pytest.mark.parametrize("clean", [False, True])
def test_a_log_whose_records_were_all_deleted_keeps_its_epoch(clean: bool) -> None:
    """By it a leader of another history sees that our end is not of its own (Kafka's ``LeaderEpochFileCache``)."""
    on = bench()
    config = LogConfig(segment_bytes=100)
    log = open_log(on, config)
    for _ in range(5):
        append(log, leader_epoch=3)
    log.advance_log_start_offset(5)
    log.retain(5, NOW_MS)
    assert (log.segment_base_offsets, log.epochs.entries) == ([5], ((3, 5),))
    log.close(clean=False)
    again = open_log(on, config, clean=clean, log_start_offset=5)
    assert (again.log_start_offset, again.log_end_offset, again.epochs.entries) == (5, 5, ((3, 5),))
