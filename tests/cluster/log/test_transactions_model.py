"""Transactions in a log against a plain list of batches: appends, markers, cuts, stops and crashes, in every order.

The oracle walks the list from its beginning each time. What is open, what was aborted and what a ``read_committed``
reader sees must be what it says.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.log import invariants, producer_invariants, producer_marks
from cluster.log import snapshots as snapshots_module
from cluster.log.aborted_transactions import AbortedTransaction
from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import TRANSACTIONAL_BIT, BatchHeader, iter_batches, parse_header, set_offset_and_epoch
from cluster.protocol.control_records import ControlRecordType, parse_marker_batch
from cluster.protocol.errors import ErrorCode
from tests.cluster.log.builders import Bench, append, bench, code_of, content, make_batch, make_marker, open_log
from tests.support.examples import examples

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=150)
PRODUCERS = st.integers(1, 3)
ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


class Stored(NamedTuple):
    """One batch of the oracle."""

    data: bytes
    header: BatchHeader


class Facts:
    """What the list says."""

    def __init__(self, batches: list[Stored]) -> None:
        #: Producer id to the first offset of its transaction.
        self.open: dict[int, int] = {}
        self.epochs: dict[int, int] = {}
        self.coordinator_epochs: dict[int, int] = {}
        self.sequences: dict[int, int] = {}
        self.aborted: list[AbortedTransaction] = []
        #: (first offset, marker)
        self.decided: list[tuple[int, int]] = []
        #: Base offsets of data batches that were aborted.
        self.hidden: set[int] = set()
        begun: dict[int, list[int]] = {}
        for data, header in batches:
            producer_id, offset = header.producer_id, header.base_offset
            if producer_id < 0:
                continue
            if self.epochs.get(producer_id) != header.producer_epoch:
                self.sequences[producer_id] = 0
            self.epochs[producer_id] = header.producer_epoch
            if header.is_control:
                marker = parse_marker_batch(data).marker
                self.coordinator_epochs[producer_id] = marker.coordinator_epoch
                first, members = self.open.pop(producer_id, None), begun.pop(producer_id, [])
                if first is None:
                    continue
                self.decided.append((first, offset))
                if marker.control_type is ABORT:
                    stable = min(self.open.values(), default=offset + 1)
                    self.aborted.append(AbortedTransaction(producer_id, first, offset, stable))
                    self.hidden.update(members)
                continue
            if header.base_sequence >= 0:
                self.sequences[producer_id] = header.last_sequence + 1
            if header.is_transactional:
                self.open.setdefault(producer_id, offset)
                begun.setdefault(producer_id, []).append(offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        firsts = [first for first, marker in self.decided if marker >= high_watermark]
        return min([*self.open.values(), *firsts, high_watermark])


@pytest.fixture(autouse=True)
def small_memory(monkeypatch):
    """Let a truncation pass the oldest mark, and a start its newest histories."""
    monkeypatch.setattr(producer_marks, "MARKS", 2)
    monkeypatch.setattr(producer_marks, "MARK_RECORDS", 3)
    monkeypatch.setattr(snapshots_module, "HISTORIES", 2)


class TransactionMachine(RuleBasedStateMachine):
    """Three producers and a coordinator, on one log."""

    on: Bench
    log: PartitionLog

    @initialize()
    def begin(self) -> None:
        self.on = bench()
        self.log = open_log(self.on, CONFIG)
        self.batches: list[Stored] = []
        self.high_watermark = 0
        self.synced = 0

    def end(self) -> int:
        return self.batches[-1].header.next_offset if self.batches else 0

    def facts(self) -> Facts:
        return Facts(self.batches)

    def store(self, batch: bytearray) -> bytes:
        set_offset_and_epoch(batch, 0, self.end(), 0)
        self.batches.append(Stored(bytes(batch), parse_header(batch)))
        return bytes(batch)

    def data_batch(self, producer: int, count: int, transactional: bool, bump: int = 0) -> bytearray:
        facts = self.facts()
        epoch = facts.epochs.get(producer, 0) + bump
        sequence = 0 if bump else facts.sequences.get(producer, 0)
        fields = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
        return make_batch(count, attributes=TRANSACTIONAL_BIT if transactional else 0, **fields)

    @rule(producer=PRODUCERS, count=st.integers(1, 3), transactional=st.booleans(), bump=st.sampled_from([0, 0, 0, 1]))
    def a_client_writes(self, producer, count, transactional, bump):
        batch = self.data_batch(producer, count, transactional, bump)
        if producer in self.facts().open and not transactional:
            assert code_of(lambda: append(self.log, batch)) is ErrorCode.INVALID_TXN_STATE
            return
        assert append(self.log, bytearray(batch)).first_offset == self.end()
        self.store(batch)

    @rule(count=st.integers(1, 3))
    def someone_without_an_id_writes(self, count):
        append(self.log, count=count)
        self.store(make_batch(count))

    @rule(
        producer=PRODUCERS,
        control_type=st.sampled_from([ABORT, COMMIT]),
        bump=st.sampled_from([-1, 0, 0, 1]),
        later=st.sampled_from([-1, 0, 0, 1]),
    )
    def a_coordinator_decides(self, producer, control_type, bump, later):
        facts = self.facts()
        epoch = facts.epochs.get(producer, 0) + bump
        coordinator_epoch = facts.coordinator_epochs.get(producer, 0) + later
        if epoch < 0 or coordinator_epoch < 0:
            return
        batch = make_marker(producer, control_type, producer_epoch=epoch, coordinator_epoch=coordinator_epoch)
        refusal = None
        if epoch < facts.epochs.get(producer, 0):
            refusal = ErrorCode.INVALID_PRODUCER_EPOCH
        elif coordinator_epoch < facts.coordinator_epochs.get(producer, -1):
            refusal = ErrorCode.TRANSACTION_COORDINATOR_FENCED
        if refusal is not None:
            assert code_of(lambda: self.log.append_as_coordinator(batch, 0)) is refusal
            return
        assert self.log.append_as_coordinator(bytearray(batch), 0).first_offset == self.end()
        self.store(batch)

    @rule(producer=PRODUCERS)
    def a_coordinator_writes_in_a_transaction(self, producer):
        epoch = self.facts().epochs.get(producer, 0)
        batch = make_batch(producer_id=producer, producer_epoch=epoch, attributes=TRANSACTIONAL_BIT)
        self.log.append_as_coordinator(bytearray(batch), 0)
        self.store(batch)

    @rule(steps=st.lists(st.tuples(PRODUCERS, st.sampled_from([None, ABORT, COMMIT])), min_size=1, max_size=6))
    def a_follower_copies(self, steps):
        copied = []
        for producer, control_type in steps:
            facts = self.facts()
            if control_type is None:
                batch = self.data_batch(producer, 2, True)
            else:
                epochs = facts.epochs.get(producer, 0), facts.coordinator_epochs.get(producer, 0)
                batch = make_marker(producer, control_type, producer_epoch=epochs[0], coordinator_epoch=epochs[1])
            copied.append(self.store(batch))
        self.log.append_as_follower(memoryview(bytearray(b"".join(copied))))

    @rule()
    def mark_producers(self):
        self.log.mark_producers()

    @rule(back=st.integers(0, 12))
    def truncate(self, back):
        offset = max(0, self.end() - back)
        self.batches = [stored for stored in self.batches if stored.header.last_offset < offset]
        self.log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self.end())
        self.synced = min(self.synced, self.end())

    @rule(share=st.integers(0, 3))
    def the_watermark_moves(self, share):
        self.high_watermark += (self.end() - self.high_watermark) * share // 3
        if share == 2:
            self.log.committed(self.high_watermark)

    @rule()
    def flush(self):
        self.log.flush()
        self.synced = self.end()

    @rule(clean=st.booleans())
    def stop_and_open_again(self, clean):
        recovery_point, state = self.log.recovery_point, None
        if clean:
            state = self.log.close(clean=True)
        self.log = PartitionLog.open(
            self.log.directory, "t", 0, CONFIG, self.on.storage, self.on.clock,
            clean=clean, recovery_point=recovery_point, state=state,
        )  # fmt: skip
        self.synced = self.end() if clean else recovery_point
        self.high_watermark = self.end()

    @rule(survivors=st.integers(0, 700), of_others=st.integers(0, 80))
    def lose_power(self, survivors, of_others):
        recovery_point = self.log.recovery_point

        def left(path: str, unsynced: int) -> int:
            return min(unsynced, survivors if path.endswith(".log") else of_others)

        self.on.storage.power_loss(left)
        self.log = open_log(self.on, CONFIG, recovery_point=recovery_point)
        end = self.log.log_end_offset
        assert end >= self.synced
        self.batches = [stored for stored in self.batches if stored.header.last_offset < end]
        assert self.end() == end
        self.high_watermark = end

    @rule(data=st.data())
    def read_what_is_decided(self, data):
        """A client's filter (KIP-98), fed with what the log tells, hides what was aborted and nothing else."""
        bound = self.log.last_stable_offset(self.high_watermark)
        offset = data.draw(st.integers(0, bound), "offset")
        found = self.log.read(offset, data.draw(st.integers(1, 900), "max_bytes"), bound)
        waiting = sorted(self.log.aborted_transactions(offset, found, bound), key=lambda entry: entry[1])
        aborting: set[int] = set()
        hidden, read = set(), []
        for _, header in iter_batches(memoryview(content(found.records))):
            assert header.last_offset < bound
            read.append(header.base_offset)
            while waiting and waiting[0][1] <= header.last_offset:
                aborting.add(waiting.pop(0)[0])
            if header.is_control:
                aborting.discard(header.producer_id)
            elif header.is_transactional and header.producer_id in aborting:
                hidden.add(header.base_offset)
        assert hidden == self.facts().hidden & set(read)

    @invariant()
    def it_is_stable_up_to_the_first_that_is_undecided(self):
        facts = self.facts()
        assert self.log.last_stable_offset(self.high_watermark) == facts.last_stable_offset(self.high_watermark)
        assert {entry.producer_id: entry.txn_first_offset for entry in self.log.producers} == {
            producer: facts.open.get(producer, -1) for producer in facts.epochs
        }
        assert {entry.producer_id: entry.coordinator_epoch for entry in self.log.producers} == {
            producer: facts.coordinator_epochs.get(producer, -1) for producer in facts.epochs
        }

    @invariant()
    def the_index_has_what_was_aborted(self):
        entries = [entry for segment in self.log._local.segments for entry in segment.aborted]
        assert entries == self.facts().aborted

    @invariant()
    def what_always_holds_does(self):
        invariants.validate_whole(self.log)
        producer_invariants.validate(self.log.producers, self.log.log_end_offset)


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = examples(30, stateful_step_count=40)
