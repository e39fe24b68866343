"""The loop that clients without one share: what is still under way when whoever waits for it is interrupted."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from cluster.client.loop_thread import LoopThread


def test_an_interrupted_call_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C cancels what was waited for, so the end of the thread destroys no pending task. What fails by itself is
    raised as it is."""
    ended: list[str] = []

    async def call() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("call")

    async def turns() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def fails() -> None:
        raise ValueError("by itself")

    def interrupted(_self: Future[Any], _timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    thread = LoopThread.join()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Future, "result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                thread.wait(call())
        thread.wait(turns())
        assert ended == ["call"]
        with pytest.raises(ValueError, match="by itself"):
            thread.wait(fails())
    finally:
        thread.leave()
