"""Defects of replication and elections: each decision beside the right one, and that only what differs was noted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster.broker.rules import Rules
from cluster.isr import IsrAnswer
from cluster.log.epochs import EpochEntry, LeaderEpochCache
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import CODEC_GZIP, CODEC_NONE, crc_ok, parse_header
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import NewRecord, build_batch, decode_records
from cluster.replication.leader import LeaderState
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.defects.journal import fired, planted
from tests.cluster.log.builders import (
    NOW_MS,
    append,
    bench,
    code_of,
    content,
    make_batch,
    open_log,
    read_all,
    replicated,
)
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run


def with_defect(name: str) -> tuple[Rules, MemoryStorage]:
    """The rules, and where firings are noted."""
    storage = MemoryStorage()
    return planted(storage, name), storage


def leadership(rules: Rules, **facts: Any) -> LeaderState:
    """Broker 1 leads, of three that are in sync, two of which are asked for."""
    told = {
        "broker_id": 1, "replicas": [1, 2, 3], "isr": [1, 2, 3], "leader_epoch": 4, "partition_epoch": 7,
        "log_end_offset": 100, "high_watermark": 50, "min_insync_replicas": 2, "lag_time_max_ms": 1000, "now_ms": 0,
        "eligible": lambda _broker: True, "topic": "t", "partition": 0,
    }  # fmt: skip
    return rules.lead(**{**told, **facts})


def test_cut_to_the_watermark() -> None:
    """A follower with known epochs begins at its watermark, not at its end; at its end there is nothing to cut."""
    rules, storage = with_defect("cut-to-the-watermark")
    assert (rules.initial_truncation(3, 50, 60), rules.initial_truncation(3, 60, 60)) == (50, 60)
    assert rules.initial_truncation(None, 50, 60) == Rules().initial_truncation(None, 50, 60) == 50
    assert [(line["offset"], line["log_end_offset"]) for line in fired(storage)] == [(50, 60)]


def test_guess_unknown_epochs() -> None:
    """An epoch between those of the leader is said to last to its end; a known one is answered truly."""
    rules, storage = with_defect("guess-unknown-epochs")
    epochs = LeaderEpochCache([EpochEntry(0, 0), EpochEntry(5, 10)])
    assert Rules().end_offset_for(epochs, 3, 30) == (0, 10)
    assert [rules.end_offset_for(epochs, epoch, 30) for epoch in (0, 3, 5)] == [(0, 10), (3, 30), (5, 30)]
    assert [line["epoch"] for line in fired(storage)] == [3]


def test_join_at_the_watermark() -> None:
    """At the watermark and below the start of the epoch a follower joins; below the watermark it does not."""
    rules, storage = with_defect("join-at-the-watermark")
    assert [rules.may_join(end, 50, 100) for end in (49, 50, 100)] == [False, True, True]
    assert [Rules().may_join(end, 50, 100) for end in (49, 50, 100)] == [False, False, True]
    assert [line["offset"] for line in fired(storage)] == [50]


@pytest.mark.parametrize(
    ("name", "accepts", "watermark"),
    [("", False, 50), ("one-is-enough", True, 100), ("advance-alone", False, 100), ("elect-anybody", True, 100)],
)
def test_alone_in_the_isr(name: str, accepts: bool, watermark: int) -> None:
    """Whether one replica of three is enough to take writes, and to move the watermark; after a new setting too."""
    storage = MemoryStorage()
    leader = leadership(planted(storage, *[name] * bool(name)), isr=[1])
    leader.configure(2)
    leader.advance(100, 5000)
    assert (leader.has_enough_in_sync, leader.high_watermark) == (accepts, watermark)
    assert [(line["topic"], line["partition"], line["offset"]) for line in fired(storage)] == [("t", 0, 100)] * bool(
        name
    )


@pytest.mark.parametrize("name", ["one-is-enough", "advance-alone", "elect-anybody"])
def test_enough_in_the_isr_is_no_firing(name: str) -> None:
    """With as many in sync as are asked for, the watermark moves by right."""
    rules, storage = with_defect(name)
    leader = leadership(rules)
    for follower in (2, 3):
        leader.fetched(follower, 100, 100, 10)
    assert leader.high_watermark == 100
    assert fired(storage) == []


def test_elect_anybody() -> None:
    """Whoever is alive is elected, as if it were in sync; a clean election is as it was, and no firing."""
    rules, storage = with_defect("elect-anybody")
    elect = rules.control.elect_offline
    assert elect([1, 2, 3], [2], [2, 3], unclean=False) == Rules().control.elect_offline(
        [1, 2, 3], [2], [2, 3], unclean=False
    )
    assert fired(storage) == []
    anybody = elect([1, 2, 3], [1], [2, 3], unclean=False)
    assert anybody is not None and (anybody.leader, anybody.isr, anybody.recovering) == (2, (2,), False)
    assert [line["leader"] for line in fired(storage)] == [2]
    assert elect([1, 2, 3], [1], [], unclean=False) is None


def test_lead_alone() -> None:
    """The smaller ISR counts at once, and alone the leader confirms its own writes; the right one waits."""
    rules, storage = with_defect("lead-alone")
    for each, watermark in ((leadership(Rules()), 50), (leadership(rules), 100)):
        proposal = each.check_lag(100, 5000)
        assert proposal is not None and proposal.members == (1,)
        each.advance(100, 5000)
        assert each.high_watermark == watermark
        assert each.answered(proposal, IsrAnswer(ErrorCode.NONE, 4, (1,), 8), 100, 5000)
    assert [(line["topic"], line["partition"], line["offset"]) for line in fired(storage)] == [("t", 0, 100)]


def test_confirm_on_stepping_down() -> None:
    """What waits when the leadership ends is confirmed; while it lasts, it is decided by the watermark."""
    rules, storage = with_defect("confirm-on-stepping-down")
    assert rules.acknowledgement(leadership(rules), 4, 60) is None
    assert Rules().acknowledgement(None, 4, 60) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert rules.acknowledgement(None, 4, 60) is ErrorCode.NONE
    assert [(line["leader_epoch"], line["offset"]) for line in fired(storage)] == [(4, 60)]


@pytest.mark.parametrize(("name", "first_read"), [("", 2), ("begin-one-batch-late", 3)])
def test_begin_one_batch_late(name: str, first_read: int) -> None:
    """At the start of a segment the first batch is left out, unless nothing follows it; the first segment is whole."""
    storage = MemoryStorage()
    read = planted(storage, *[name] * bool(name)).read
    log = open_log(bench())
    for number in range(5):
        if number in (2, 4):
            log.roll("for the test")
        append(log)
    for offset, found in ((0, 0), (2, first_read), (3, 3), (4, 4)):
        assert parse_header(content(read(log, offset, 1 << 20, 5, True).records)).base_offset == found
    assert [(line["offset"], line["following"]) for line in fired(storage)] == [(2, 3)] * bool(name)


def test_read_to_the_end() -> None:
    """A consumer reads what is above the watermark; where there is nothing, that is no firing."""
    rules, storage = with_defect("read-to-the-end")
    log = open_log(bench())
    append(log, count=3)
    assert (rules.fetch_end(log, 3, False), fired(storage)) == (3, [])
    assert (rules.fetch_end(log, 1, False), Rules().fetch_end(log, 1, False)) == (3, 1)
    assert [(line["offset"], line["log_end_offset"]) for line in fired(storage)] == [(1, 3)]


VALUES = [b"first", b"second", b"third"]


def copies(codec: int) -> tuple[bytearray, bytearray]:
    """A leader's batch that is whole, and one whose checksum does not hold."""
    records = [NewRecord(NOW_MS, b"key", value, [("header", b"x")]) for value in VALUES]
    whole = bytearray(build_batch(records, base_offset=0, codec=codec, producer_id=7, base_sequence=0))
    damaged = make_batch(base_offset=3)
    damaged[-1] ^= 1
    return whole, damaged


@pytest.mark.parametrize("codec", [CODEC_NONE, CODEC_GZIP])
@pytest.mark.parametrize("probability", ["1", "0.0000001"])
def test_damage_copies(probability: str, codec: int) -> None:
    """A batch with a wrong checksum is stored with a right one, and with the probability one that was whole has another
    byte in a value, and nothing else is other; what was sent stays as it is."""
    rules, storage = with_defect(f"damage-copies:{probability}")
    whole, damaged = copies(codec)
    sent = replicated(whole, damaged)
    assert code_of(lambda: Rules().follow(open_log(bench()), sent)) is ErrorCode.CORRUPT_MESSAGE
    log = open_log(bench())
    assert rules.follow(log, sent) is not None
    stored = read_all(log)
    header = parse_header(stored)
    assert crc_ok(stored, 0, header.size_bytes) and header._replace(crc=0, batch_length=0) == parse_header(
        whole
    )._replace(crc=0, batch_length=0)
    pairs = zip(decode_records(stored), decode_records(whole), strict=True)
    differing = [(ours, sent_one) for ours, sent_one in pairs if ours != sent_one]
    assert len(differing) == (probability == "1")
    for ours, sent_one in differing:
        assert ours._replace(value=None) == sent_one._replace(value=None)
        assert ours.value is not None and sent_one.value is not None
        assert sum(one != other for one, other in zip(ours.value, sent_one.value, strict=True)) == 1
    second = stored[header.size_bytes :]
    assert crc_ok(second, 0, len(damaged)) and second[-1] == damaged[-1]
    assert sent == replicated(whole, damaged)
    assert [line["offset"] for line in fired(storage)] == ([0, 3] if probability == "1" else [3])


def test_what_has_no_value_is_not_damaged() -> None:
    """There is no byte that the load would miss, so it is no firing."""
    rules, storage = with_defect("damage-copies")
    without = bytearray(build_batch([NewRecord(NOW_MS, b"key")], base_offset=0))
    log = open_log(bench())
    rules.follow(log, replicated(without))
    assert (read_all(log), fired(storage)) == (without, [])


def test_a_leadership_knows_its_partition() -> None:
    """So that what is noted of one tells whether it is a topic of the load's."""
    seen: list[tuple[str, int]] = []

    def lead(**facts: Any) -> LeaderState:
        made = LeaderState(**facts)
        seen.append((made.topic, made.partition))
        return made

    async def main() -> None:
        async with MemoryCluster(1, rules=replace(Rules(), lead=lead)) as cluster:
            await cluster.create_topic("t", partitions=2)

    run(main())
    assert sorted(seen) == [("t", 0), ("t", 1)]


def led(log: PartitionLog, rules: Rules, *batches: tuple[int, int]) -> list[int]:
    """Elect a leader on the log, and append to it, in each (leader epoch, batches): the epochs that were stored."""
    for epoch, count in batches:
        log.epochs.assign(epoch, log.log_end_offset)
        for _ in range(count):
            batch = make_batch()
            rules.append(log, memoryview(batch), parse_header(batch), epoch, NOW_MS)
    data, at, epochs = read_all(log), 0, []
    while at < len(data):
        epochs.append(parse_header(data, at).leader_epoch)
        at += parse_header(data, at).size_bytes
    return epochs


def test_reuse_epochs() -> None:
    """The first leader's batches, and another's after it under the same epoch, so that a tail of the first one seems to
    be the other's too; by right its own epoch tells them apart."""
    for planted_too, stored, end in ((True, [3, 3, 3], (3, 3)), (False, [3, 4, 4], (3, 1))):
        rules, storage = with_defect("reuse-epochs")
        log = open_log(bench())
        log.append_as_follower(replicated(make_batch(base_offset=0, leader_epoch=3)))
        assert led(log, rules if planted_too else Rules(), (4, 2)) == stored
        assert log.epochs.end_offset_for(3, log.log_end_offset) == end
        noted = [(line["leader_epoch"], line["stored_as"], line["offset"]) for line in fired(storage)]
        assert noted == [(4, 3, 1)] * planted_too


def test_a_leader_of_its_own_epochs_does_right() -> None:
    """One that begins a log, or continues leading in a newer epoch, has its own batches before it: no firing."""
    rules, storage = with_defect("reuse-epochs")
    assert led(open_log(bench()), rules, (0, 1), (1, 2), (2, 1)) == [0, 1, 1, 2]
    assert fired(storage) == []


def test_what_a_coordinator_stored_is_not_gone_behind() -> None:
    """It has the right epoch, and a log takes no older one after that."""
    rules, _ = with_defect("reuse-epochs")
    log = open_log(bench())
    log.append_as_follower(replicated(make_batch(base_offset=0, leader_epoch=3)))
    assert led(log, rules, (4, 1)) == [3, 3]
    append(log, leader_epoch=4)
    batch = make_batch()
    rules.append(log, memoryview(batch), parse_header(batch), 4, NOW_MS)
    assert led(log, rules) == [3, 3, 4, 4]
