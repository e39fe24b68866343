"""What a broker's journal says of how its logs came up."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping

import pytest

from cluster.broker.checkpoints import in_place, in_thread
from cluster.broker.loading import load_logs
from cluster.log.config import LogConfig
from cluster.log.manager import LogManager
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import parse_header
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.log.builders import make_batch

SMALL = LogConfig(segment_bytes=300)


def _manager(storage: MemoryStorage) -> LogManager:
    return LogManager("data", storage, ManualClock(), SMALL)


def _filled(storage: MemoryStorage, batches: int) -> LogManager:
    logs = _manager(storage)
    logs.load()
    log = logs.get_or_create("t", 0, None, SMALL)
    _append(log, batches)
    return logs


def _append(log: PartitionLog, batches: int) -> None:
    for _ in range(batches):
        batch = make_batch(3, payload=b"x" * 60)
        log.append_as_leader(memoryview(batch), parse_header(batch), 1, 0)


def _report(storage: MemoryStorage) -> dict[str, object]:
    return asyncio.run(load_logs(_manager(storage), ManualClock(), in_place))


def test_after_a_crash_the_segments_from_the_recovery_point_on_are_unflushed() -> None:
    """What was synced is not counted, whatever follows it is, a torn tail too: the bytes as recovery found them."""
    storage = MemoryStorage()
    logs = _filled(storage, 6)
    (log,) = logs
    log.flush()
    logs.checkpoint_recovery_points()
    synced_to = log.log_end_offset
    _append(log, 3)
    everything = sum(log.size_bytes for log in logs)
    bases = sorted(int(name[:-4]) for name in storage.listdir("data/t-0") if name.endswith(".log"))
    storage.open(f"data/t-0/{bases[-1]:020d}.log").append(b"torn")
    from_there = [base for base, end in zip(bases, [*bases[1:], synced_to + 1], strict=True) if end > synced_to]
    sizes = [storage.open(f"data/t-0/{base:020d}.log", create=False).size_bytes for base in from_there]
    assert 4 < sum(sizes) < everything
    assert _report(storage) == {
        "clean": False, "logs": 1, "bytes": everything, "unflushed_bytes": sum(sizes), "elapsed_ms": 0.0,
    }  # fmt: skip


def test_without_a_checkpoint_everything_is_unflushed() -> None:
    """A damaged checkpoint is none: more is verified then."""
    storage = MemoryStorage()
    logs = _filled(storage, 4)
    storage.write_atomic("data/recovery-point-offset-checkpoint", b"nonsense")
    assert _report(storage)["unflushed_bytes"] == sum(log.size_bytes for log in logs)


def test_after_a_clean_stop_nothing_is() -> None:
    """The marker says that all was synced; a first start has nothing at all."""
    storage = MemoryStorage()
    first = _report(storage)
    assert (first["logs"], first["unflushed_bytes"]) == (0, 0)
    _filled(storage, 4).close(clean=True)
    again = _report(storage)
    assert (again["clean"], again["logs"], again["unflushed_bytes"]) == (True, 1, 0)


def test_a_directory_without_a_segment_counts_for_nothing() -> None:
    """A power loss may leave a new log's directory empty: the broker starts all the same."""
    storage = MemoryStorage()
    before = _filled(storage, 4)
    storage.makedirs("data/new-0")
    report = _report(storage)
    assert (report["logs"], report["unflushed_bytes"]) == (2, sum(log.size_bytes for log in before))


def test_the_log_says_how_the_broker_stopped_if_it_ever_ran(caplog: pytest.LogCaptureFixture) -> None:
    """A fresh directory has seen no stop."""
    caplog.set_level(logging.INFO, logger="cluster.log.manager")
    storage = MemoryStorage()
    _report(storage)
    _filled(storage, 1)
    _report(storage)
    _manager(storage).load()
    (fresh, again, unclean, _) = [record.getMessage() for record in caplog.records]
    assert (fresh, again) == ("data: 0 logs", "data: 0 logs")
    assert unclean == "data: 1 logs after an unclean stop"


class _Slow(LogManager):
    """One whose logs are loaded when it is told so."""

    def __init__(self) -> None:
        super().__init__("data", MemoryStorage(), ManualClock(), SMALL)
        self.begun, self.go_on = threading.Event(), threading.Event()

    def load(self, configs: Mapping[str, LogConfig] | None = None) -> bool:
        self.begun.set()
        assert self.go_on.wait(20)
        return super().load(configs)


def test_the_loop_goes_on_while_logs_are_loaded() -> None:
    """A recovery may take longer than a session, which ends without heartbeats; whoever stops the broker meanwhile
    waits for the thread that has the logs."""

    async def main() -> None:
        logs = _Slow()
        loading = asyncio.ensure_future(load_logs(logs, ManualClock(), in_thread))
        assert await asyncio.to_thread(logs.begun.wait, 20)
        loading.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not loading.done()
        logs.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await loading

    asyncio.run(main())
