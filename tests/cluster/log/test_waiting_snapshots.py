"""Snapshots that a roll puts off: none is lost that a start needs, and none comes back that a cut has removed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.log.waiting_snapshots import WAITING
from tests.cluster.log.builders import DIRECTORY, Bench, append, bench, open_log, produce, putting_off

#: Two batches each.
SMALL = LogConfig(segment_bytes=150)


@pytest.fixture
def on() -> Bench:
    return bench()


def filled(on: Bench, batches: int) -> PartitionLog:
    log = open_log(on, SMALL, owner=putting_off())
    for sequence in range(batches):
        produce(log, sequence)
    return log


def names(on: Bench) -> list[str]:
    """The files of producers, without leading zeros."""
    wanted = (".snapshot", ".producers", ".tmp")
    return sorted(name.lstrip("0") for name in on.storage.listdir(DIRECTORY) if name.endswith(wanted))


def write_one(log: PartitionLog) -> None:
    pending = log.begin_snapshot()
    assert pending is not None
    pending.run()
    log.finish_snapshot(pending)


def test_a_roll_writes_none(on):
    """They wait, the oldest first, and are the same as if the roll had written them."""
    log = filled(on, 8)
    assert log.segment_base_offsets == [0, 2, 4, 6]
    assert names(on) == []
    while log.snapshots_wait:
        write_one(log)
    assert log.begin_snapshot() is None
    at_once = bench()
    other = open_log(at_once, SMALL)
    for sequence in range(8):
        produce(other, sequence)
    assert names(on) == names(at_once) != []
    for base in (2, 4, 6):
        for kind in ("snapshot", "producers"):
            path = f"{DIRECTORY}/{base:020d}.{kind}"
            assert on.storage.read(path) == at_once.storage.read(path)


def test_a_clean_stop_writes_what_waits(on):
    """And finds nothing that was left half done."""
    log = filled(on, 5)
    pending = log.begin_snapshot()
    assert pending is not None
    pending.run()
    log.close(clean=True)
    again = open_log(on, SMALL, clean=True)
    wanted = [f"{base}.{kind}" for base in (2, 4, 5) for kind in ("producers", "snapshot")]
    assert names(on) == wanted
    assert list(again.producers) == list(log.producers)


@pytest.mark.parametrize("offset", [3, 0])
def test_what_was_cut_does_not_come_back(on, offset):
    """Another thread wrote it while the log was cut, and had it been one of the log's files, it would be again."""
    log = filled(on, 4)
    write_one(log)
    produce(log, 4)
    pending = log.begin_snapshot()
    assert pending is not None
    log.truncate_to(offset)
    pending.run()
    log.finish_snapshot(pending)
    assert names(on) == (["2.producers", "2.snapshot"] if offset else [])
    assert not log.snapshots_wait
    for sequence in range(log.log_end_offset, 5):
        produce(log, sequence, leader_epoch=1)
    while log.snapshots_wait:
        write_one(log)
    assert [name for name in names(on) if "4" in name] == ["4.producers", "4.snapshot"]
    assert list(open_log(on, SMALL).producers) == list(log.producers)


def test_a_segment_becomes_the_first_once_its_snapshot_is_there(on):
    """A producer that has no batch left is known after a crash too."""
    log = open_log(on, SMALL, owner=putting_off())
    append(log, producer_id=9, producer_epoch=0, base_sequence=0)
    for sequence in range(5):
        produce(log, sequence)
    assert log.segment_base_offsets == [0, 2, 4]
    log.advance_log_start_offset(5)
    assert log.segment_base_offsets == [0, 2, 4]
    write_one(log)
    assert log.segment_base_offsets == [2, 4]
    write_one(log)
    assert log.segment_base_offsets == [4]
    assert names(on) == ["4.producers", "4.snapshot"]
    assert {entry.producer_id for entry in open_log(on, SMALL, log_start_offset=5).producers} == {7, 9}


def test_a_log_that_rolls_too_fast_leaves_the_oldest_out(on):
    """No more wait than marks are held. The segment of one that is left out is not the first of its log."""
    log = filled(on, 2 * WAITING + 6)
    bases = log.segment_base_offsets
    while log.snapshots_wait:
        write_one(log)
    assert len(names(on)) == 2 * WAITING
    log.advance_log_start_offset(bases[2] + 1)
    assert log.segment_base_offsets == bases
    log.advance_log_start_offset(bases[3])
    assert log.segment_base_offsets == bases[3:]


def test_a_snapshot_that_cannot_be_written_is_done_without(on, caplog):
    """As at a roll that writes it itself: the log has all that it would say."""
    log = filled(on, 3)
    pending = log.begin_snapshot()
    assert pending is not None
    log.finish_snapshot(pending, OSError(28, "No space left"))
    assert "cannot write the snapshot at 2" in caplog.text
    assert not log.snapshots_wait
    log.advance_log_start_offset(2)
    assert log.segment_base_offsets == [2]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.integers(1, 4)),
        st.tuples(st.just("produce"), st.integers(1, 4)),
        st.tuples(st.sampled_from(["truncate", "advance"]), st.integers(0, 8)),
        st.tuples(st.sampled_from(["begin", "finish", "flush"]), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_a_crash_leaves_the_same_producers(steps):
    """As if each roll had written its snapshot. A log that still has more batches may know more of their past."""
    benches = (bench(), bench())
    later = open_log(benches[0], SMALL, owner=putting_off())
    at_once = open_log(benches[1], SMALL)
    logs = (later, at_once)
    pending = None
    for step, number in steps:
        if step == "begin" and pending is None and (pending := later.begin_snapshot()) is not None:
            pending.run()
        elif step == "finish" and pending is not None:
            later.finish_snapshot(pending)
            pending = None
        for log in logs:
            end = log.log_end_offset
            if step == "produce":
                entry = log.producers.get(number)
                sequence = entry.batches[-1].last_sequence + 1 if entry is not None and entry.batches else 0
                append(log, producer_id=number, producer_epoch=0, base_sequence=sequence)
            elif step == "truncate":
                log.truncate_to(max(log.log_start_offset, end - number))
            elif step == "advance":
                log.advance_log_start_offset(max(log.log_start_offset, end - number))
            elif step == "flush":
                log.flush()
    start, recovery_point = at_once.log_start_offset, at_once.recovery_point
    opened = [open_log(on, SMALL, recovery_point=recovery_point, log_start_offset=start) for on in benches]
    mine, others = ({entry.producer_id: entry for entry in log.producers} for log in opened)
    assert mine.keys() == others.keys()
    for producer_id, entry in mine.items():
        other = others[producer_id]
        assert entry.batches[-1:] == other.batches[-1:]
        assert len(entry.batches) >= len(other.batches) or not other.complete
