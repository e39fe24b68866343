"""An event loop whose time jumps to the next timer when nothing is left to do: seconds of a cluster in milliseconds.

Owns virtual time, the standing still of a part of the process, and clocks of parts that run fast or slow. Does not own
what runs, nor the network: nothing outside the process is ever waited for, so the same steps give the same outcome.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable, Coroutine, Hashable
from contextvars import Context, ContextVar
from typing import Any, NamedTuple, TypeVar

Result = TypeVar("Result")

#: Turns of the loop without any time passing.
MAX_TURNS = 100_000

#: Who runs: set in the context in which a node is started, and inherited by all its tasks, timers and callbacks.
OWNER: ContextVar[Hashable] = ContextVar("owner", default=None)


class _Drift(NamedTuple):
    """A clock that showed ``own_s`` when it was ``since_s``, and has run at ``rate`` from then on."""

    since_s: float
    own_s: float
    rate: float

    def own(self, now_s: float) -> float:
        return self.own_s + (now_s - self.since_s) * self.rate

    def when(self, own_s: float) -> float:
        """The first time at which it shows ``own_s``: a timer that fires before, by the last bit, is set again and
        again."""
        when_s = self.since_s + (own_s - self.own_s) / self.rate
        while self.own(when_s) < own_s:
            when_s = math.nextafter(when_s, math.inf)
        return when_s


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """Deterministic: timers of the same instant run in the order in which they were set.

    It has no selector: it leans on asyncio's own queue of ready handles, and keeps the timers in a heap of tuples.
    """

    _scheduled: list[tuple[float, int, asyncio.TimerHandle]]

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._turns = 0
        self._timers = 0
        self._held: dict[Hashable, list[asyncio.Handle]] = {}
        self._drifts: dict[Hashable, _Drift] = {}
        #: Called after each callback, with its owner: whoever wants to see every state that the owner is in.
        self.watcher: Callable[[Hashable], None] | None = None

    def time(self) -> float:
        """What the clock of whoever asks shows."""
        if self._drifts:
            drift = self._drifts.get(OWNER.get())
            if drift is not None:
                return drift.own(self._now)
        return self._now

    @property
    def now(self) -> float:
        """The time, whatever anybody's clock shows."""
        return self._now

    def drift(self, owner: Hashable, rate: float) -> None:
        """From now on the clock of ``owner``, and all its timers, run at ``rate``. It is never set back."""
        known = self._drifts.get(owner)
        own_s = self._now if known is None else known.own(self._now)
        self._drifts[owner] = _Drift(self._now, own_s, rate)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if self._drifts:
            drift = self._drifts.get(OWNER.get())
            if drift is not None:
                when = max(self._now, drift.when(when))
        self._timers += 1
        heapq.heappush(self._scheduled, (when, self._timers, timer))
        timer._scheduled = True
        return timer

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    # A part of the process stands still

    def pause(self, owner: Hashable) -> None:
        """Run nothing of ``owner`` until ``resume``: its timers fire and its callbacks come due, and wait."""
        self._held.setdefault(owner, [])

    def resume(self, owner: Hashable) -> None:
        """Run what has come due meanwhile, in the order in which it did."""
        self._ready.extend(self._held.pop(owner, ()))

    def left_of(self, owner: Hashable) -> list[str]:
        """The tasks and timers that ``owner`` has, in words."""
        tasks = [repr(task.get_coro()) for task in asyncio.all_tasks(self) if getattr(task, "owner", None) == owner]
        timers = [
            repr(timer) for _, _, timer in self._scheduled
            if not timer._cancelled and timer._context.get(OWNER) == owner
        ]  # fmt: skip
        return sorted(tasks) + timers

    # The loop itself

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0][2]._cancelled:
            heapq.heappop(scheduled)[2]._scheduled = False
        if not ready and not self._stopping:
            if not scheduled:
                raise RuntimeError("every task waits for something that will never happen")
            if scheduled[0][0] > self._now:
                self._now = scheduled[0][0]
                self._turns = 0
        while scheduled and scheduled[0][0] <= self._now:
            timer = heapq.heappop(scheduled)[2]
            timer._scheduled = False
            ready.append(timer)
        self._turns += 1
        if self._turns > MAX_TURNS:
            raise RuntimeError(f"{MAX_TURNS} turns of the loop at {self._now} s: something runs in circles")
        watcher = self.watcher
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if self._held:
                held = self._held.get(handle._context.get(OWNER))
                if held is not None:
                    held.append(handle)
                    continue
            handle._run()
            if watcher is not None:
                watcher(handle._context.get(OWNER))

    def _write_to_self(self) -> None:
        """There is no selector to be woken."""


class OwnedTask(asyncio.Task[Any]):
    """A task that knows for whom it runs."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        context = options.get("context")
        self.owner = OWNER.get() if context is None else context.get(OWNER)
        super().__init__(coroutine, **options)


def _make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> OwnedTask:
    return OwnedTask(coroutine, loop=loop, **options)


class LoopClock:
    """The Clock seam on the running loop."""

    def monotonic_ns(self) -> int:
        return int(asyncio.get_running_loop().time() * 1e9)

    def monotonic_ms(self) -> int:
        return self.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return self.wall_ns() // 1_000_000

    def wall_ns(self) -> int:
        return 1_700_000_000_000_000_000 + self.monotonic_ns()


def run(main: Coroutine[Any, Any, Result], timeout_s: float = 600) -> Result:
    """``asyncio.run`` in virtual time; a test that would take longer than ``timeout_s`` of it hangs, and is ended."""

    def new_loop() -> VirtualTimeLoop:
        loop = VirtualTimeLoop()
        loop.set_task_factory(_make_task)
        return loop

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(asyncio.wait_for(main, timeout_s))
