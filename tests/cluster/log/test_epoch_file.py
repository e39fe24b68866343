"""When ``leader-epoch-checkpoint`` is synced: where no batch tells the epochs again."""

from __future__ import annotations

import pytest

from cluster.log.checkpoints import LEADER_EPOCH_FILE
from cluster.log.config import LogConfig
from cluster.log.errors import StorageFailed
from cluster.log.partition_log import PartitionLog
from cluster.seams.memory_storage import MemoryFile
from tests.cluster.log.builders import DIRECTORY, NOW_MS, Bench, append, bench, make_batch, open_log, replicated

CONFIG = LogConfig(segment_bytes=100, flush_messages=1)


@pytest.fixture
def on() -> Bench:
    return bench()


def emptied(on: Bench) -> PartitionLog:
    """A log of five batches of epoch 3, each synced, all of which retention has deleted."""
    log = open_log(on, CONFIG)
    for _ in range(5):
        append(log, leader_epoch=3)
    log.advance_log_start_offset(5)
    log.retain(5, NOW_MS)
    assert (log.segment_base_offsets, log.epochs.entries) == ([5], ((3, 5),))
    return log


def after_a_power_loss(on: Bench) -> PartitionLog:
    """The log of ``emptied`` as it is opened again: what was synced of it is there."""
    on.storage.power_loss()
    log = open_log(on, CONFIG, recovery_point=5)
    assert log.log_start_offset == 5
    return log


def syncs_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are synced from now on, by the last part of their paths."""
    synced: list[str] = []
    fsync = MemoryFile.fsync

    def noting(file: MemoryFile) -> None:
        synced.append(file.path.rpartition("/")[2])
        fsync(file)

    monkeypatch.setattr(MemoryFile, "fsync", noting)
    return synced


def test_the_epoch_outlasts_the_last_batch(on: Bench) -> None:
    """A power loss after retention has emptied the log takes no epoch: a blank replica would begin again at its
    leader's start, maybe below the high watermark."""
    emptied(on)
    assert after_a_power_loss(on).epochs.entries == ((3, 5),)


def test_an_epoch_that_begins_in_an_emptied_log_waits_for_no_disk(on: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker may come to lead a thousand of them at once. The epoch before stays on the disk, which is as good."""
    log = emptied(on)
    synced = syncs_of(monkeypatch)
    log.epochs.assign(7, 5)
    assert (log.epochs.entries, synced) == (((7, 5),), [])
    assert after_a_power_loss(on).epochs.entries == ((3, 5),)


def test_a_restart_makes_no_difference_to_that(on: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file was synced in the life before."""
    emptied(on)
    log = open_log(on, CONFIG, recovery_point=5)
    synced = syncs_of(monkeypatch)
    log.epochs.assign(7, 5)
    assert (log.epochs.entries, synced) == (((7, 5),), [])
    assert after_a_power_loss(on).epochs.entries == ((3, 5),)


def stored(on: Bench) -> list[str]:
    """The epochs in the file, each with its start."""
    return on.storage.read(f"{DIRECTORY}/{LEADER_EPOCH_FILE}").decode().splitlines()[2:]


@pytest.mark.parametrize("is_leader", [True, False], ids=["leader", "follower"])
def test_the_first_batches_of_an_emptied_log_leave_an_epoch(is_leader: bool, on: Bench) -> None:
    """Their epochs are on the disk before they are: the file agrees with the batches, and a power loss that takes all
    of them takes nothing of what was known."""
    log = emptied(on)
    log.update_config(LogConfig(segment_bytes=1000))
    log.epochs.assign(8, 5)
    assert stored(on) == ["3 5"]
    if is_leader:
        append(log, leader_epoch=8)
    else:
        log.append_as_follower(replicated(make_batch(1, base_offset=5, leader_epoch=8)))
    assert stored(on) == ["8 5"]
    again = after_a_power_loss(on)
    assert (again.log_end_offset, again.epochs.entries) == (5, ((8, 5),))


def test_later_epochs_are_not_synced(on: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches tell their epochs again then."""
    log = emptied(on)
    append(log, leader_epoch=8)
    log.flush()
    synced = syncs_of(monkeypatch)
    log.epochs.assign(9, 6)
    assert (stored(on), synced) == (["8 5", "9 6"], [])
    assert after_a_power_loss(on).epochs.entries == ((8, 5),)


@pytest.mark.parametrize("is_flushed", [True, False], ids=["synced", "unsynced"])
def test_a_log_that_is_emptied_again_keeps_its_latest_epoch(is_flushed: bool, on: Bench) -> None:
    """It is in the file before the last batch goes."""
    log = emptied(on)
    log.update_config(LogConfig(segment_bytes=100))
    for _ in range(3):
        append(log, leader_epoch=8)
    if is_flushed:
        log.flush()
    log.advance_log_start_offset(8)
    log.retain(8, NOW_MS)
    assert log.segment_base_offsets == [8]
    on.storage.power_loss()
    assert open_log(on, CONFIG, log_start_offset=8).epochs.entries == ((8, 8),)


def test_a_segment_that_stays_tells_its_epoch(on: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where batches stay nothing is synced but they: a failover does not wait for each partition's disk."""
    log = open_log(on, LogConfig(segment_bytes=100))
    for epoch in range(5):
        append(log, leader_epoch=epoch)
    synced = syncs_of(monkeypatch)
    log.advance_log_start_offset(3)
    log.epochs.assign(9, 5)
    assert (log.segment_base_offsets[0], synced) == (3, [])


def test_a_new_log_has_no_epoch_to_lose(on: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic is created without a sync for each partition's epoch."""
    synced = syncs_of(monkeypatch)
    open_log(on).epochs.assign(0, 0)
    assert synced == []


def test_batches_stay_if_their_epoch_cannot_be_synced(on: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the file, then the segments: the disk fails in between."""
    log = open_log(on, CONFIG)
    for _ in range(5):
        append(log, leader_epoch=3)
    log.roll("full")
    fsync = MemoryFile.fsync

    def failing(file: MemoryFile) -> None:
        if file.path == f"{DIRECTORY}/{LEADER_EPOCH_FILE}":
            raise OSError(5, "Input/output error")
        fsync(file)

    monkeypatch.setattr(MemoryFile, "fsync", failing)
    with pytest.raises(StorageFailed, match="Input/output error"):
        log.advance_log_start_offset(5)
    assert log.segment_base_offsets == [0, 1, 2, 3, 4, 5]
