"""Which ``.producers`` files a log keeps, and a start after a crash from those that are left."""

from __future__ import annotations

import pytest

from cluster.log import recovery
from cluster.log.config import LogConfig
from cluster.log.manager import LogManager
from cluster.log.partition_log import PartitionLog
from cluster.log.snapshots import HISTORIES, REMOVALS, superseded_histories
from tests.cluster.log.builders import DIRECTORY, NOW_MS, Bench, append, bench, produce

#: Two batches each.
SMALL = LogConfig(segment_bytes=150)


@pytest.fixture
def on() -> Bench:
    return bench()


def manager(on: Bench) -> LogManager:
    made = LogManager("data", on.storage, on.clock, SMALL)
    made.load()
    return made


def fill(log: PartitionLog, first: int, batches: int) -> None:
    for sequence in range(first, first + batches):
        produce(log, sequence, timestamp=NOW_MS + sequence)


def offsets_of(on: Bench, suffix: str) -> list[int]:
    return sorted(int(name[:20]) for name in on.storage.listdir(DIRECTORY) if name.endswith(suffix))


@pytest.mark.parametrize(
    ("offsets", "bases", "recovery_point", "gone"),
    [
        (range(10, 90, 10), range(0, 90, 10), 1000, []),  # eight are always kept
        (range(10, 130, 10), range(0, 130, 10), 1000, [10, 20, 30, 40]),
        (range(10, 130, 10), range(0, 130, 10), 50, [10, 20, 30, 40]),
        (range(10, 130, 10), range(0, 130, 10), 49, [10, 20, 30]),
        (range(10, 130, 10), range(0, 130, 10), 20, [10]),
        (range(10, 130, 10), range(0, 130, 10), 10, []),
        (range(10, 130, 10), range(0, 130, 10), 9, []),  # a start would read all batches, so nothing is superseded
        (range(10, 130, 10), [0, 10, 60, *range(70, 130, 10)], 55, []),  # at 50 there is no segment anymore
        (range(10, 130, 10), [0, 20, 60, *range(70, 130, 10)], 55, [10]),
        (range(10, 130, 10), [0], 1000, []),
        ([], [0], 1000, []),
    ],
)
def test_which_histories_are_superseded(offsets, bases, recovery_point, gone):
    """What a start would take stays, with all above it, and so do the newest eight."""
    assert superseded_histories(offsets, list(bases), recovery_point) == gone


def test_histories_do_not_accumulate(on):
    """Their number is bounded, however many segments there are; Kafka's snapshots stay, one for each segment."""
    made = manager(on)
    log = made.get_or_create("t", 0, None, SMALL)
    for rolls in range(60):
        fill(log, 2 * rolls, 2)
        log.flush()
        made.checkpoint_recovery_points()
        assert len(offsets_of(on, ".producers")) <= HISTORIES
    assert offsets_of(on, ".snapshot") == log.segment_base_offsets[1:]
    assert offsets_of(on, ".producers")[-HISTORIES:] == log.segment_base_offsets[-HISTORIES:]


def test_none_goes_above_the_checkpointed_recovery_point(on):
    """Synced is not enough: a start knows what the checkpoint says. What is left over then goes little by little."""
    made = manager(on)
    log = made.get_or_create("t", 0, None, SMALL)
    fill(log, 0, 60)
    log.flush()
    assert offsets_of(on, ".producers") == log.segment_base_offsets[1:] == list(range(2, 60, 2))
    made.checkpoint_recovery_points()
    fill(log, 60, 1)
    assert offsets_of(on, ".producers") == list(range(2 + 2 * REMOVALS, 62, 2))


def test_a_start_removes_what_was_left(on):
    """A data directory may have one for each of its segments."""
    made = manager(on)
    log = made.get_or_create("t", 0, None, SMALL)
    fill(log, 0, 60)
    log.flush()
    made.checkpoint_recovery_points()
    manager(on)
    # One more at the log's end, which an unclean start writes.
    assert offsets_of(on, ".producers") == [*range(60 - 2 * HISTORIES, 60, 2), 60]


@pytest.mark.parametrize("damaged", range(HISTORIES + 1))
def test_a_start_from_what_is_left(on, monkeypatch, damaged):
    """With the newest damaged, a start begins at the one before it; with all damaged it reads every batch. Each time it
    knows all producers, with their last five batches, also one that wrote in the first segment alone."""
    made = manager(on)
    log = made.get_or_create("t", 0, None, SMALL)
    append(log, producer_id=9, producer_epoch=0, base_sequence=0)
    for sequence in range(59):
        produce(log, sequence, timestamp=NOW_MS + sequence)
        log.flush()
        made.checkpoint_recovery_points()
    expected = sorted(log.producers)
    assert [entry.producer_id for entry in expected] == [7, 9]
    bases, kept = log.segment_base_offsets, offsets_of(on, ".producers")
    assert len(kept) == HISTORIES and len(bases) == 30
    for offset in kept[HISTORIES - damaged :]:
        path = f"{DIRECTORY}/{offset:020d}.producers"
        data = bytearray(on.storage.read(path))
        data[len(data) // 2] ^= 1
        on.storage.open(path).pwrite(bytes(data), 0)
    walked: list[int] = []
    real = recovery.walk

    def walk(segment, *args, **kwargs):
        walked.append(segment.base_offset)
        return real(segment, *args, **kwargs)

    monkeypatch.setattr(recovery, "walk", walk)
    again = manager(on).get("t", 0)
    assert again is not None
    assert sorted(again.producers) == expected
    begun = kept[-1 - damaged] if damaged < HISTORIES else 0
    assert walked == [base for base in bases if base >= begun]
    for sequence in range(54, 59):
        assert produce(again, sequence, timestamp=NOW_MS + sequence).duplicate
    assert append(again, producer_id=9, producer_epoch=0, base_sequence=0).duplicate
    assert not produce(again, 59).duplicate


def test_a_cut_below_what_was_kept(on):
    """All that is kept speaks of records that are no more, so a start reads every batch, and knows as much."""
    made = manager(on)
    log = made.get_or_create("t", 0, None, SMALL)
    for rolls in range(30):
        fill(log, 2 * rolls, 2)
        log.flush()
        made.checkpoint_recovery_points()
    log.truncate_to(5)
    assert offsets_of(on, ".producers") == []
    produce(log, 5, timestamp=NOW_MS + 5)
    expected = sorted(log.producers)
    again = manager(on).get("t", 0)
    assert again is not None and again.log_end_offset == 6
    assert sorted(again.producers) == expected
