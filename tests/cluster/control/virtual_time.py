"""An event loop whose time jumps to the next timer when nothing is left to do: seconds of a cluster in milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

#: Turns of the loop without any time passing.
MAX_TURNS = 100_000


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("every task waits for something that will never happen")
        self._turns += 1
        if self._turns > MAX_TURNS:
            raise RuntimeError(f"{MAX_TURNS} turns of the loop at {self.now} s: something runs in circles")
        if not ready and timeout:
            self.now += timeout
            self._turns = 0
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Deterministic as long as nothing outside the process is waited for."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


class LoopClock:
    """The Clock seam on the running loop."""

    def monotonic_ns(self) -> int:
        return int(asyncio.get_running_loop().time() * 1e9)

    def monotonic_ms(self) -> int:
        return self.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.monotonic_ms()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """``asyncio.run`` in virtual time; a test that would take ten minutes of it hangs, and is ended."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(asyncio.wait_for(main, 600))
