"""Whether a log was right to give up its head: by age, by size, and only what is committed."""

from __future__ import annotations

from cluster.protocol.batch import set_offset_and_epoch
from cluster.seams.memory_storage import MemoryStorage
from tests.simulation.client import batch
from tests.simulation.retention import Moved, OnDisk, Settings, segments_of, wrongs

SEGMENTS = [OnDisk(0, 10, 100, 1000), OnDisk(10, 20, 100, 2000), OnDisk(20, 30, 100, 3000)]
BY_TIME, BY_SIZE = Settings(("delete",), -1, 500), Settings(("compact", "delete"), 150, -1)


def found(after: int, settings: Settings, now_ms: int = 2000, high_watermark: int = 30, before: int = 0) -> int:
    return len(wrongs(SEGMENTS, settings, Moved(before, after, high_watermark), now_ms))


def test_what_is_too_old_goes() -> None:
    """Older than ``retention.ms`` by the broker's time of day, and nothing that is as old as that."""
    assert found(10, BY_TIME) == 0
    assert found(10, BY_TIME, now_ms=1500) == 1
    assert found(20, BY_TIME) == 1
    assert found(20, BY_TIME, now_ms=2501) == 0


def test_what_is_too_much_goes() -> None:
    """As long as ``retention.bytes`` are left."""
    assert found(10, BY_SIZE) == 0
    assert found(20, BY_SIZE) == 1


def test_nothing_else_goes() -> None:
    """Not what is not committed, not a part of a segment, not without limits, not where topics are compacted alone."""
    assert found(10, BY_TIME, high_watermark=9) == 1
    assert found(5, BY_TIME) == 1
    assert found(10, Settings(("delete",), -1, -1)) == 1
    assert found(10, BY_TIME._replace(cleanup_policy=("compact",))) == 1


def test_what_was_asked_to_go_before_needs_no_reason() -> None:
    """Below the former log start nothing is kept."""
    assert found(20, BY_SIZE, before=10) == 1
    assert found(20, Settings(("delete",), 100, -1), before=10) == 0
    assert found(20, BY_TIME, now_ms=2501, before=10) == 0


def test_segments_are_read_from_the_disk() -> None:
    """Names tell where they begin, bytes how new their records are."""
    storage = MemoryStorage()
    storage.makedirs("/data/t-0")
    for base, timestamp in ((0, 100), (2, 300)):
        placed = bytearray(batch(b"v", b"w", timestamp=timestamp))
        set_offset_and_epoch(placed, 0, base, 0)
        storage.open(f"/data/t-0/{base:020d}.log").append(placed)
    storage.open("/data/t-0/00000000000000000004.log")
    size = len(batch(b"v", b"w"))
    assert segments_of(storage, "/data/t-0", 4) == [
        OnDisk(0, 2, size, 100),
        OnDisk(2, 4, size, 300),
        OnDisk(4, 4, 0, -1),
    ]
