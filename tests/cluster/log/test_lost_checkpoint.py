"""A recovery-point checkpoint that is gone after a crash: a torn tail is mended, damage in the middle is not hidden."""

from __future__ import annotations

import pytest

from cluster.log.config import LogConfig
from cluster.log.errors import StorageFailed
from cluster.log.manager import LogManager
from tests.cluster.log.builders import Bench, append, bench, make_batch

TINY = LogConfig(segment_bytes=200)
CHECKPOINT = "data/recovery-point-offset-checkpoint"
#: Segments of two batches of 68 bytes.
BATCHES = 9


@pytest.fixture
def on() -> Bench:
    """A log of five segments that was synced, left as by kill -9, without its checkpoint."""
    made = bench()
    logs = manager(made)
    log = logs.get_or_create("t", 0, None, TINY)
    for sequence in range(BATCHES):
        append(log, producer_id=7, producer_epoch=0, base_sequence=sequence)
    log.flush()
    assert log.segment_base_offsets == [0, 2, 4, 6, 8]
    made.storage.remove(CHECKPOINT)
    return made


def manager(on: Bench) -> LogManager:
    made = LogManager("data", on.storage, on.clock, TINY)
    made.load()
    return made


def path_of(base: int) -> str:
    return f"data/t-0/{base:020d}.log"


def log_files(on: Bench) -> dict[str, bytes]:
    names = [name for name in on.storage.listdir("data/t-0") if name.endswith(".log")]
    return {name: on.storage.read(f"data/t-0/{name}") for name in names}


def flip(on: Bench, path: str, position: int) -> None:
    data = bytearray(on.storage.read(path))
    data[position] ^= 1
    on.storage.write_atomic(path, bytes(data))


@pytest.mark.parametrize("left", [0, 20, 67])
def test_a_torn_tail_is_cut_off(on, left) -> None:
    """Nothing whole comes behind it: that is how a crash leaves a log. All else is there."""
    on.storage.open(path_of(8)).truncate(left)
    log = manager(on).get("t", 0)
    assert log is not None and (log.log_end_offset, log.recovery_point) == (8, 0)
    assert on.storage.open(path_of(8)).size_bytes == 0


@pytest.mark.parametrize("checkpoint", [None, b"", b"nonsense"])
@pytest.mark.parametrize(
    ("base", "position"),
    [(4, 5), (4, 10), (4, 16), (4, 67), (6, 74), (0, 0)],
    ids=["an offset", "a length", "a magic", "a record", "another", "the first byte"],
)
def test_damage_with_whole_batches_behind_it_is_an_error(on, base, position, checkpoint) -> None:
    """The replica is offline at this start and the next, the error names the file and the ways out, and no file has
    changed. The other logs are not concerned."""
    flip(on, path_of(base), position)
    if checkpoint is not None:
        on.storage.write_atomic(CHECKPOINT, checkpoint)
    before = log_files(on)
    for clean in (True, False, True):
        logs = manager(on)
        with pytest.raises(StorageFailed, match="this is not a torn tail") as caught:
            logs.get_or_create("t", 0, None, TINY)
        assert path_of(base) in caught.value.message
        assert "remove data/t-0" in caught.value.message and CHECKPOINT.removeprefix("data/") in caught.value.message
        assert log_files(on) == before
        assert logs.get_or_create("other", 0, None, TINY).log_end_offset == 0
        logs.close(clean=clean)


def test_damage_within_the_last_segment_is_seen_too(on) -> None:
    """The whole batch behind it is in the same file."""
    flip(on, path_of(6), 60)
    for base in (8,):
        on.storage.remove(path_of(base))
    with pytest.raises(StorageFailed, match="records up to offset 8 were stored"):
        manager(on).get_or_create("t", 0, None, TINY)


def test_a_segment_that_is_gone_is_an_error(on) -> None:
    """What was deleted from the middle is not a torn tail."""
    on.storage.remove(path_of(4))
    with pytest.raises(StorageFailed, match="there is nothing between it and segment 6"):
        manager(on).get_or_create("t", 0, None, TINY)


def test_an_end_below_the_high_watermark_is_an_error(on) -> None:
    """Those records were acknowledged; a crash of this process alone cannot have torn them."""
    LogManager("data", on.storage, on.clock, TINY)
    logs = manager(on)
    logs.checkpoint_high_watermarks({("t", 0): 9})
    on.storage.remove(CHECKPOINT)
    on.storage.open(path_of(8)).truncate(67)
    with pytest.raises(StorageFailed, match="records up to offset 9 were stored"):
        manager(on).get_or_create("t", 0, None, TINY)


def test_both_ways_out_of_it(on) -> None:
    """The line removed: all from the damage on is given up, aloud. The directory removed: the replica starts over."""
    flip(on, path_of(4), 100)
    manager(on)
    assert on.storage.read(CHECKPOINT) == b"0\n1\nt 0 -1\n"
    on.storage.write_atomic(CHECKPOINT, b"0\n0\n")
    log = manager(on).get("t", 0)
    assert log is not None and log.log_end_offset == 5
    flip(on, path_of(2), 100)
    on.storage.remove(CHECKPOINT)
    manager(on)
    on.storage.remove_tree("data/t-0")
    assert manager(on).get_or_create("t", 0, None, TINY).log_end_offset == 0


def test_after_a_clean_stop_nothing_may_be_torn(on) -> None:
    """Without checkpoint and state, damage is still an error, at this start and the next."""
    logs = manager(on)
    logs.checkpoint_high_watermarks({("t", 0): 9})
    logs.close(clean=True)
    on.storage.remove(CHECKPOINT)
    on.storage.open(path_of(8)).truncate(67)
    for expected in ("was once stored safely", "this is not a torn tail"):
        with pytest.raises(StorageFailed, match=expected):
            manager(on).get_or_create("t", 0, None, TINY)


def test_a_new_log_that_no_checkpoint_names_yet_is_not_a_lost_one(on) -> None:
    """The first start writes the checkpoint, so a log without a line is one of which nothing is known to be synced."""
    fresh = bench()
    logs = manager(fresh)
    assert fresh.storage.read(CHECKPOINT) == b"0\n0\n"
    log = logs.get_or_create("t", 0, None, TINY)
    for _ in range(BATCHES):
        append(log, make_batch())
    flip(fresh, path_of(4), 60)
    again = manager(fresh).get("t", 0)
    assert again is not None and again.log_end_offset == 4
