"""Cleaning a log's files: which records stay where, and what stands in its way."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from cluster.log.cleaner import CleaningCancelled
from cluster.log.config import LogConfig
from cluster.log.errors import StorageFailed
from cluster.log.manager import LogManager
from cluster.log.partition_log import PartitionLog
from cluster.log.removal import Doomed
from cluster.protocol.records import NewRecord, build_batch, decode_records
from tests.cluster.log.builders import DIRECTORY, NOW_MS, Bench, append, bench, content, open_log, read_all
from tests.cluster.log.cleaning import CONFIG, KEYS, batches, clean, put, records, reopen


@pytest.fixture
def on() -> Bench:
    return bench()


def fill(on: Bench, rounds: int = 6) -> PartitionLog:
    """Each round writes every key again; a batch a key."""
    log = open_log(on, CONFIG)
    for number in range(rounds):
        for key in KEYS:
            put(log, (key, b"%d" % number))
    return log


def test_of_each_key_the_newest_stays_at_its_offset(on):
    """What is active is not touched; the log ends where it did, and reads and lookups find what is there."""
    log = fill(on)
    active = log.segment_base_offsets[-1]
    before = records(log)
    assert clean(log)
    assert log.log_end_offset == 24 and log.segment_base_offsets[-1] == active
    newest = {record.key: record for record in before if record.offset < active}
    expected = [record for record in before if record.offset >= active or newest[record.key] is record]
    assert records(log) == expected
    assert log.cleaned_to == active
    for offset in range(24):
        found = decode_records(content(log.read(offset, 1, 24).records))
        assert found[0] == next(record for record in expected if record.offset >= offset)
    again = reopen(on, recovery_point=log.recovery_point)
    assert records(again) == expected and again.log_end_offset == 24
    assert not clean(log)


def test_small_segments_become_one(on):
    """Their files wait as ``.deleted``; nothing else is left behind."""
    doomed = Doomed(on.clock)
    log = open_log(on, CONFIG, doomed=doomed)
    for number in range(24):
        put(log, (KEYS[number % 4], b"%d" % number))
        if number % 8 == 7:
            clean(log)
    before = 6
    assert len(log.segment_base_offsets) < before and log.segment_base_offsets[0] == 0
    assert len(doomed) >= before - len(log.segment_base_offsets)
    on.clock.advance_ms(60_000)
    for removal in doomed.take_due():
        removal.run(on.storage)
    stems = {f"{base:020d}" for base in log.segment_base_offsets}
    names = {
        name
        for name in on.storage.listdir(DIRECTORY)
        if name[0] == "0" and not name.endswith(("snapshot", "producers"))
    }
    assert names == {stem + kind for stem in stems for kind in (".log", ".index", ".timeindex")}


def test_producers_are_known_after_a_compaction_and_a_restart(on):
    """The last five batches of each stay as headers, so a resend of any of them is a duplicate, not news."""
    log = open_log(on, CONFIG)
    for sequence in range(8):
        put(log, (b"a", b"%d" % sequence), producer_id=7, producer_epoch=1, base_sequence=sequence)
    for _ in range(12):
        put(log, (b"a", b"new"))
    assert clean(log)
    again = reopen(on, recovery_point=log.recovery_point)
    entry = again.producers.get(7)
    assert entry is not None and [batch.base_sequence for batch in entry.batches] == [3, 4, 5, 6, 7]
    resent = bytearray(build_batch([NewRecord(NOW_MS, b"a", b"5")], producer_id=7, producer_epoch=1, base_sequence=5))
    assert append(again, resent).duplicate
    fresh = bytearray(build_batch([NewRecord(NOW_MS, b"a", b"8")], producer_id=7, producer_epoch=1, base_sequence=8))
    assert append(again, fresh).first_offset == 20


def test_a_power_loss_after_a_compaction_forgets_no_batch(on):
    """The producer's newest batches were not synced and are lost. Those before them had been compacted, and a resend of
    the newest that is left is a duplicate, not news."""
    log = open_log(on, CONFIG)
    for sequence in range(30):
        put(log, (b"a", b"%d" % sequence), producer_id=7, producer_epoch=1, base_sequence=sequence)
    synced = log.segment_base_offsets[5]
    log.flush(synced)
    what = log.cleanable(log.log_end_offset, NOW_MS)
    assert what is not None and synced == what.end_offset < 25
    cleaning = log.begin_cleaning(what, 1000, NOW_MS)
    cleaning.run()
    assert log.finish_cleaning(cleaning)
    on.storage.power_loss()
    again = reopen(on, recovery_point=synced)
    entry = again.producers.get(7)
    assert again.log_end_offset == synced and entry is not None
    assert [batch.base_sequence for batch in entry.batches] == [*range(synced)][-5:]
    resent = bytearray(
        build_batch([NewRecord(NOW_MS, b"a", b"")], producer_id=7, producer_epoch=1, base_sequence=synced - 1)
    )
    assert append(again, resent).duplicate


def test_epochs_survive_the_batches_that_began_them(on):
    """Where an epoch began is told by leader-epoch-checkpoint when the batches no longer do (KIP-101)."""
    log = open_log(on, CONFIG)
    for epoch in range(5):
        for _ in range(4):
            batch = bytearray(build_batch([NewRecord(NOW_MS, b"a", b"x" * 40)]))
            append(log, batch, leader_epoch=epoch)
    expected = log.epochs.entries
    assert clean(log)
    assert len(records(log)) < 8
    assert (
        reopen(on, recovery_point=log.recovery_point).epochs.entries
        == expected
        == tuple((epoch, 4 * epoch) for epoch in range(5))
    )


def test_a_map_that_is_full_leaves_the_rest_to_the_next_time(on):
    """Nothing is lost meanwhile: beyond the map all records stay."""
    log = fill(on)
    end = log.segment_base_offsets[-1]
    assert clean(log, max_keys=2)
    assert 0 < log.cleaned_to < end
    kept = {record.offset for record in records(log)}
    assert set(range(log.cleaned_to, 24)) <= kept
    rounds = 0
    while clean(log, max_keys=2):
        rounds += 1
        assert rounds < 30
    assert log.cleaned_to == end


def test_a_log_that_was_cut_meanwhile_keeps_its_files(on):
    """A truncation, or segments deleted at the start, make the outcome worthless; it is thrown away."""
    for cut in (lambda log: log.truncate_to(10), lambda log: log.advance_log_start_offset(9)):
        log = fill(bench_again(on))
        log.flush()
        what = log.cleanable(log.log_end_offset, NOW_MS)
        cleaning = log.begin_cleaning(what, 100, NOW_MS)
        cleaning.run()
        cut(log)
        expected = read_all(log)
        assert not log.finish_cleaning(cleaning)
        cleaning.discard()
        assert read_all(log) == expected
        assert not any(name.endswith(".cleaned") for name in on.storage.listdir(DIRECTORY))


def bench_again(on: Bench) -> Bench:
    on.storage.remove_tree(DIRECTORY)
    return on


def test_a_compaction_can_be_stopped(on):
    """A broker that stops does not wait for a gigabyte."""
    log = fill(on)
    log.flush()
    cleaning = log.begin_cleaning(log.cleanable(24, NOW_MS), 100, NOW_MS)
    cleaning.cancelled = True
    with pytest.raises(CleaningCancelled):
        cleaning.run()


def test_a_truncation_into_a_hole_ends_where_it_was_told(on):
    """The log must not go further back than its leader said, although no batch ends there."""
    log = fill(on)
    assert clean(log)
    hole = next(offset for offset in range(1, 20) if offset not in {record.offset for record in records(log)})
    log.truncate_to(hole)
    assert log.log_end_offset == hole and log.cleaned_to <= hole
    put(log, (b"z", b"1"))
    assert records(log)[-1].offset == hole


def test_what_is_written_again_after_a_cut_was_not_compacted(on):
    """Otherwise it would count as clean, and what a tombstone there supersedes would outlive the tombstone.

    Kafka's ``LogCleanerManager.maybeTruncateCheckpoint``, and what it makes of a checkpoint beyond the log's end.
    """
    checkpoint = "data/cleaner-offset-checkpoint"
    manager = LogManager("data", on.storage, on.clock, LogConfig())
    manager.load()
    log = manager.get_or_create("t", 0, None, CONFIG)
    for number in range(24):
        put(log, (KEYS[number % 4], b"%d" % number))
    assert clean(log)
    manager.checkpoint_recovery_points()
    manager.checkpoint_cleaned()
    log.truncate_to(5)
    assert on.storage.read(checkpoint) == b"0\n1\nt 0 5\n"
    # A disk that lost the end of the log, not the checkpoint.
    on.storage.write_atomic(checkpoint, b"0\n1\nt 0 20\n")
    manager = LogManager("data", on.storage, on.clock, LogConfig())
    manager.load()
    again = manager.get("t", 0)
    assert again is not None and again.cleaned_to == again.log_end_offset <= 5
    assert on.storage.read(checkpoint).decode() == f"0\n1\nt 0 {again.log_end_offset}\n"


def test_a_log_whose_policy_changed_while_it_ran_may_have_holes(on):
    """The next start must know that too, else it takes the log for damaged, and so must the log itself when the policy
    is changed back."""
    manager = LogManager("data", on.storage, on.clock, LogConfig())
    manager.load()
    log = manager.get_or_create("t", 0, None, replace(CONFIG, cleanup_policy=("delete",)))
    for number in range(24):
        put(log, (KEYS[number % 4], b"%d" % number))
    log.update_config(CONFIG)
    assert clean(log)
    manager.checkpoint_recovery_points()
    manager.checkpoint_cleaned()
    expected = records(log)
    log.update_config(LogConfig())
    assert log.holes_allowed
    manager = LogManager("data", on.storage, on.clock, LogConfig())
    manager.load()
    again = manager.get("t", 0)
    assert again is not None and again.holes_allowed and records(again) == expected


def test_a_disk_that_fails_amid_the_swap_fails_the_log_and_the_next_start_mends_it(on, monkeypatch):
    """Its files are between two states: KAFKA_STORAGE_ERROR until a start finishes what was begun."""
    log = fill(on)
    expected = {record.key: record.value for record in records(log)}
    log.flush()
    cleaning = log.begin_cleaning(log.cleanable(24, NOW_MS), 100, NOW_MS)
    cleaning.run()
    real, left = type(on.storage).rename, 4

    def rename(storage, source, target):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(5, "I/O error")
        real(storage, source, target)

    monkeypatch.setattr(type(on.storage), "rename", rename)
    with pytest.raises(StorageFailed):
        log.finish_cleaning(cleaning)
    monkeypatch.undo()
    assert log.is_failed
    assert {record.key: record.value for record in records(reopen(on, recovery_point=log.recovery_point))} == expected


def test_a_start_knows_which_logs_may_have_holes(on):
    """Also before topic settings are known, and after the policy was changed back: the cleaner's checkpoint says it."""
    manager = LogManager("data", on.storage, on.clock, LogConfig())
    manager.load()
    log = manager.get_or_create("t", 0, None, CONFIG)
    manager.get_or_create("u", 0, None, LogConfig())
    for number in range(24):
        put(log, (KEYS[number % 4], b"%d" % number))
    assert clean(log)
    manager.checkpoint_recovery_points()
    manager.checkpoint_cleaned()
    expected = records(log)
    text = on.storage.read("data/cleaner-offset-checkpoint").decode()
    assert text == f"0\n1\nt 0 {log.cleaned_to}\n"
    for _ in range(2):
        manager = LogManager("data", on.storage, on.clock, LogConfig())
        manager.load()
        again = manager.get("t", 0)
        assert again is not None and records(again) == expected and again.cleaned_to == log.cleaned_to
        assert manager.get("u", 0).holes_allowed is False
        manager.get_or_create("t", 0, None, LogConfig())
    on.storage.remove("data/cleaner-offset-checkpoint")
    manager = LogManager("data", on.storage, on.clock, LogConfig())
    manager.load()
    again = manager.get("t", 0)
    assert again is not None and records(again) == expected and again.cleaned_to == 0
    manager.delete("t", 0)
    assert on.storage.read("data/cleaner-offset-checkpoint") == b"0\n0\n"


def test_a_lost_end_of_a_segment_is_not_taken_for_compacted(on):
    """A power loss may take the end of a segment and spare the next one. What follows goes too: a follower that kept
    it would lack what lies between for good, and may be elected.
    """
    log = fill(on, 3)
    put(log, (b"a", b"the first of its segment"))
    log.flush()
    synced, segments = log.log_end_offset, len(log.segment_base_offsets)
    while len(log.segment_base_offsets) == segments:
        put(log, (b"b", b"lost, but the last"))
    assert log.segment_base_offsets[-1] > synced
    last = f"{log.segment_base_offsets[-1]:020d}."
    on.storage.power_loss(lambda path, unsynced: unsynced if last in path else 0)
    again = reopen(on, recovery_point=synced)
    assert again.log_end_offset == synced
    assert [record.offset for record in records(again)] == [*range(synced)]


def test_what_is_not_synced_is_not_compacted(on):
    """Else a start could not tell the hole from a loss."""
    log = fill(on)
    synced = log.segment_base_offsets[2]
    log.flush(synced)
    what = log.cleanable(log.log_end_offset, NOW_MS)
    assert what is not None and what.end_offset == synced


def test_a_hole_that_a_follower_copied_costs_it_nothing(on):
    """It got what its leader has compacted, rolled just there, and was killed before anything was synced."""
    log = open_log(on, CONFIG)
    for number in range(24):
        put(log, (b"%d" % number if number % 2 else b"a", b""))
    assert clean(log)
    copied = [bytearray(batch) for batch in batches(log)]
    small = replace(CONFIG, segment_bytes=150)
    follower = PartitionLog.open("data/t-1", "t", 1, small, on.storage, on.clock, clean=True)
    for batch in copied:
        follower.append_as_follower(memoryview(batch))
    assert len(follower.segment_base_offsets) > 4
    again = PartitionLog.open("data/t-1", "t", 1, small, on.storage, on.clock, clean=False)
    assert batches(again) == [bytes(batch) for batch in copied]
    # Cut within a hole, it ends there, and the next segment begins there.
    cut_at = next(after.offset for before, after in pairwise(records(again)) if after.offset > before.offset + 1)
    points = []
    again._owner.recovery_point_moved = lambda log: points.append(log.recovery_point)
    again.truncate_to(cut_at)
    assert points == [again.recovery_point] == [again.log_end_offset] == [cut_at]
