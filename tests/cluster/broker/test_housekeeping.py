"""Housekeeping: retention, compaction and removal on their timers, beside the loop, with a line in the journal."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from cluster.broker.checkpoints import in_place, in_thread
from cluster.broker.housekeeping import Housekeeping, note_log_start
from cluster.config.broker import validate
from cluster.log.cleaner import Cleaning
from cluster.log.config import LogConfig
from cluster.log.errors import LogError
from cluster.log.manager import LogManager
from cluster.protocol.records import NewRecord, build_batch
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.log.builders import NOW_MS, append
from tests.support.virtual_time import LoopClock, run

DELETING = LogConfig(segment_bytes=150, retention_ms=60_000, file_delete_delay_ms=5000)
COMPACTING = LogConfig(segment_bytes=300, cleanup_policy=("compact",), file_delete_delay_ms=0)


class Bench:
    """A broker's logs and their housekeeping, in the running loop's time."""

    def __init__(self, blocking: Any = in_place, **properties: str) -> None:
        self.storage = MemoryStorage()
        self.journal: list[tuple[str, dict[str, Any]]] = []
        self.logs = LogManager(
            "data",
            self.storage,
            LoopClock(),
            LogConfig(),
            on_log_start_moved=partial(note_log_start, lambda event, details: self.journal.append((event, details))),
        )
        self.logs.load()
        self.high_watermarks: dict[tuple[str, int], int] = {}
        self.failures: list[LogError] = []
        config = validate(
            {
                "broker.id": "1",
                "zookeeper.connect": "nowhere",
                "log.dirs": "data",
                "log.retention.check.interval.ms": "10000",
                "log.cleaner.backoff.ms": "10000",
                **properties,
            }
        )
        self.housekeeping = Housekeeping(
            self.logs,
            lambda: self.high_watermarks,
            config,
            LoopClock(),
            self.storage,
            self.failures.append,
            blocking,
        )

    def fill(self, topic: str, config: LogConfig, batches: int = 6) -> None:
        log = self.logs.get_or_create(topic, 0, None, config)
        for number in range(batches):
            key = b"%d" % (number % 2)
            append(log, bytearray(build_batch([NewRecord(NOW_MS, key, b"x" * 20)])))
        log.flush()  # what is not synced is not compacted
        self.high_watermarks[topic, 0] = log.log_end_offset

    def names(self, topic: str) -> list[str]:
        return [name for name in self.storage.listdir(f"data/{topic}-0") if ".log" in name]


def test_old_segments_go_on_the_timer_and_are_removed_later() -> None:
    """Not before retention.ms, not above the watermark; the journal says which log began where, and why."""

    async def main() -> None:
        bench = Bench()
        bench.fill("t", DELETING)
        bench.fill("led-by-nobody", DELETING)
        del bench.high_watermarks["led-by-nobody", 0]
        bench.high_watermarks["t", 0] = 3
        bench.housekeeping.start()
        await asyncio.sleep(60.5)
        assert bench.journal == []
        await asyncio.sleep(10)
        ((event, details),) = bench.journal
        assert event == "log-start"
        assert details == {
            "topic": "t", "partition": 0, "before": 0, "log_start_offset": 3, "log_end_offset": 6, "reason": "time",
        }  # fmt: skip
        assert len([name for name in bench.names("t") if name.endswith(".deleted")]) == 3
        await asyncio.sleep(6)
        assert not any(name.endswith(".deleted") for name in bench.names("t"))
        assert len(bench.names("led-by-nobody")) == 6
        await bench.housekeeping.stop()
        assert bench.failures == []

    run(main())


def test_deleted_topics_are_removed_later() -> None:
    """The directory is out of the way at once, and gone after file.delete.delay.ms."""

    async def main() -> None:
        bench = Bench()
        bench.fill("t", DELETING)
        bench.housekeeping.start()
        bench.logs.delete("t", 0)
        assert [name for name in bench.storage.listdir("data") if name.endswith("-delete")]
        assert bench.logs.get("t", 0) is None
        await asyncio.sleep(6.5)
        assert not [name for name in bench.storage.listdir("data") if "t-0" in name]
        await bench.housekeeping.stop()

    run(main())


def test_dirty_logs_are_compacted_on_the_timer() -> None:
    """Those that are due, the dirtiest first, and how far is written to cleaner-offset-checkpoint."""

    async def main() -> None:
        bench = Bench()
        bench.fill("some", COMPACTING, 8)
        bench.fill("more", COMPACTING, 20)
        bench.fill("kept", DELETING)
        bench.housekeeping.start()
        await asyncio.sleep(10.5)
        cleaned = {log.topic: log.cleaned_to for log in bench.logs}
        bases = {log.topic: log.segment_base_offsets[-1] for log in bench.logs}
        assert cleaned == {**bases, "kept": 0}
        text = bench.storage.read("data/cleaner-offset-checkpoint").decode()
        assert text == f"0\n2\nmore 0 {bases['more']}\nsome 0 {bases['some']}\n"
        assert not any(name.endswith(".cleaned") for name in bench.names("more"))
        await bench.housekeeping.stop()

    run(main())


def test_no_compaction_where_it_is_switched_off() -> None:
    """With log.cleaner.enable=false no log is compacted."""

    async def main() -> None:
        bench = Bench(**{"log.cleaner.enable": "false"})
        bench.fill("t", COMPACTING, 20)
        bench.housekeeping.start()
        await asyncio.sleep(60)
        assert [log.cleaned_to for log in bench.logs] == [0]
        await bench.housekeeping.stop()

    run(main())


def test_a_log_that_cannot_be_compacted_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is passed over, said aloud, and tried again the next time; the broker goes on."""
    real = Cleaning.run

    def fail(cleaning: Cleaning) -> None:
        if "more" in cleaning.directory:
            raise OSError(28, "No space left on device")
        real(cleaning)

    monkeypatch.setattr(Cleaning, "run", fail)

    async def main() -> None:
        bench = Bench()
        bench.fill("some", COMPACTING, 8)
        bench.fill("more", COMPACTING, 20)
        bench.housekeeping.start()
        await asyncio.sleep(10.5)
        assert {log.topic: log.cleaned_to > 0 for log in bench.logs} == {"some": True, "more": False}
        assert bench.failures == []
        monkeypatch.undo()
        await asyncio.sleep(10)
        assert all(log.cleaned_to > 0 for log in bench.logs)
        await bench.housekeeping.stop()

    with caplog.at_level(logging.WARNING):
        run(main())
    assert "more-0 is not compacted: [Errno 28] No space left on device" in caplog.text


def test_a_disk_that_fails_under_retention_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker learns of it, as of any failure of its disk."""

    async def main() -> None:
        bench = Bench()
        bench.fill("t", DELETING)
        bench.housekeeping.start()
        monkeypatch.setattr(MemoryStorage, "rename", lambda *_: (_ for _ in ()).throw(OSError(5, "I/O error")))
        await asyncio.sleep(75)
        assert "I/O error" in str(bench.failures[0])
        monkeypatch.undo()
        await bench.housekeeping.stop()

    run(main())


def blocked_cleaning(monkeypatch: pytest.MonkeyPatch, until: Callable[[Cleaning], None]) -> list[int]:
    """Let a compaction wait for ``until`` in its thread; returns the list of threads that ran one."""
    threads: list[int] = []
    real = Cleaning.run

    def wait(cleaning: Cleaning) -> None:
        threads.append(threading.get_ident())
        until(cleaning)
        real(cleaning)

    monkeypatch.setattr(Cleaning, "run", wait)
    return threads


def test_the_loop_goes_on_while_a_log_is_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in another thread, so that heartbeats and clients are served meanwhile."""
    released = threading.Event()
    threads = blocked_cleaning(monkeypatch, lambda _: released.wait(30) and None)

    async def main() -> None:
        bench = Bench(in_thread)
        bench.fill("t", COMPACTING, 20)
        working = asyncio.create_task(bench.housekeeping.clean())
        while not threads:  # noqa: ASYNC110 - the thread has no way to wake the loop
            await asyncio.sleep(0.001)
        append(bench.logs.get("t", 0), bytearray(build_batch([NewRecord(NOW_MS, b"k", b"meanwhile")])))  # type: ignore[arg-type]
        assert not working.done()
        released.set()
        await working
        (log,) = bench.logs
        assert log.cleaned_to > 0 and log.log_end_offset == 21

    asyncio.run(main())
    assert threads and threads[0] != threading.get_ident()


def test_a_stop_does_not_wait_for_a_whole_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told to end, leaves no file behind, and nothing is replaced."""
    stopping = threading.Event()

    def until_cancelled(cleaning: Cleaning) -> None:
        stopping.set()
        while not cleaning.cancelled:
            threading.Event().wait(0.001)

    threads = blocked_cleaning(monkeypatch, until_cancelled)

    async def main() -> None:
        bench = Bench(in_thread, **{"log.cleaner.backoff.ms": "1"})
        bench.fill("t", COMPACTING, 20)
        bench.housekeeping.start()
        while not threads:  # noqa: ASYNC110 - the thread has no way to wake the loop
            await asyncio.sleep(0.001)
        await bench.housekeeping.stop()
        (log,) = bench.logs
        assert log.cleaned_to == 0
        assert not any(name.endswith(".cleaned") for name in bench.names("t"))

    asyncio.run(main())
