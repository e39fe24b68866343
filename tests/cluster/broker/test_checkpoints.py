"""Checkpoints: what syncs is done off the event loop, and thousands of logs do not hold it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cluster.broker.checkpoints import Checkpoints
from cluster.broker.housekeeping import Housekeeping
from cluster.config.broker import validate
from cluster.log import producer_marks, snapshots
from cluster.log.config import LogConfig
from cluster.log.errors import StorageFailed
from cluster.log.manager import LogManager
from cluster.log.producers import ProducerStates
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryFile, MemoryStorage
from tests.cluster.log.builders import append, produce

PROPERTIES = {"broker.id": "1", "zookeeper.connect": "h:1", "listeners": "CLIENTS://127.0.0.1:0", "log.dirs": "data"}
LOGS = 100


class SlowClock(ManualClock):
    """Time passes whenever it is asked for: every piece of work takes some."""

    def monotonic_ns(self) -> int:
        self.advance_ms(1)
        return super().monotonic_ns()


class Files:
    """The logs of one broker, and what its timers do, called by hand. ``is_beside``: this is not the loop's thread."""

    def __init__(self, logs: int, config: LogConfig, clock: ManualClock) -> None:
        self.clock = clock
        self.manager = LogManager("data", MemoryStorage(), clock, config)
        self.manager.load()
        self.logs = [self.manager.get_or_create("t", partition, None, config) for partition in range(logs)]
        self.is_beside = False
        properties = validate(PROPERTIES)
        watermarks = self.watermarks
        self.checkpoints = Checkpoints(self.manager, watermarks, properties, clock, pytest.fail, self.beside)
        self.housekeeping = Housekeeping(
            self.manager, watermarks, properties, clock, MemoryStorage(), pytest.fail, self.beside
        )

    def watermarks(self) -> dict[tuple[str, int], int]:
        return {("t", log.partition): log.log_end_offset for log in self.logs}

    async def beside(self, work: Callable[[], None]) -> None:
        self.is_beside = True
        try:
            work()
        finally:
            self.is_beside = False


def test_a_truncation_replays_what_came_since_the_last_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of a segment, which may have millions of batches: that is done on the event loop."""
    monkeypatch.setattr(producer_marks, "MARK_RECORDS", 50)
    files = Files(1, LogConfig(), ManualClock())
    [log] = files.logs
    replayed = 0
    update = ProducerStates.update

    def counted(*given: Any) -> Any:
        nonlocal replayed
        replayed += 1
        return update(*given)

    for sequence in range(100):
        produce(log, sequence)
    asyncio.run(files.checkpoints.flush())
    for sequence in range(100, 105):
        produce(log, sequence)
    monkeypatch.setattr(ProducerStates, "update", counted)
    assert log.truncate_to(103) == 2
    assert replayed == 3
    entry = log.producers.get(7)
    assert entry is not None and (entry.last_sequence, entry.last_offset) == (102, 102)


def test_flushes_that_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was rolled, and by flush.ms all of a log: never on the loop. One that fails does not keep the others from
    it, and is told."""
    config = LogConfig(segment_bytes=150, flush_ms=1000)
    real_fsync = MemoryFile.fsync

    async def main() -> None:
        files = Files(2, config, ManualClock())
        for log in files.logs:
            for _ in range(5):
                append(log)
        failing = ""

        def fsync(file: MemoryFile) -> None:
            assert files.is_beside, f"{file.path} is synced on the event loop"
            if failing and failing in file.path:
                raise OSError(5, "I/O error")
            real_fsync(file)

        monkeypatch.setattr(MemoryFile, "fsync", fsync)
        await files.checkpoints.flush()
        assert [log.recovery_point for log in files.logs] == [4, 4]
        files.clock.advance_ms(1000)
        failing = "t-0"
        with pytest.raises(StorageFailed, match="t-0"):
            await files.checkpoints.flush()
        await files.checkpoints.flush()
        assert [log.recovery_point for log in files.logs] == [4, 5]
        assert files.logs[0].is_failed
        monkeypatch.setattr(MemoryFile, "fsync", real_fsync)
        with pytest.raises(StorageFailed):
            files.manager.close(clean=True)
        assert not files.manager._storage.exists("data/.kafka_cleanshutdown")

    asyncio.run(main())


def test_snapshots_are_written_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A roll made two files on the loop: of 10,000 producers it took 25 ms, for each of many requests of one turn."""
    made = 0

    async def main() -> None:
        files = Files(3, LogConfig(segment_bytes=150), ManualClock())

        def checked(encode: Callable[..., bytes]) -> Callable[..., bytes]:
            def encoding(*of: object) -> bytes:
                nonlocal made
                made += 1
                assert files.is_beside, "a snapshot is made on the event loop"
                return encode(*of)

            return encoding

        monkeypatch.setattr(snapshots, "snapshot_bytes", checked(snapshots.snapshot_bytes))
        monkeypatch.setattr(snapshots, "histories_bytes", checked(snapshots.histories_bytes))
        files.checkpoints.start()
        for log in files.logs:
            for sequence in range(8):
                produce(log, sequence)
        assert made == 0
        files.manager.delete("t", 2)
        await files.checkpoints.write_snapshots()
        names = files.manager._storage.listdir("data/t-0")
        assert sorted(int(name[:20]) for name in names if name.endswith(".snapshot")) == [2, 4, 6]
        assert made == 2 * 3 * 2
        await files.checkpoints.stop()
        assert not files.manager.writes_snapshots

    asyncio.run(main())


def test_no_more_is_called_synced_than_has_its_snapshot() -> None:
    """A start that finds a segment synced takes the producers from the file at its base."""

    async def main() -> None:
        files = Files(1, LogConfig(segment_bytes=150), ManualClock())
        files.manager.writes_snapshots = True
        for sequence in range(8):
            produce(files.logs[0], sequence)
        await files.checkpoints.flush()
        assert files.logs[0].recovery_point == 6
        assert files.manager._storage.exists(f"data/t-0/{6:020d}.producers")

    asyncio.run(main())


def flush(files: Files) -> Awaitable[None]:
    return files.checkpoints.flush()


def expire_producers(files: Files) -> Awaitable[None]:
    return files.checkpoints.expire_producers()


def retain(files: Files) -> Awaitable[None]:
    return files.housekeeping.retain()


def clean(files: Files) -> Awaitable[None]:
    return files.housekeeping.clean()


@pytest.mark.parametrize("work", [flush, expire_producers, retain, clean])
def test_others_have_their_turn_between_logs(work: Callable[[Files], Awaitable[None]]) -> None:
    """However many there are. A log may be deleted in such a turn."""

    async def main() -> None:
        files = Files(LOGS, LogConfig(cleanup_policy=("compact", "delete")), SlowClock())
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                if turns == 5:
                    files.manager.delete("t", LOGS - 1)
                await asyncio.sleep(0)

        task = asyncio.ensure_future(others())
        await work(files)
        task.cancel()
        assert turns >= LOGS / 6

    asyncio.run(main())
