"""A start after a clean stop: from what was noted then, and from the batches as soon as a file is not as noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.log import opening, segment_start
from cluster.log.clean_state import LogState, SegmentRecord, clean_state_text, parse_clean_state
from cluster.log.config import LogConfig
from cluster.log.errors import CheckpointError
from cluster.log.manager import LogManager
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import BatchMetadata, ProducerEntry
from tests.cluster.log.builders import NOW_MS, Bench, bench, produce, read_all

SMALL = LogConfig(segment_bytes=200, index_interval_bytes=60)
DIRECTORY = "data/t-0"


@pytest.fixture
def on() -> Bench:
    return bench()


@pytest.fixture
def walks(monkeypatch) -> list[str]:
    """The directories whose batches were read."""
    walked: list[str] = []
    real = opening._open_segments

    def walk(of, *args):
        walked.append(of.directory)
        return real(of, *args)

    monkeypatch.setattr(opening, "_open_segments", walk)
    return walked


def manager(on: Bench) -> LogManager:
    made = LogManager("data", on.storage, on.clock, SMALL)
    made.load()
    return made


def fill(on: Bench, batches: int = 9) -> LogManager:
    made = manager(on)
    log = made.get_or_create("t", 0, None, SMALL)
    for sequence in range(batches):
        produce(log, sequence, timestamp=NOW_MS + sequence, leader_epoch=sequence // 4)
    return made


def facts(log: PartitionLog) -> tuple[object, ...]:
    """All that a start has to find out."""
    return (
        read_all(log),
        [segment.record() for segment in log._local.segments],
        log.epochs.entries,
        sorted(log.producers),
        (log.log_start_offset, log.log_end_offset, log.recovery_point, log.max_timestamp),
    )


def test_a_clean_start_reads_no_batches_and_knows_all(on, walks):
    """Producers with all five batches and their whole history, epochs, ends and indexes: as before the stop."""
    made = fill(on)
    log = made.get("t", 0)
    log.flush()
    before = facts(log)
    made.close(clean=True)
    del walks[:]
    log = manager(on).get("t", 0)
    assert walks == []
    after = facts(log)
    assert (after[0], after[2:]) == (before[0], before[2:])
    for sequence in range(9):
        again = produce(log, sequence, timestamp=NOW_MS + sequence, leader_epoch=2)
        assert again.duplicate, sequence
    assert produce(log, 9, leader_epoch=2).first_offset == 9


def test_an_index_with_too_few_entries_is_made_again(on, walks, monkeypatch):
    """It was written with a huge index.interval.bytes, before that had a bound; then it is as noted."""
    made = fill(on)
    made.close(clean=True)
    made = manager(on)
    log = made.get("t", 0)
    dense, records = [list(segment.offset_index) for segment in log._local.segments], read_all(log)
    made.close(clean=True)
    monkeypatch.setattr(segment_start, "LONGEST_GAP_BYTES", 60)
    sparse = replace(SMALL, index_interval_bytes=1_000_000)
    other = bench()
    made = LogManager("data", other.storage, other.clock, sparse)
    made.load()
    log = made.get_or_create("t", 0, None, sparse)
    for sequence in range(9):
        produce(log, sequence, timestamp=NOW_MS + sequence, leader_epoch=sequence // 4)
    assert not any(len(segment.offset_index) for segment in log._local.segments)
    for expected in ([DIRECTORY], []):
        made.close(clean=True)
        del walks[:]
        made = manager(other)
        log = made.get("t", 0)
        assert walks == expected
        assert [list(segment.offset_index) for segment in log._local.segments] == dense
        assert read_all(log) == records


def test_the_next_start_is_not_taken_in_by_an_older_state(on, walks):
    """The file goes with the marker, before anything changes."""
    fill(on).close(clean=True)
    made = manager(on)
    assert not on.storage.exists("data/.gapless_clean_state")
    made.get("t", 0).truncate_to(3)
    del walks[:]
    assert manager(on).get("t", 0).log_end_offset == 3
    assert walks == [DIRECTORY]


def overwritten(name: str, change: Callable[[bytes], bytes]) -> Callable[[Bench], None]:
    def spoil(on: Bench) -> None:
        path = f"{DIRECTORY}/{name}" if name[0] == "0" or name.startswith("leader") else f"data/{name}"
        data = change(on.storage.read(path))
        file = on.storage.open(path)
        file.truncate(0)
        file.append(data)

    return spoil


def removed(name: str) -> Callable[[Bench], None]:
    return lambda on: on.storage.remove(f"{DIRECTORY}/{name}" if name[0] == "0" else f"data/{name}")


SPOILED = {
    "index cut": overwritten(f"{2:020d}.index", lambda data: data[:-3]),
    "index empty": overwritten(f"{2:020d}.index", lambda data: b""),
    "index garbage": overwritten(f"{2:020d}.index", lambda data: b"\x7f" * len(data)),
    "index longer": overwritten(f"{8:020d}.index", lambda data: data + bytes(8)),
    "index lost": removed(f"{4:020d}.index"),
    "timeindex cut": overwritten(f"{2:020d}.timeindex", lambda data: data[:-1]),
    "timeindex garbage": overwritten(f"{2:020d}.timeindex", lambda data: bytes(len(data))),
    "timeindex lost": removed(f"{2:020d}.timeindex"),
    "state garbage": overwritten(".gapless_clean_state", lambda data: data[:-9] + b"nonsense\n"),
    "state no text": overwritten(".gapless_clean_state", lambda data: b"\xff" + data),
    "state lost": removed(".gapless_clean_state"),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_whatever_is_not_as_noted_is_made_again_from_the_batches(on, walks, spoil):
    """Indexes above all: a lookup must never be led past what it wants."""
    made = fill(on)
    log = made.get("t", 0)
    log.flush()
    before = facts(log)
    made.close(clean=True)
    spoil(on)
    del walks[:]
    log = manager(on).get("t", 0)
    assert walks == [DIRECTORY]
    after = facts(log)
    assert (after[0], after[2:]) == (before[0], before[2:])
    for offset in range(9):
        assert log.read(offset, 1, 9).records is not None
    assert produce(log, 4, timestamp=NOW_MS + 4, leader_epoch=2).duplicate


@pytest.mark.parametrize("name", [f"{9:020d}.snapshot", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("data", [b"", b"nonsense", None])
def test_a_snapshot_or_epochs_that_cannot_be_read_are_written_again(on, name, data):
    """They say nothing that was not noted, or that the batches do not say."""
    fill(on).close(clean=True)
    path = f"{DIRECTORY}/{name}"
    expected = on.storage.read(path)
    if data is None:
        on.storage.remove(path)
    else:
        overwritten(name, lambda _: data)(on)
    made = manager(on)
    log = made.get("t", 0)
    assert log.epochs.entries == ((0, 0), (1, 4), (2, 8))
    assert produce(log, 8, timestamp=NOW_MS + 8, leader_epoch=2).duplicate
    if "epoch" in name:
        assert on.storage.read(path) == expected


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x"])
def test_a_log_file_that_has_another_size_is_damage(on, walks, change):
    """It was whole when the marker was written: the replica is offline, and nothing is cut off."""
    fill(on).close(clean=True)
    overwritten(f"{4:020d}.log", change)(on)
    before = on.storage.read(f"{DIRECTORY}/{4:020d}.log")
    del walks[:]
    made = manager(on)
    assert walks == [DIRECTORY] and made.get("t", 0) is None
    assert on.storage.read(f"{DIRECTORY}/{4:020d}.log") == before


def test_an_end_that_was_overwritten_is_noticed(on, walks):
    """The batches after the last index entry are looked at: the end of a file is what a crash or a copy spoils."""
    fill(on, 10).close(clean=True)
    path = f"{DIRECTORY}/{8:020d}.log"
    data = bytearray(on.storage.read(path))
    data[-75 + 16] = 7  # the magic of its last batch
    overwritten(path.rpartition("/")[2], lambda _: bytes(data))(on)
    del walks[:]
    made = manager(on)
    assert walks == [DIRECTORY] and made.get("t", 0) is None


NUMBERS = st.integers(-1, 2**63 - 1)
ENTRIES = st.builds(
    ProducerEntry,
    NUMBERS,
    st.integers(0, 2**15 - 1),
    st.lists(st.builds(BatchMetadata, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=5).map(tuple),
    st.booleans(),
    NUMBERS,
    st.booleans(),
)
STATES = st.builds(
    LogState,
    st.lists(st.tuples(*[NUMBERS] * 8).map(lambda row: SegmentRecord(*row)), max_size=3).map(tuple),
    st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3).map(tuple),
    st.lists(ENTRIES, max_size=3).map(tuple),
)


@given(states=st.dictionaries(st.sampled_from(["a-0", "b.c-17", "x_y-1"]), STATES), at=st.integers(0, 10_000))
def test_the_file_and_back(states, at):
    """Nothing is lost, and no changed byte goes unnoticed."""
    text = clean_state_text(states)
    assert parse_clean_state(text) == states
    at %= len(text) - 1
    changed = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
    with pytest.raises(CheckpointError):
        parse_clean_state(changed)
