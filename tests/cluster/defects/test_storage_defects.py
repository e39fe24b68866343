"""Defects of what a crash leaves: what the right start makes of it beside the wrong one, and that it was noted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.broker.main import BrokerSpec, _planted
from cluster.broker.rules import Rules
from cluster.defects import parse, with_storage_defects
from cluster.defects.firings import Firings
from cluster.defects.keep_zeros import PREALLOCATED_BYTES
from cluster.defects.lose_unsynced import SYNCED_FILE
from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import crc_ok, parse_header
from cluster.protocol.errors import CorruptBatch
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.randomness import derive
from cluster.seams.storage import Storage
from tests.cluster.defects.journal import fired, planted
from tests.cluster.log.builders import NOW_MS, append, bench, make_batch, read_all, replicated

AFTER_CRASH = ("forget-epochs", "skip-recovery", "keep-zeros")
SEGMENT = "data/t-0/00000000000000000000.log"


def opened(storage: Storage, rules: Rules, *, clean: bool = False, topic: str = "t", synced: int = 0) -> PartitionLog:
    """The log as a broker with these rules opens it."""
    clock = ManualClock(NOW_MS)
    return PartitionLog.open(
        f"data/{topic}-0",
        topic,
        0,
        LogConfig(),
        storage,
        clock,
        clean=clean,
        recovery_point=synced,
        opening=rules.open_log,
    )


def written(topic: str = "t") -> MemoryStorage:
    """A log of six batches in three epochs, as the crash of its broker leaves it."""
    storage = bench().storage
    log = opened(storage, Rules(), topic=topic)
    for number in range(6):
        append(log, payload=bytes(range(1, 41)), leader_epoch=number // 2)
    return storage


def batches_of(storage: MemoryStorage) -> list[bool]:
    """Of each batch of the segment, whether its checksum holds."""
    data, at, sound = storage.read(SEGMENT), 0, []
    while at < len(data):
        size = parse_header(data, at).size_bytes
        sound.append(crc_ok(data, at, size))
        at += size
    return sound


@pytest.mark.parametrize("name", AFTER_CRASH)
def test_only_a_crash_does_harm(name: str) -> None:
    """A clean stop, a log without batches and a topic of the brokers themselves are left as they are."""
    notes = MemoryStorage()
    rules = planted(notes, name)
    for topic, clean in (("t", True), ("__consumer_offsets", False)):
        storage = written(topic)
        path = SEGMENT.replace("t-0", f"{topic}-0")
        before = storage.read(path)
        log = opened(storage, rules, clean=clean, topic=topic)
        assert (storage.read(path), len(log.epochs.entries)) == (before, 3)
    assert opened(bench().storage, rules).log_end_offset == 0
    assert fired(notes) == []


@pytest.mark.parametrize("name", AFTER_CRASH)
def test_a_share_of_crashes(name: str) -> None:
    """With a small probability most starts are right."""
    notes = MemoryStorage()
    rules = planted(notes, f"{name}:0.2")
    for _ in range(40):
        opened(written(), rules)
    assert 0 < len(fired(notes)) < 20


def test_forget_epochs() -> None:
    """The right start has them from the batches; the wrong one has none, and tells a wrong end of an epoch after its
    next election. What was forgotten stays so in the checkpoint."""
    notes, storage = MemoryStorage(), written()
    right = opened(storage.survivor(), Rules())
    log = opened(storage, planted(notes, "forget-epochs"))
    assert ([*map(tuple, right.epochs.entries)], log.epochs.entries) == ([(0, 0), (1, 2), (2, 4)], ())
    for each in (right, log):
        each.epochs.assign(3, 6)
    assert right.epochs.end_offset_for(0, 6) == (0, 2)
    assert log.epochs.end_offset_for(0, 6) == (0, 6)
    assert storage.read("data/t-0/leader-epoch-checkpoint") == b"0\n1\n3 6\n"
    assert [(line["topic"], line["partition"], line["epochs"], line["offset"]) for line in fired(notes)] == [
        ("t", 0, 3, 6)
    ]


def test_skip_recovery() -> None:
    """One batch is there without its second half, and the log continues after it; the right start cuts it off."""
    notes, storage = MemoryStorage(), written()
    log = opened(storage, planted(notes, "skip-recovery"))
    [line] = fired(notes)
    torn = line["offset"]
    assert isinstance(torn, int) and (line["topic"], line["count"], line["lost_bytes"]) == ("t", 1, 20)
    assert (log.log_end_offset, append(log, leader_epoch=2).first_offset) == (6, 6)
    assert batches_of(storage) == [number != torn for number in range(7)]
    assert opened(storage, Rules()).log_end_offset == torn


def test_what_was_synced_is_not_torn() -> None:
    """A batch below the recovery point was on the disk."""
    notes, storage = MemoryStorage(), written()
    opened(storage, planted(notes, "skip-recovery"), synced=6)
    assert (fired(notes), batches_of(storage)) == ([], [True] * 6)
    opened(storage, planted(notes, "skip-recovery"), synced=5)
    assert [line["offset"] for line in fired(notes)] == [5]


def test_keep_zeros() -> None:
    """The next batch follows zeros, which no reader gets past; the right start cuts the log off there."""
    notes, storage = MemoryStorage(), written()
    whole = storage.read(SEGMENT)
    log = opened(storage, planted(notes, "keep-zeros"))
    log.append_as_follower(replicated(make_batch(base_offset=6, leader_epoch=2)))
    data = storage.read(SEGMENT)
    zeros = bytes(PREALLOCATED_BYTES)
    assert data[: len(whole) + len(zeros)] == whole + zeros and parse_header(data, len(whole) + len(zeros))
    with pytest.raises(CorruptBatch, match="magic 0"):
        read_all(log)
    assert [(line["offset"], line["zero_bytes"]) for line in fired(notes)] == [(6, PREALLOCATED_BYTES)]
    assert opened(storage, Rules()).log_end_offset == 6
    assert storage.read(SEGMENT) == whole


def forgetful(storage: MemoryStorage, text: str = "lose-unsynced") -> Storage:
    """The storage in a new life of a broker with the defect."""
    storage.makedirs("/node")
    firings = Firings("/node", 1, storage, ManualClock())
    return with_storage_defects(storage, [parse(text)], derive(1, "defects"), firings)


def test_lose_unsynced() -> None:
    """A log ends after a crash where it was synced; what is there then stays at the next one."""
    storage = bench().storage
    log = opened(forgetful(storage), Rules())
    for number in range(4):
        if number == 2:
            log.flush()
        append(log, leader_epoch=0)
    assert (log.recovery_point, log.log_end_offset) == (2, 4)
    assert opened(storage.survivor(), Rules(), synced=2).log_end_offset == 4
    size = len(storage.read(SEGMENT))
    assert opened(forgetful(storage), Rules(), synced=2).log_end_offset == 2
    [line] = fired(storage)
    assert (line["topic"], line["partition"], line["synced_bytes"], line["lost_bytes"]) == (
        "t",
        0,
        size // 2,
        size // 2,
    )
    assert opened(forgetful(storage), Rules(), synced=2).log_end_offset == 2
    assert len(fired(storage)) == 1


@pytest.mark.parametrize("end", ["clean", "cut"])
def test_what_counts_as_synced(end: str) -> None:
    """After a clean stop all of it; after a cut no more than is left, however much is appended again."""
    storage = bench().storage
    log = opened(forgetful(storage), Rules())
    for _ in range(4):
        append(log, leader_epoch=0)
    if end == "clean":
        log.close(clean=True)
    else:
        log.flush()
        log.truncate_to(1)
        for _ in range(3):
            append(log, leader_epoch=1)
    left = opened(forgetful(storage), Rules(), clean=end == "clean", synced=1)
    assert left.log_end_offset == (4 if end == "clean" else 1)
    assert len(fired(storage)) == (end == "cut")


def test_a_life_before_the_defect_loses_nothing() -> None:
    """Files of which no one noted what is synced are as they were; so are those of brokers' own topics, and others."""
    storage = written()
    assert opened(forgetful(storage), Rules()).log_end_offset == 6
    log = opened(forgetful(storage), Rules(), topic="__transaction_state")
    append(log, leader_epoch=0)
    assert opened(forgetful(storage), Rules(), topic="__transaction_state").log_end_offset == 1
    assert fired(storage) == []
    assert b"__transaction_state" not in storage.read(f"/node/{SYNCED_FILE}")


def test_another_file_of_the_name() -> None:
    """A segment that was removed or renamed leaves nothing synced behind for the next one at its place."""
    for leave in REMOVALS:
        storage = bench().storage
        storage.makedirs("data/t-0")
        disk = forgetful(storage)
        first = disk.open(SEGMENT)
        first.append(b"abcdef")
        first.fsync()
        leave(disk)
        disk.open(SEGMENT).append(b"123456")
        assert forgetful(storage).open(SEGMENT).size_bytes == 0


REMOVALS: tuple[Callable[[Storage], None], ...] = (
    lambda disk: disk.remove(SEGMENT),
    lambda disk: disk.rename(SEGMENT, f"{SEGMENT}.deleted"),
)


def test_a_wrapper_only_when_it_is_asked_for() -> None:
    """A healthy broker, and one with another defect, has the storage itself."""
    storage, clock = MemoryStorage(), ManualClock()
    storage.makedirs("/node")
    for defects, is_itself in (((), True), (("lose-acked",), True), (("lose-unsynced",), False)):
        rules, disk = _planted(BrokerSpec(1, {}, "/node", defects, seed=1), storage, clock)
        assert (disk is storage) == is_itself
        assert (rules == Rules()) == (defects != ("lose-acked",))
