"""Retries, epochs, failovers, truncations and restarts in every order, against a slow and obvious model.

Two replicas. The model of each is the plain list of its batches, and judges a batch by reading the whole list. What a
PartitionLog answers must be what the model says, on the leader of the moment, at every step.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.log import producer_marks
from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.protocol.errors import ErrorCode
from tests.cluster.log.builders import append, bench, code_of, make_batch, open_log, read_all

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)


class Batch(NamedTuple):
    """One batch as its producer made it, and where the log has it."""

    producer_id: int
    producer_epoch: int
    sequence: int
    count: int
    offset: int = -1

    @property
    def sequences(self) -> range:
        return range(self.sequence, self.sequence + self.count)


def judge(log: list[Batch], new: Batch) -> tuple[str, int]:
    """(what must happen, its offset): by reading the list of all batches, oldest first. The log starts at 0."""
    mine = [batch for batch in log if batch.producer_id == new.producer_id]
    if not mine:
        return ("accept", -1) if new.sequence == 0 else ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)
    epoch = mine[-1].producer_epoch
    if new.producer_epoch < epoch:
        return "INVALID_PRODUCER_EPOCH", -1
    if new.producer_epoch > epoch:
        return ("accept", -1) if new.sequence == 0 else ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)
    mine = [batch for batch in mine if batch.producer_epoch == epoch]
    for batch in mine[-5:]:
        if batch.sequences == new.sequences:
            return "duplicate", batch.offset
    used = [sequence for batch in mine for sequence in batch.sequences]
    assert used == list(range(len(used))), "the rules let a hole into the log"
    if new.sequence == len(used):
        return "accept", -1
    older = {sequence for batch in mine[:-5] for sequence in batch.sequences}
    if set(new.sequences) <= older:
        return "below the window", mine[-5].offset - 1
    return "OUT_OF_ORDER_SEQUENCE_NUMBER", -1


@pytest.fixture(autouse=True)
def few_marks(monkeypatch):
    """Let truncations reach back further than the marks."""
    monkeypatch.setattr(producer_marks, "MARKS", 2)


class FailoverMachine(RuleBasedStateMachine):
    """Producers send to whoever leads; the leader changes with what the other one has, and restarts happen."""

    @initialize()
    def begin(self) -> None:
        self.on = bench()
        self.logs = [self.open(0), self.open(1)]
        self.models: list[list[Batch]] = [[], []]
        self.leader = 0
        self.leader_epoch = 0
        self.sent: list[Batch] = []
        self.next: dict[int, tuple[int, int]] = {}

    def open(self, replica: int, *, clean: bool = False) -> PartitionLog:
        return open_log(self.on, CONFIG, directory=f"data/{replica}", clean=clean)

    def send(self, batch: Batch) -> None:
        """Produce to the leader and compare what it says with the model; the batch may be any."""
        model = self.models[self.leader]
        expected, offset = judge(model, batch)
        data = make_batch(
            batch.count,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.sequence,
        )
        log = self.logs[self.leader]
        end = log.log_end_offset
        if expected not in ("accept", "duplicate", "below the window"):
            assert code_of(lambda: append(log, data, leader_epoch=self.leader_epoch)).name == expected
            assert log.log_end_offset == end
            return
        info = append(log, data, leader_epoch=self.leader_epoch)
        if expected == "accept":
            assert (info.first_offset, info.duplicate, info.error_code) == (end, False, ErrorCode.NONE)
            assert info.must_commit_offset == info.last_offset == end + batch.count - 1
            model.append(batch._replace(offset=end))
        elif expected == "duplicate":
            assert (info.first_offset, info.duplicate, info.error_code) == (offset, True, ErrorCode.NONE)
            assert info.must_commit_offset == info.last_offset == offset + batch.count - 1
        else:
            assert expected == "below the window"
            assert info.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            assert (info.first_offset, info.last_offset, info.duplicate) == (-1, -1, True)
            assert info.must_commit_offset == offset
        if expected != "accept":
            assert log.log_end_offset == end

    @rule(producer_id=st.integers(0, 1), count=st.integers(1, 3))
    def produce_next(self, producer_id, count):
        epoch, sequence = self.next.get(producer_id, (0, 0))
        batch = Batch(producer_id, epoch, sequence, count)
        self.next[producer_id] = epoch, sequence + count
        self.sent.append(batch)
        self.send(batch)

    @rule(producer_id=st.integers(0, 1), counts=st.lists(st.integers(1, 3), min_size=3, max_size=7))
    def produce_many(self, producer_id, counts):
        for count in counts:
            self.produce_next(producer_id, count)

    @rule(data=st.data())
    def retry_what_was_sent(self, data):
        if self.sent:
            self.send(data.draw(st.sampled_from(self.sent)))

    @rule(back=st.integers(1, 12))
    def retry_the_last_ones_in_order(self, back):
        for batch in self.sent[-back:]:
            self.send(batch)

    @rule(data=st.data(), shift=st.integers(-3, 3), resize=st.integers(0, 2))
    def send_what_was_never_sent(self, data, shift, resize):
        if self.sent:
            batch = data.draw(st.sampled_from(self.sent))
            self.send(batch._replace(sequence=max(0, batch.sequence + shift), count=batch.count + resize))

    @rule(producer_id=st.integers(0, 1), count=st.integers(1, 3))
    def skip_a_batch(self, producer_id, count):
        """As with several in flight: one is lost, the next arrives."""
        epoch, sequence = self.next.get(producer_id, (0, 0))
        self.sent += [Batch(producer_id, epoch, sequence, count), Batch(producer_id, epoch, sequence + count, 1)]
        self.next[producer_id] = epoch, sequence + count + 1
        self.send(self.sent[-1])

    @rule(producer_id=st.integers(0, 1))
    def bump_the_producer_epoch(self, producer_id):
        epoch, _ = self.next.get(producer_id, (0, 0))
        self.next[producer_id] = epoch + 1, 0

    @rule(batches=st.integers(1, 6))
    def replicate(self, batches):
        """The follower fetches some of what it lacks."""
        follower = 1 - self.leader
        log = self.logs[follower]
        result = self.logs[self.leader].read(log.log_end_offset, 90 * batches, self.logs[self.leader].log_end_offset)
        if result.records is not None:
            data = bytearray(result.records.file.pread(result.records.size, result.records.position))
            log.append_as_follower(memoryview(data))
            self.models[follower] = self.models[self.leader][: len(self.models[follower])]
            while len(self.models[follower]) < len(self.models[self.leader]):
                batch = self.models[self.leader][len(self.models[follower])]
                if batch.offset >= log.log_end_offset:
                    break
                self.models[follower].append(batch)

    @rule()
    def fail_over(self):
        """The other one leads with what it has; the old leader goes back to that."""
        self.leader = 1 - self.leader
        self.leader_epoch += 1
        self.logs[self.leader].epochs.assign(self.leader_epoch, self.logs[self.leader].log_end_offset)
        follower = 1 - self.leader
        self.logs[follower].truncate_to(self.logs[self.leader].log_end_offset)
        self.models[follower] = self.models[follower][: len(self.models[self.leader])]

    @rule(replica=st.integers(0, 1), clean=st.booleans())
    def restart(self, replica, clean):
        if clean:
            self.logs[replica].close(clean=True)
        self.logs[replica] = self.open(replica, clean=clean)

    @invariant()
    def logs_are_their_models(self):
        for log, model in zip(self.logs, self.models, strict=True):
            assert log.log_end_offset == sum(batch.count for batch in model)

    def teardown(self):
        follower = 1 - self.leader
        while self.logs[follower].log_end_offset < self.logs[self.leader].log_end_offset:
            self.replicate(9)
        assert read_all(self.logs[0]) == read_all(self.logs[1])


TestFailover = FailoverMachine.TestCase
TestFailover.settings = settings(stateful_step_count=40)
