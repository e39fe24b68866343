"""FollowerLog: what it does with the batches of its leader. The decisions alone are tested with ``replication``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cluster.broker.metrics import Counters
from cluster.broker.replicas.follower_log import TRUNCATED, FollowerLog
from cluster.broker.replicas.replica_manager import RESENT, ReplicaManager
from cluster.broker.rules import Rules
from cluster.log.errors import LogError, StorageFailed, UnexpectedOffset
from cluster.log.partition_log import PartitionLog
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchResult
from cluster.replication.follower import Reaction
from tests.cluster.log.builders import bench, make_batch, open_log, read_all, replicated

EPOCH = 3
#: The leader's log start and high watermark.
START, WATERMARK = 5, 19


def follower(start: int, told: list[tuple[str, dict[str, Any]]] | None = None) -> tuple[FollowerLog, PartitionLog]:
    """One that has begun where its leader's log begins. ``told``: its journal."""
    log = open_log(bench())
    journal = [] if told is None else told
    found = FollowerLog(("t", 0), log, 0, Counters(), Rules(), lambda *line: journal.append(line))
    found.begin()
    found.restart(start)
    return found, log


def apply(found: FollowerLog, log: PartitionLog, *batches: bytearray) -> Reaction:
    result = FetchResult("t", 0, ErrorCode.NONE, WATERMARK, WATERMARK, START, replicated(*batches))
    return found.apply(found.position(EPOCH), EPOCH, result)


def test_an_empty_log_takes_the_batch_that_its_leader_s_start_lies_in() -> None:
    """It is stored whole with what follows; the log begins where the leader's does, and its epoch with it."""
    found, log = follower(START)
    batches = [make_batch(20, base_offset=0, leader_epoch=1), make_batch(2, base_offset=20, leader_epoch=2)]
    assert apply(found, log, *batches) is Reaction.APPEND
    assert (log.log_start_offset, log.log_end_offset, log.segment_base_offsets) == (START, 22, [0])
    assert read_all(log) == b"".join(batches)
    assert log.epochs.entries == ((1, START), (2, 20))
    assert found.high_watermark == WATERMARK


def test_a_log_with_records_takes_no_batch_that_begins_below_its_end() -> None:
    """What it has may not be wiped for a leader that sends what does not continue it."""
    found, log = follower(START)
    apply(found, log, make_batch(2, base_offset=5, leader_epoch=1))
    with pytest.raises(UnexpectedOffset, match="sent offset 6 where 7 is due"):
        apply(found, log, make_batch(9, base_offset=6, leader_epoch=1))
    assert (log.log_start_offset, log.log_end_offset) == (START, 7)


def test_an_empty_log_refuses_a_batch_that_ends_before_its_end() -> None:
    """Only a batch that spans its end is the one that the leader's log begins in."""
    found, log = follower(START)
    with pytest.raises(UnexpectedOffset, match="sent offset 0 where 5 is due"):
        apply(found, log, make_batch(5, base_offset=0, leader_epoch=1))
    assert (log.log_start_offset, log.log_end_offset, found.high_watermark) == (START, START, START)


def test_a_new_replica_takes_what_is_left_of_a_log_that_was_compacted() -> None:
    """Although the policy is ``delete`` by now: what was removed is in no log, and it would never be in sync."""
    found, log = follower(START)
    batches = [make_batch(4, base_offset=6, leader_epoch=1), make_batch(2, base_offset=17, leader_epoch=2)]
    assert apply(found, log, *batches) is Reaction.APPEND
    assert (log.log_start_offset, log.log_end_offset, found.high_watermark) == (START, 19, WATERMARK)
    assert read_all(log) == b"".join(batches)


def test_the_second_batch_makes_no_log_start_over() -> None:
    """The first one continues the log, so a second one below it is wrong, however far it reaches."""
    found, log = follower(START)
    with pytest.raises(UnexpectedOffset, match="sent offset 3 where 7 is due"):
        apply(found, log, make_batch(2, base_offset=5, leader_epoch=1), make_batch(9, base_offset=3, leader_epoch=1))
    assert (log.log_start_offset, log.log_end_offset) == (START, START)


def test_a_damaged_batch_makes_no_log_start_over() -> None:
    """Its offsets are worth nothing: they are looked at after its checksum."""
    found, log = follower(START)
    damaged = make_batch(20, base_offset=0, leader_epoch=1)
    damaged[-1] ^= 1
    with pytest.raises(LogError, match="CORRUPT_MESSAGE"):
        apply(found, log, damaged)
    assert (log.log_start_offset, log.log_end_offset) == (START, START)


def test_what_fails_after_the_new_beginning_leaves_nothing_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is empty then and says so: its next fetch is out of range, and it starts again at the leader's start."""
    found, log = follower(START)
    append = log.append_as_follower

    def fail(records: memoryview) -> object:
        if log.log_end_offset == 0:
            raise StorageFailed("no space is left")
        return append(records)

    monkeypatch.setattr(log, "append_as_follower", fail)
    with pytest.raises(StorageFailed):
        apply(found, log, make_batch(20, base_offset=0, leader_epoch=1))
    assert (log.log_start_offset, log.log_end_offset, found.high_watermark) == (0, 0, 0)


def test_a_start_that_cannot_be_written_does_not_pass_the_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader's start moved with its watermark, and our disk fails between the two."""
    found, log = follower(0)
    move = log.advance_log_start_offset

    def fail(offset: int) -> None:
        move(offset)
        raise StorageFailed("no space left")

    monkeypatch.setattr(log, "advance_log_start_offset", fail)
    with pytest.raises(StorageFailed):
        apply(found, log, make_batch(20, base_offset=0, leader_epoch=1))
    assert log.log_start_offset == START <= found.high_watermark == WATERMARK


def test_a_log_is_cut_below_its_own_start() -> None:
    """The leader may end there: it was elected uncleanly, or began on a new disk. What it has, we lack."""
    found, log = follower(15)
    apply(found, log, make_batch(10, base_offset=15, leader_epoch=1))
    found.cut(5)
    assert (log.log_start_offset, log.log_end_offset, found.high_watermark) == (5, 5, 5)
    assert found.request(EPOCH, 1000).fetch_offset == 5
    assert log.epochs.entries == ()


def test_a_blank_log_begins_where_its_leader_s_does() -> None:
    """It may have been left at another leader's start: what this one has below that is not passed over."""
    found, log = follower(48)
    assert apply(found, log, make_batch(3, base_offset=48, leader_epoch=EPOCH)) is Reaction.APPEND
    assert (log.log_start_offset, log.log_end_offset, found.high_watermark) == (START, START, START)
    assert apply(found, log, make_batch(3, base_offset=START, leader_epoch=EPOCH)) is Reaction.APPEND
    assert (log.log_start_offset, log.log_end_offset) == (START, START + 3)


def diverging(epoch: int, end_offset: int) -> FetchResult:
    """The leader's answer that its history of this epoch ends there."""
    return FetchResult("t", 0, ErrorCode.NONE, -1, -1, -1, diverging=(epoch, end_offset))


def test_a_log_that_is_cut_down_to_its_start_keeps_its_place() -> None:
    """Retention has deleted what is committed, the rest diverges. Nothing is left, and it is in the ISR: if it began
    again at its leader's start, which is lower, the watermark would stand above its end."""
    found, log = follower(START)
    apply(found, log, make_batch(2, base_offset=5, leader_epoch=1), make_batch(3, base_offset=7, leader_epoch=1))
    log.advance_log_start_offset(7)
    found.high_watermark = 7
    sent = found.position(EPOCH)
    assert found.apply(sent, EPOCH, diverging(1, 7)) is Reaction.TRUNCATE
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (7, 7, ((1, 7),))
    assert found.apply(found.position(EPOCH), EPOCH, diverging(0, 9)) is Reaction.TRUNCATE
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (7, 7, ((0, 7),))
    assert apply(found, log) is Reaction.APPEND
    assert (log.log_start_offset, log.log_end_offset, found.position(EPOCH).last_fetched_epoch) == (7, 7, 0)


def test_a_log_that_is_cut_below_its_start_has_no_place() -> None:
    """What its leader has down there, it lacks: it begins again where its leader's log begins."""
    found, log = follower(START)
    apply(found, log, make_batch(2, base_offset=5, leader_epoch=1), make_batch(9, base_offset=7, leader_epoch=1))
    log.advance_log_start_offset(12)
    assert found.apply(found.position(EPOCH), EPOCH, diverging(1, 9)) is Reaction.TRUNCATE
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (7, 7, ())
    assert apply(found, log) is Reaction.APPEND
    assert (log.log_start_offset, log.log_end_offset) == (START, START)


def test_the_journal_tells_of_each_cut_before_it_is_made() -> None:
    """From where, where the log ended, and why; a broker that dies on the way has told what it was about to do."""
    told: list[tuple[str, dict[str, Any]]] = []
    found, log = follower(START, told)
    apply(found, log, make_batch(5, base_offset=START, leader_epoch=1), make_batch(5, base_offset=10, leader_epoch=1))
    told.clear()
    found.cut(10)
    found.cut(10)
    found.restart(40)
    place = {"topic": "t", "partition": 0}
    assert told == [
        (TRUNCATED, {**place, "offset": 10, "log_end_offset": 15, "cause": "leader ends before"}),
        (TRUNCATED, {**place, "offset": START, "log_end_offset": 10, "cause": "leader begins later"}),
    ]


def test_batches_that_came_again_are_counted_in_the_journal() -> None:
    """Since the line before, and only if there were any: a process that dies takes its counters along."""
    told: list[tuple[str, dict[str, Any]]] = []
    counters = Counters()
    broker: Any = SimpleNamespace(counters=counters, journal=lambda *line: told.append(line), _told_resends=(0, 0))
    for retries, duplicates in ((0, 0), (3, 1), (3, 1), (4, 1)):
        counters.produce_retries, counters.produce_duplicates = retries, duplicates
        ReplicaManager._tell_resends(broker)
    assert told == [(RESENT, {"retries": 3, "duplicates": 1}), (RESENT, {"retries": 1, "duplicates": 0})]
