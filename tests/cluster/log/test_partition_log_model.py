"""PartitionLog against a plain list of batches: appends, reads, truncations, crashes, in every order.

The oracle is the list. After each step the files, indexes, epochs and producers must be what the list says.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.log import invariants, producer_invariants, producer_marks
from cluster.log import segment as segment_module
from cluster.log.config import LogConfig
from cluster.log.epochs import EpochEntry, LeaderEpochCache
from cluster.log.errors import OffsetOutsideLog
from cluster.log.index import OffsetIndex, TimeIndex
from cluster.log.owner import LogOwner
from cluster.log.partition_log import PartitionLog
from cluster.log.producers import ProducerStates
from cluster.log.waiting_snapshots import PendingSnapshot
from cluster.protocol.batch import parse_header, set_offset_and_epoch
from tests.cluster.log.builders import (
    DIRECTORY,
    NOW_MS,
    Bench,
    append,
    bench,
    content,
    make_batch,
    open_log,
    read_all,
)
from tests.support.examples import examples

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150, segment_ms=10_000)
PRODUCERS = st.integers(0, 2)


class Stored(NamedTuple):
    """One batch of the oracle."""

    data: bytes
    base_offset: int
    last_offset: int
    timestamp: int

    @property
    def epoch(self) -> int:
        return parse_header(self.data).leader_epoch


@pytest.fixture(autouse=True)
def small_memory(monkeypatch):
    """Let the caches overflow, so that lookups take every way."""
    monkeypatch.setattr(segment_module, "RECENT_BATCHES", 2)
    monkeypatch.setattr(segment_module, "RESUME_PLACES", 2)
    monkeypatch.setattr(segment_module, "PENDING_ENTRIES", 2)
    monkeypatch.setattr(producer_marks, "MARKS", 2)
    monkeypatch.setattr(producer_marks, "MARK_RECORDS", 3)


class LogMachine(RuleBasedStateMachine):
    """Appends as leader and follower, reads, truncations, flushes, clean and unclean stops."""

    on: Bench
    log: PartitionLog

    @initialize(puts_off=st.booleans())
    def begin(self, puts_off: bool) -> None:
        self.on = bench()
        self.owner = LogOwner()
        self.owner.writes_snapshots = puts_off
        self.log = self.open()
        self.batches: list[Stored] = []
        self.epochs = LeaderEpochCache()
        self.epoch = 0
        self.timestamp = NOW_MS
        self.synced = 0

    def open(self, *, clean: bool = False, recovery_point: int = 0) -> PartitionLog:
        self.snapshot: PendingSnapshot | None = None
        return open_log(self.on, CONFIG, clean=clean, recovery_point=recovery_point, owner=self.owner)

    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def next_batch(self, producer: int, count: int, size: int, later_ms: int) -> bytearray:
        """One more batch of a producer, continuing its sequence as the list has it; producer 0 has no id."""
        self.timestamp += later_ms
        fields = {}
        if producer:
            mine = [parse_header(stored.data) for stored in self.batches]
            sequence = sum(header.record_count for header in mine if header.producer_id == producer)
            fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
        return make_batch(count, timestamp=self.timestamp, payload=bytes([producer]) * size, **fields)

    def store(self, batch: bytearray) -> None:
        base_offset = self.end()
        set_offset_and_epoch(batch, 0, base_offset, self.epoch)
        header = parse_header(batch)
        self.batches.append(Stored(bytes(batch), base_offset, header.last_offset, header.max_timestamp))
        self.epochs.assign(self.epoch, base_offset)

    @rule(producer=PRODUCERS, count=st.integers(1, 4), size=st.integers(0, 300), later_ms=st.integers(-50, 4000))
    def append_as_leader(self, producer, count, size, later_ms):
        batch = self.next_batch(producer, count, size, later_ms)
        info = append(self.log, bytearray(batch), leader_epoch=self.epoch)
        assert (info.first_offset, info.last_offset) == (self.end(), self.end() + count - 1)
        assert info.must_commit_offset == info.last_offset and not info.duplicate
        self.store(batch)

    @rule(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=8), producer=PRODUCERS, torn=st.integers(0, 60))
    def append_as_follower(self, sizes, producer, torn):
        first = len(self.batches)
        for size in sizes:
            self.store(self.next_batch(producer, 2, size, 10))
        data = b"".join(stored.data for stored in self.batches[first:]) + self.batches[first].data[:torn]
        info = self.log.append_as_follower(memoryview(bytearray(data)))
        assert info is not None
        assert (info.first_offset, info.last_offset) == (self.batches[first].base_offset, self.end() - 1)

    @rule(assign=st.booleans())
    def new_leader_epoch(self, assign):
        self.epoch += 1
        if assign:  # as a new leader does at once
            self.log.epochs.assign(self.epoch, self.log.log_end_offset)
            self.epochs.assign(self.epoch, self.end())

    @rule(back=st.integers(0, 12))
    def truncate(self, back):
        offset = max(0, self.end() - back)
        before = self.end()
        self.batches = [stored for stored in self.batches if stored.last_offset < offset]
        assert self.log.truncate_to(offset) == before - self.end()
        self.epochs.truncate_from_end(self.end())
        self.synced = min(self.synced, self.end())

    @rule(offset=st.integers(-3, 5))
    def truncate_at_or_above_the_end_changes_the_epochs_alone(self, offset):
        offset = max(offset, 0) + self.end()
        assert self.log.truncate_to(offset) == 0
        self.epochs.truncate_from_end(offset)

    @rule()
    def mark_producers(self):
        self.log.mark_producers()

    @rule()
    def flush(self):
        self.log.flush()
        self.synced = self.end()
        assert self.log.recovery_point == self.end()

    @rule()
    def flush_what_was_rolled(self):
        pending = self.log.begin_flush_due(0)
        if pending is not None:
            pending.run()
            self.log.finish_flush(pending)
            self.synced = max(self.synced, self.log.segment_base_offsets[-1])
        assert self.log.recovery_point == self.synced

    @rule()
    def begin_to_write_a_snapshot(self):
        """As another thread does, while the log goes on."""
        if self.snapshot is None and (pending := self.log.begin_snapshot()) is not None:
            pending.run()
            self.snapshot = pending

    @rule()
    def finish_a_snapshot(self):
        if self.snapshot is not None:
            self.log.finish_snapshot(self.snapshot)
            self.snapshot = None

    @rule(clean=st.booleans())
    def stop_and_open_again(self, clean):
        recovery_point = self.log.recovery_point
        if clean:
            self.log.close(clean=True)
        self.log = self.open(clean=clean, recovery_point=recovery_point)
        self.synced = self.end() if clean else recovery_point
        assert self.log.recovery_point == self.synced
        # An epoch in which nothing was written is forgotten at a start (Kafka's LogLoader).
        self.epochs.truncate_from_end(self.end())

    @rule(survivors=st.integers(0, 700))
    def lose_power(self, survivors):
        recovery_point = self.log.recovery_point
        self.on.storage.power_loss(lambda path, unsynced: min(unsynced, survivors) if path.endswith(".log") else 0)
        self.log = self.open(recovery_point=recovery_point)
        end = self.log.log_end_offset
        assert end >= self.synced
        self.batches = [stored for stored in self.batches if stored.last_offset < end]
        assert self.end() == end  # a prefix of whole batches
        self.epochs = LeaderEpochCache([EpochEntry(s.epoch, s.base_offset) for s in self.batches])

    @rule(data=st.data())
    def read(self, data):
        offset = data.draw(st.integers(0, self.end() + 2), "offset")
        max_bytes = data.draw(st.integers(1, 2000), "max_bytes")
        upper = data.draw(st.integers(0, self.end() + 2), "upper_bound_offset")
        at_least_one = data.draw(st.booleans(), "at_least_one")
        if offset > self.end():
            with pytest.raises(OffsetOutsideLog):
                self.log.read(offset, max_bytes, upper, at_least_one)
            return
        result = self.log.read(offset, max_bytes, upper, at_least_one)
        expected, more = self.expected_read(offset, max_bytes, upper, at_least_one)
        assert content(result.records) == b"".join(stored.data for stored in expected)
        assert result.is_older_segment == more
        if expected:
            assert self.segment_of(expected[0]) == result.segment_base_offset

    def segment_of(self, stored: Stored) -> int:
        return max(base for base in self.log.segment_base_offsets if base <= stored.base_offset)

    def expected_read(self, offset, max_bytes, upper, at_least_one):
        wanted = [stored for stored in self.batches if stored.last_offset >= offset]
        if not wanted or offset >= upper:
            return [], False
        base = self.segment_of(wanted[0])
        taken: list[Stored] = []
        total = 0
        for stored in wanted:
            total += len(stored.data)
            fits = total <= max_bytes or (at_least_one and not taken)
            if self.segment_of(stored) != base or stored.last_offset >= upper or not fits:
                break
            taken.append(stored)
        rest = wanted[len(taken) :]
        return taken, any(self.segment_of(stored) != base and stored.base_offset < upper for stored in rest)

    @invariant()
    def log_is_the_list(self):
        log = self.log
        assert log.log_end_offset == self.end()
        assert log.log_start_offset == 0
        assert read_all(log) == b"".join(stored.data for stored in self.batches)
        assert log.size_bytes == sum(len(stored.data) for stored in self.batches)
        assert log.max_timestamp == max((stored.timestamp for stored in self.batches), default=-1)

    @invariant()
    def epochs_are_those_of_the_list(self):
        assert self.log.epochs.entries == self.epochs.entries
        text = self.on.storage.read(f"{DIRECTORY}/leader-epoch-checkpoint").decode()
        assert text == self.epochs.to_text()

    @invariant()
    def producers_are_those_of_the_list(self):
        expected = ProducerStates()
        for stored in self.batches:
            expected.update(parse_header(stored.data), stored.base_offset)
        assert {e.producer_id: e for e in self.log.producers} == {e.producer_id: e for e in expected}
        assert all(entry.complete for entry in expected)

    @invariant()
    def segments_and_indexes_are_sound(self):
        bases = self.log.segment_base_offsets
        assert bases[0] == 0
        for base in bases:
            inside = [stored for stored in self.batches if self.segment_of(stored) == base]
            data = self.on.storage.read(f"{DIRECTORY}/{base:020d}.log")
            assert data == b"".join(stored.data for stored in inside)
            assert len(data) <= CONFIG.segment_bytes
            starts = {}
            for stored in inside:
                starts[sum(len(s.data) for s in inside if s.base_offset < stored.base_offset)] = stored
            for offset, position in OffsetIndex.parse(self.on.storage.read(f"{DIRECTORY}/{base:020d}.index"), base):
                assert starts[position].last_offset == offset
            for timestamp, offset in TimeIndex.parse(self.on.storage.read(f"{DIRECTORY}/{base:020d}.timeindex"), base):
                (holder,) = [stored for stored in inside if stored.last_offset == offset]
                assert holder.timestamp == timestamp
                assert all(s.timestamp <= timestamp for s in inside if s.last_offset <= offset)

    @invariant()
    def what_always_holds_does(self):
        headers = invariants.validate_whole(self.log)
        producer_invariants.validate(self.log.producers, self.log.log_end_offset)
        producer_invariants.validate_batches(self.log.producers, headers, 0, holes_allowed=False)

    @invariant()
    def no_snapshot_is_above_the_end(self):
        names = [name for name in self.on.storage.listdir(DIRECTORY) if name.endswith(".snapshot")]
        assert all(int(name[:20]) <= self.end() for name in names)


TestPartitionLog = LogMachine.TestCase
TestPartitionLog.settings = examples(30, stateful_step_count=40)
