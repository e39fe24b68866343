"""Cleaning a log's files: against a dictionary, with a crash at every operation, and what stands in its way."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.log.cleaner import CleaningCancelled
from cluster.log.config import LogConfig
from cluster.log.errors import StorageFailed
from cluster.log.manager import LogManager
from cluster.log.partition_log import PartitionLog
from cluster.log.removal import Doomed
from cluster.log.transactions import marker_in
from cluster.protocol.batch import parse_header
from cluster.protocol.control_records import ControlRecordType
from cluster.protocol.records import NewRecord, Record, build_batch, decode_records
from tests.cluster.log.builders import DIRECTORY, NOW_MS, Bench, append, bench, content, make_marker, open_log, read_all
from tests.cluster.log.crashing import Died, dying_after

RETENTION_MS = 1000
CONFIG = LogConfig(
    segment_bytes=300,
    index_interval_bytes=100,
    cleanup_policy=("compact",),
    delete_retention_ms=RETENTION_MS,
    min_cleanable_dirty_ratio=0.0,
)
KEYS = (b"a", b"b", b"c", b"d")
PAIRS = st.tuples(st.sampled_from(KEYS), st.sampled_from([None, b"1", b"2" * 60]))


@pytest.fixture
def on() -> Bench:
    return bench()


def put(log: PartitionLog, *pairs: tuple[bytes | None, bytes | None], now_ms: int = NOW_MS, **fields) -> None:
    batch = bytearray(build_batch([NewRecord(now_ms, key, value) for key, value in pairs], **fields))
    append(log, batch)


def clean(log: PartitionLog, now_ms: int = NOW_MS, max_keys: int = 1000, stable_offset: int | None = None) -> bool:
    """One compaction of all that can be, due or not: what is synced."""
    log.flush()
    what = log.cleanable(log.log_end_offset if stable_offset is None else stable_offset, now_ms)
    if what is None:
        return False
    cleaning = log.begin_cleaning(what, max_keys, now_ms)
    cleaning.run()
    return log.finish_cleaning(cleaning)


def batches(log: PartitionLog) -> list[bytes]:
    data = read_all(log)
    found, position = [], 0
    while position < len(data):
        size = parse_header(data, position).size_bytes
        found.append(data[position : position + size])
        position += size
    return found


def records(log: PartitionLog) -> list[Record]:
    return [record for batch in batches(log) for record in decode_records(batch)]


def reopen(on: Bench, cleaned_to: int = 0, **fields) -> PartitionLog:
    return PartitionLog.open(
        DIRECTORY, "t", 0, CONFIG, on.storage, on.clock, clean=False, cleaned_to=cleaned_to, **fields
    )


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


@pytest.mark.parametrize("power", [False, True])
@settings(max_examples=2)
@given(
    writes=st.lists(
        st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from([None, b"1", b"22"])), min_size=1, max_size=3),
        min_size=10,
        max_size=14,
    ),
)
def test_a_crash_at_every_operation(writes, power):
    """After each one the next start has every key's newest record, no record that was never there, the same end,
    and the producer; and then the compaction can be done again, with the outcome it would have had."""
    prepared = bench()
    log = open_log(prepared, CONFIG)
    for sequence, pairs in enumerate(writes):
        put(log, *pairs, producer_id=7, producer_epoch=0, base_sequence=sum(map(len, writes[:sequence])))
    clean(log)  # what it leaves is small, so that the next one makes one segment of several
    for _ in range(8):
        put(log, (b"a", b"later"))
    log.flush()
    before = {record.offset: record for record in records(log)}
    end = log.log_end_offset
    operations = 0
    while True:
        on = deepcopy(prepared)
        log = reopen(on, recovery_point=end)
        try:
            with dying_after(operations):
                clean(log)
            done = True
        except Died:
            done = False
        if power:
            on.storage.power_loss()
        again = reopen(on, recovery_point=end)
        check(again, before, end)
        clean(again)
        check(again, before, end)
        active = again.segment_base_offsets[-1]
        below = [record.key for record in records(again) if record.offset < active]
        assert len(below) == len(set(below))
        if done:
            return
        operations += 1


def check(log: PartitionLog, before: dict[int, Record], end: int) -> None:
    after = records(log)
    assert log.log_end_offset == end
    segments = list(log._local.segments)
    assert all(segment.next_offset <= later.base_offset for segment, later in pairwise(segments))
    assert all(before[record.offset] == record for record in after)
    newest = {record.key: record for record in before.values()}
    assert set(newest.values()) <= set(after)
    entry = log.producers.get(7)
    assert entry is not None and entry.batches[-1].last_offset == end - 9


class Compacting(RuleBasedStateMachine):
    """Appends, compactions, restarts and time, against the list of all that was ever written."""

    @initialize()
    def begin(self) -> None:
        self.on = bench()
        self.log = open_log(self.on, CONFIG)
        self.written: dict[int, Record] = {}
        self.now_ms = NOW_MS
        #: Of each tombstone that a compaction has met, when it may go.
        self.horizons: dict[int, int] = {}
        self.gone: set[int] = set()

    @rule(pairs=st.lists(PAIRS, min_size=1, max_size=3))
    def write(self, pairs):
        base = self.log.log_end_offset
        put(self.log, *pairs, now_ms=self.now_ms)
        for number, (key, value) in enumerate(pairs):
            self.written[base + number] = Record(base + number, self.now_ms, key, value, ())

    @rule(later_ms=st.integers(1, 700))
    def wait(self, later_ms):
        self.now_ms += later_ms

    @rule(max_keys=st.sampled_from([2, 1000]))
    def compact(self, max_keys):
        starts = {o: parse_header(b).base_offset for b in batches(self.log) for o in self.offsets(b)}
        if not clean(self.log, self.now_ms, max_keys):
            return
        cleaned_to = self.log.cleaned_to
        newest = self.newest_below(cleaned_to)
        # The tombstones of one batch share the horizon of the first pass that saw one of them.
        horizons = {starts[o]: at for o, at in self.horizons.items() if o in starts}
        for offset, record in self.written.items():
            if offset >= cleaned_to or newest[record.key] != offset or record.value is not None or offset in self.gone:
                continue
            horizon = horizons.get(starts[offset])
            if horizon is None:
                self.horizons[offset] = self.now_ms + RETENTION_MS
            elif self.now_ms >= horizon:
                self.gone.add(offset)
            else:
                self.horizons[offset] = horizon

    @staticmethod
    def offsets(batch: bytes) -> range:
        header = parse_header(batch)
        return range(header.base_offset, header.next_offset)

    def newest_below(self, end: int) -> dict[bytes | None, int]:
        return {record.key: offset for offset, record in sorted(self.written.items()) if offset < end}

    @rule()
    def restart(self):
        self.log = reopen(self.on, self.log.cleaned_to, recovery_point=self.log.recovery_point)

    @invariant()
    def the_log_is_what_the_list_says(self):
        cleaned_to = self.log.cleaned_to
        newest = self.newest_below(cleaned_to)
        expected = [
            record
            for offset, record in sorted(self.written.items())
            if offset >= cleaned_to or (newest[record.key] == offset and offset not in self.gone)
        ]
        assert records(self.log) == expected
        assert self.log.log_end_offset == len(self.written)


TestCompacting = Compacting.TestCase
TestCompacting.settings = settings(stateful_step_count=20)


def transact(log: PartitionLog, producer_id: int, *pairs: tuple[bytes, bytes | None]) -> None:
    """A transactional batch as a coordinator writes it, without a sequence."""
    records = [NewRecord(NOW_MS, key, value) for key, value in pairs]
    batch = build_batch(records, producer_id=producer_id, producer_epoch=0, transactional=True)
    log.append_as_coordinator(bytearray(batch), 0)


def decide(log: PartitionLog, producer_id: int, how: ControlRecordType) -> None:
    log.append_as_coordinator(make_marker(producer_id, how), 0)


def committed(log: PartitionLog) -> dict[bytes, bytes | None]:
    """What a reader of committed records has of each key in the end."""
    found: dict[bytes, bytes | None] = {}
    pending: dict[int, dict[bytes, bytes | None]] = {}
    placed: dict[bytes, int] = {}

    def take(offset: int, key: bytes, value: bytes | None) -> None:
        if offset >= placed.get(key, -1):
            placed[key], found[key] = offset, value

    offsets: dict[int, dict[bytes, int]] = {}
    for batch in batches(log):
        header = parse_header(batch)
        if header.is_control:
            marker = marker_in(batch)
            written = pending.pop(header.producer_id, {})
            if marker is not None and marker.control_type is ControlRecordType.COMMIT:
                for key, value in written.items():
                    take(offsets[header.producer_id][key], key, value)
            continue
        for record in decode_records(batch):
            assert record.key is not None
            if header.is_transactional:
                pending.setdefault(header.producer_id, {})[record.key] = record.value
                offsets.setdefault(header.producer_id, {})[record.key] = record.offset
            else:
                take(record.offset, record.key, record.value)
    return {key: value for key, value in found.items() if value is not None}


def test_committed_offsets_do_not_pile_up(on):
    """Of thousands of transactions that write one key, and of those that are aborted, markers alone stay."""
    log = open_log(on, config=CONFIG)
    for number in range(50):
        transact(log, number, (b"a", str(number).encode()))
        decide(log, number, ControlRecordType.COMMIT if number % 2 else ControlRecordType.ABORT)
    before = committed(log)
    assert clean(log)
    assert committed(log) == before == {b"a": b"49"}
    headers = [parse_header(batch) for batch in batches(log)]
    assert sum(not header.is_control for header in headers) <= 4, "of the last segments, which are not compacted"
    assert sum(header.is_control for header in headers) == 50


def test_a_tombstone_does_not_bring_back_what_a_transaction_wrote(on):
    """The deletion of an offset outlives the transaction that committed it, whatever is compacted when."""
    log = open_log(on, config=CONFIG)
    transact(log, 1, (b"a", b"old"))
    put(log, (b"a", None))
    for number in range(5):
        put(log, (b"b", b"2" * 60 + str(number).encode()))
    decide(log, 1, ControlRecordType.COMMIT)
    for now_ms in (NOW_MS, NOW_MS + RETENTION_MS + 1, NOW_MS + 3 * RETENTION_MS):
        for number in range(5):
            put(log, (b"b", b"3" * 60 + str(number).encode()))
        clean(log, now_ms)
        assert b"a" not in committed(log)
    assert b"a" not in {record.key for record in records(log)}, "the tombstone went, and with it what it covered"


def test_a_transaction_without_its_marker_ends_a_compaction(on):
    """It is decided, but its marker lies behind what can be read; the same end is not tried again."""
    log = open_log(on, config=CONFIG)
    for number in range(6):
        put(log, (b"b", b"1" * 60 + str(number).encode()))
    first = log.log_end_offset
    transact(log, 1, (b"a", b"1" * 200))
    put(log, (b"b", b"2" * 200))
    decide(log, 1, ControlRecordType.COMMIT)
    clean(log)
    assert log.cleaned_to == first
    assert log.cleanable(log.log_end_offset, NOW_MS) is None
    for _ in range(4):
        put(log, (b"b", b"3" * 200))
    assert clean(log)
    assert log.cleaned_to > first
    assert committed(log) == {b"a": b"1" * 200, b"b": b"3" * 200}


OFTEN = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.none(), PAIRS),
        st.tuples(st.just("transact"), st.integers(1, 3), PAIRS),
        st.tuples(st.sampled_from(["commit", "abort", "clean", "later"]), st.integers(1, 3), st.none()),
    ),
    max_size=60,
)


@given(OFTEN)
@settings(deadline=None)
def test_compaction_changes_nothing_that_is_committed(steps):
    """Transactions of several producers interleave with records outside any, whatever is compacted in between; after an
    unclean stop, too."""
    on = bench()
    log = open_log(on, config=CONFIG)
    now_ms, opened = NOW_MS, set()
    for what, producer_id, pair in steps:
        if what == "put":
            put(log, pair, now_ms=now_ms)
        elif what == "transact":
            transact(log, producer_id, pair)
            opened.add(producer_id)
        elif what in ("commit", "abort"):
            if producer_id in opened:
                decide(log, producer_id, ControlRecordType.COMMIT if what == "commit" else ControlRecordType.ABORT)
                opened.discard(producer_id)
        elif what == "later":
            now_ms += RETENTION_MS
        else:
            before = committed(log)
            clean(log, now_ms)
            assert committed(log) == before
    before, stable_offset = committed(log), log.last_stable_offset(log.log_end_offset)
    again = open_log(on, CONFIG, recovery_point=log.recovery_point)
    assert committed(again) == before
    assert again.last_stable_offset(again.log_end_offset) == stable_offset
