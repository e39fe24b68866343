"""Appends as a follower, case by case: offsets, epochs, holes, and where segments begin."""

from __future__ import annotations

from random import Random

import pytest

from cluster.log import invariants
from cluster.log import segment as segment_module
from cluster.log.config import LogConfig
from cluster.log.errors import UnexpectedOffset
from cluster.log.manager import LogManager
from cluster.protocol.errors import ErrorCode
from tests.cluster.log.builders import (
    NOW_MS,
    Bench,
    append,
    bench,
    code_of,
    content,
    make_batch,
    open_log,
    read_all,
    replicated,
)


@pytest.fixture
def on() -> Bench:
    return bench()


def test_a_follower_keeps_offsets_and_epochs(on):
    """Batches are stored as they came; epochs and producers follow."""
    log = open_log(on)
    data = replicated(
        make_batch(2, base_offset=0, leader_epoch=3, producer_id=7, producer_epoch=0, base_sequence=0),
        make_batch(1, base_offset=2, leader_epoch=5, producer_id=7, producer_epoch=0, base_sequence=2),
    )
    info = log.append_as_follower(data)
    assert info is not None and (info.first_offset, info.last_offset) == (0, 2)
    assert read_all(log) == bytes(data)
    assert log.epochs.entries == ((3, 0), (5, 2))
    entry = log.producers.get(7)
    assert entry is not None and entry.last_sequence == 2
    assert log.append_as_follower(memoryview(data[:30])) is None
    assert log.append_as_follower(memoryview(b"")) is None


@pytest.mark.parametrize("base_offset", [0, 1])
def test_an_overlap_is_refused(on, base_offset):
    """No batch may begin below the log's end, nor below the end of the one before it; nothing is written otherwise."""
    log = open_log(on)
    append(log, count=2)
    with pytest.raises(UnexpectedOffset):
        log.append_as_follower(replicated(make_batch(base_offset=base_offset, leader_epoch=0)))
    for again in (base_offset, 2):
        both = replicated(make_batch(base_offset=2, leader_epoch=0), make_batch(base_offset=again, leader_epoch=0))
        with pytest.raises(UnexpectedOffset):
            log.append_as_follower(both)
    assert log.log_end_offset == 2


@pytest.mark.parametrize("base_offsets", [(3, 4), (2, 4), (4, 9)], ids=["before all", "between them", "both"])
def test_a_hole_is_taken_whatever_the_policy_is(on, base_offsets):
    """The leader compacted its log before the policy became ``delete``. The next start must know what is missing, also
    after a crash: else it takes the hole for a loss."""
    manager = LogManager("data", on.storage, on.clock, LogConfig())
    manager.load()
    log = manager.get_or_create("t", 0, None, LogConfig())
    append(log, count=2)
    assert log.holes_allowed is False
    log.append_as_follower(replicated(*(make_batch(base_offset=base, leader_epoch=0) for base in base_offsets)))
    assert log.log_end_offset == base_offsets[1] + 1
    assert content(log.read(3, 1, 100).records)[:8] == next(b for b in base_offsets if b >= 3).to_bytes(8, "big")
    expected = read_all(log)
    assert log.holes_allowed
    invariants.validate_whole(log)
    manager = LogManager("data", on.storage, on.clock, LogConfig())
    manager.load()
    again = manager.get("t", 0)
    assert again is not None and again.holes_allowed and read_all(again) == expected


def test_no_hole_is_taken_that_cannot_be_noted(on, monkeypatch):
    """The disk refuses the checkpoint: nothing was appended yet, and a start finds no hole it knows nothing of."""
    manager = LogManager("data", on.storage, on.clock, LogConfig())
    manager.load()
    log = manager.get_or_create("t", 0, None, LogConfig())
    append(log, count=2)

    def refuse(path: str, data: bytes) -> None:
        raise OSError(28, "no space is left")

    monkeypatch.setattr(on.storage, "write_atomic", refuse)
    batch = replicated(make_batch(base_offset=5, leader_epoch=0))
    assert code_of(lambda: log.append_as_follower(batch)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.log_end_offset, log.holes_allowed) == (2, False)
    monkeypatch.undo()
    log.append_as_follower(batch)
    assert (log.log_end_offset, log.holes_allowed) == (6, True)


def test_a_compacted_log_may_have_holes(on):
    """Compaction removes whole batches on the leader, so a later offset is legal there, an earlier one never."""
    log = open_log(on, LogConfig(cleanup_policy=("compact",)))
    log.append_as_follower(
        replicated(make_batch(2, base_offset=5, leader_epoch=0), make_batch(base_offset=9, leader_epoch=0))
    )
    assert log.log_end_offset == 10
    assert content(log.read(0, 100, 10).records)[:8] == (5).to_bytes(8, "big")
    assert content(log.read(8, 100, 10).records)[:8] == (9).to_bytes(8, "big")
    with pytest.raises(UnexpectedOffset):
        log.append_as_follower(replicated(make_batch(base_offset=8, leader_epoch=0)))
    assert open_log(on, LogConfig(cleanup_policy=("compact",))).log_end_offset == 10


def test_a_compacted_log_that_was_cut_into_a_hole_is_read_and_cut_there(on):
    """It ends above its last batch then, and nothing is between."""
    log = open_log(on, LogConfig(cleanup_policy=("compact",)))
    batches = [make_batch(2, leader_epoch=0), make_batch(2, base_offset=50, leader_epoch=0)]
    log.append_as_follower(replicated(*batches))
    log.truncate_to(30)
    assert log.log_end_offset == 30
    assert [log.read(offset, 100, 30).records for offset in (2, 20, 29, 30)] == [None] * 4
    log.truncate_to(20)
    assert log.log_end_offset == 20
    log.append_as_follower(replicated(make_batch(base_offset=25, leader_epoch=0)))
    assert content(log.read(20, 100, 26).records)[:8] == (25).to_bytes(8, "big")
    log.truncate_to(1)
    assert log.log_end_offset == 0


@pytest.mark.parametrize("recent", [1, 256])
def test_holes_are_cut_read_and_filled_as_a_list_would_be(on, recent, monkeypatch):
    """Whatever lies between batches: reads find the next one, cuts leave what ends below, appends go on from there."""
    monkeypatch.setattr(segment_module, "RECENT_BATCHES", recent)
    config = LogConfig(cleanup_policy=("compact",), segment_bytes=250, index_interval_bytes=0)
    for seed in range(60):
        random = Random(seed)
        log = open_log(on, config, directory=f"data/h-{seed}")
        held: list[tuple[int, int, bytes]] = []  # first offset, offset after the last, bytes
        end = 0
        for _ in range(25):
            if random.random() < 0.7:
                base_offset, count = end + random.choice((0, 0, 1, 20)), random.randint(1, 3)
                batch = make_batch(count, base_offset=base_offset, leader_epoch=0)
                log.append_as_follower(replicated(batch))
                end = base_offset + count
                held.append((base_offset, end, bytes(batch)))
            else:
                offset = random.randint(0, end)
                log.truncate_to(offset)
                within = [first for first, after, _ in held if after > offset]
                held = [batch for batch in held if batch[1] <= offset]
                end = min([offset, *within])
            assert log.log_end_offset == end
            for offset in (random.randint(0, end), end):
                found = next((data for _, after, data in held if after > offset), b"")
                assert content(log.read(offset, 1, end).records) == found


@pytest.mark.parametrize("has_a_batch", [False, True], ids=["an empty log", "after a batch"])
@pytest.mark.parametrize("clean", [False, True])
def test_a_batch_far_above_a_compacted_log_s_end_begins_a_segment_of_its_own(on, has_a_batch, clean):
    """No index entry could point at it in the segment that is there; the log is closed and opened all the same."""
    config = LogConfig(cleanup_policy=("compact",), index_interval_bytes=0)
    log = open_log(on, config)
    batches = [make_batch(2)] if has_a_batch else []
    batches += [
        make_batch(2, base_offset=2**31 + 7),
        make_batch(3, base_offset=2**33),
        make_batch(1, base_offset=2**40),
    ]
    log.append_as_follower(replicated(*batches))
    assert log.segment_base_offsets == [0, 2**31 + 7, 2**33, 2**40]
    assert read_all(log) == b"".join(batches)
    log.close(clean)
    again = open_log(on, config, clean=clean)
    assert (again.segment_base_offsets, again.log_end_offset) == ([0, 2**31 + 7, 2**33, 2**40], 2**40 + 1)
    assert read_all(again) == b"".join(batches)
    again.truncate_to(2**31 + 8)
    again.append_as_follower(replicated(make_batch(1, base_offset=2**34)))
    assert again.log_end_offset == 2**34 + 1


def test_a_damaged_batch_is_refused_with_all_that_came_with_it(on):
    """CORRUPT_MESSAGE for a checksum that does not hold or a header that cannot be; nothing is written."""
    log = open_log(on)
    good = make_batch(base_offset=0, leader_epoch=0)
    for at in (16, 22, 40, 62):
        bad = make_batch(base_offset=1, leader_epoch=0)
        bad[at] ^= 0x40
        assert code_of(lambda bad=bad: log.append_as_follower(replicated(good, bad))) == ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 0


def test_an_epoch_that_goes_back_is_refused(on):
    """No batch of an older epoch after one of a newer; an epoch in which nothing was written does not count."""
    log = open_log(on)
    log.append_as_follower(replicated(make_batch(base_offset=0, leader_epoch=4)))
    with pytest.raises(UnexpectedOffset):
        log.append_as_follower(replicated(make_batch(base_offset=1, leader_epoch=3)))
    log.epochs.assign(9, 1)
    log.append_as_follower(replicated(make_batch(base_offset=1, leader_epoch=5)))
    assert log.epochs.entries == ((4, 0), (5, 1))


def test_a_follower_rolls_where_its_leader_did(on):
    """Both decide by the same rules, so what the follower gets in one piece is cut at the same places."""
    config = LogConfig(segment_bytes=400, segment_ms=1000, index_interval_bytes=100)
    leader = open_log(on, config, directory="data/leader")
    for number in range(30):
        append(leader, count=2, timestamp=NOW_MS + number * 300, payload=bytes(number * 5))
    follower = open_log(on, config, directory="data/follower")
    follower.append_as_follower(memoryview(bytearray(read_all(leader))))
    assert follower.segment_base_offsets == leader.segment_base_offsets
    assert len(leader.segment_base_offsets) > 5
    for log in (leader, follower):
        log.close(clean=True)
    for name in on.storage.listdir("data/leader"):
        assert on.storage.read(f"data/follower/{name}") == on.storage.read(f"data/leader/{name}"), name
