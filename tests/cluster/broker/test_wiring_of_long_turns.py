"""From the loop of a broker process to the figures of a run: a long turn is counted, exported and collected.

And the loop waits for no thread for longer than is said.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.conductor import health
from chaos.conductor.deployment import Deployment
from chaos.conductor.observer import Observer, scrape
from cluster.broker import main
from cluster.metadata.memory import MemoryStore, MemoryTree
from cluster.process.garbage import Garbage
from cluster.seams.clock import ManualClock

BUSY_S = 0.3


def health_of(samples: dict[str, list[tuple[dict[str, str], float]]]) -> float:
    """What the conductor makes of a broker's samples."""

    async def metrics(_broker_id: int) -> Any:
        return samples

    deployment = cast(Deployment, SimpleNamespace(is_proxied=False, broker_ids=[1]))
    observer = cast(Observer, SimpleNamespace(metrics=metrics))
    found = asyncio.run(health.harness_health(deployment, observer, health.LagMeter(ManualClock())))
    return found.event_loop_lag_s["broker-1"]


def test_a_long_turn_of_a_broker_is_a_figure_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One of 300 ms: a log line, a counter, a gauge; and of both gauges the conductor takes the worse. Threads of the
    process give way to the loop sooner than Python lets them."""
    monkeypatch.setattr(main, "ZooKeeperStore", lambda *_: MemoryStore(MemoryTree()))
    # It is no process of its own here: what concerns the whole process is left alone.
    monkeypatch.setattr(Garbage, "begin", lambda _: gc.enable())
    monkeypatch.setattr(main, "raise_open_file_limit", lambda: 0)
    ports: dict[str, int] = {}
    samples: list[Any] = []
    switch_s, pythons_s = 0.0, sys.getswitchinterval()

    def look() -> None:
        samples.append(scrape(f"http://127.0.0.1:{ports[main.METRICS]}/metrics"))
        os.kill(os.getpid(), signal.SIGTERM)

    def ready(message: dict[str, Any]) -> None:
        nonlocal switch_s
        switch_s = sys.getswitchinterval()
        ports.update(message.get("ports", {}))
        if message["event"] == "started":
            loop = asyncio.get_running_loop()
            loop.call_soon(time.sleep, BUSY_S)
            loop.call_later(2 * BUSY_S, threading.Thread(target=look).start)

    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "zookeeper.connect": "memory",
        "log.dirs": str(tmp_path / "data"),
        "gapless.metrics.port": "0",
    }
    try:
        main._run(main.BrokerSpec(1, properties, str(tmp_path / "node"), seed=1), ready)
    finally:
        sys.setswitchinterval(pythons_s)
    assert switch_s == pytest.approx(main.THREAD_SWITCH_S)
    assert switch_s < pythons_s
    [found] = samples
    [(_, longest_s)] = found[health.LONGEST_TURN]
    assert BUSY_S <= longest_s < 100 * BUSY_S
    assert found["gapless_event_loop_long_turns_total"][0][1] >= 1
    assert "a turn of the event loop took" in caplog.text
    assert health_of({health.LOOP_LAG: [({}, 0.001)], health.LONGEST_TURN: found[health.LONGEST_TURN]}) >= BUSY_S
    assert health_of({health.LOOP_LAG: [({}, 1.0)], health.LONGEST_TURN: [({}, 0.1)]}) == 1.0
