"""kazoo's heartbeat is not starved by this process's own work (the broker's bar on unavailability).

The heartbeat has a thread of its own. What could starve it is the interpreter's lock: Python code gives it up every few
milliseconds, C code only if it was written so. So the work here is the real one, logs that are recovered again and
again for several sessions: on the event loop's thread, as at a start, and in a thread beside it, as compaction works.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from cluster.log.config import LogConfig
from cluster.log.manager import LogManager
from cluster.metadata.store import SessionState
from cluster.metadata.zookeeper import ZooKeeperStore
from cluster.protocol.batch import parse_header
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from tests.cluster.log.builders import make_batch

pytestmark = pytest.mark.integration

SESSION_MS = 1000
SESSIONS_LONG = 2
#: Few large batches, whose check is one long call into C, and many small ones, which are Python's work.
SIZES = [1 << 20] * 8 + [200] * 4000


def fill(directory: str) -> None:
    """A log of a broker that was killed: nothing of it is known to be good."""
    manager = LogManager(directory, OsStorage(), SystemClock(), LogConfig())
    manager.load()
    log = manager.get_or_create("t", 0, UUID(int=5), LogConfig())
    for size in SIZES:
        batch = make_batch(payload=bytes(size), base_offset=log.log_end_offset)
        log.append_as_leader(batch, parse_header(batch), 0, 0)


def recover_for(directory: str, duration_ms: int) -> int:
    """Recover it over and over, and say how often."""
    clock = SystemClock()
    until_ms = clock.monotonic_ms() + duration_ms
    times = 0
    while clock.monotonic_ms() < until_ms:
        manager = LogManager(directory, OsStorage(), clock, LogConfig())
        manager.load()
        log = manager.get("t", 0)
        assert log is not None
        assert log.log_end_offset == len(SIZES)
        for each in manager:
            each.close(clean=False)
        times += 1
    return times


@pytest.mark.parametrize("where", ["loop", pytest.param("thread", marks=pytest.mark.full)])
def test_recovery_does_not_cost_the_session(where: str, zookeeper: tuple[str, int], tmp_path: Path) -> None:
    """Two sessions of recovery: the same session after it, and no connection was lost on the way."""
    directory = str(tmp_path / "data")
    fill(directory)

    async def body() -> None:
        store = ZooKeeperStore("{}:{}".format(*zookeeper), SESSION_MS)
        states: list[SessionState] = []
        store.on_session(states.append)
        await store.start(20_000)
        assert store.session_timeout_ms == SESSION_MS
        session = store.session_id
        duration_ms = SESSIONS_LONG * SESSION_MS
        if where == "loop":
            times = recover_for(directory, duration_ms)
        else:
            times = await asyncio.to_thread(recover_for, directory, duration_ms)
        assert times > 0
        assert await store.exists("/zookeeper") is not None
        assert store.session_id == session
        assert states == [SessionState.CONNECTED]
        await store.close()

    asyncio.run(body())
