"""Requests that must wait: produces for the high watermark, fetches for bytes; and the wheel that ends their wait.

Owns the life of a delayed request: settled, woken or expired, exactly once (Kafka's DelayedOperation). Does not
own the keys: each ``Replica`` holds the requests that wait for it, and wakes them. No task is made per request.
"""

from __future__ import annotations

import asyncio
import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from sys import getsizeof
from typing import Generic, Protocol, TypeVar

from cluster.protocol.errors import ErrorCode
from cluster.protocol.produce import ProduceResult

#: The grain of the wheel: a wait may last this much longer than asked, and a tick ends all that are due at once.
TICK_MS = 5
#: Empty buckets are swept out at this number, once they are as many as the others.
_SWEEP_AT = 1024

#: What a request that waits takes: itself, and each of its partitions, as measured.
_REQUEST_BYTES = 1_000
_RESULT_BYTES = 360

#: The answer for one partition of a request.
Result = TypeVar("Result")


class Expiring(Protocol):
    """Something that does not wait forever."""

    def expire(self) -> None:
        """The time is over. Not called after ``TimerWheel.cancel``."""
        ...


class TimerWheel:
    """Deadlines in buckets of ``TICK_MS``, one timer of the loop for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._buckets: dict[int, dict[Expiring, None]] = {}
        self._ticks: list[int] = []
        self._empty = 0
        self._sweep_at = _SWEEP_AT
        self._timer: asyncio.TimerHandle | None = None
        self._timer_tick = 0

    def __repr__(self) -> str:
        return f"<TimerWheel {sum(map(len, self._buckets.values()))} waiting>"

    def waiting(self, kind: type[Expiring]) -> int:
        """How many of a kind wait. May be called from another thread, and is then as true as such a number can be."""
        return sum(isinstance(operation, kind) for bucket in list(self._buckets.values()) for operation in list(bucket))

    def add(self, operation: Expiring, delay_ms: int) -> int:
        """Call ``operation.expire()`` after ``delay_ms``; returns the tick to give to ``cancel``."""
        tick = int(self._loop.time() * 1000 + delay_ms) // TICK_MS + 1
        bucket = self._buckets.get(tick)
        if bucket is None:
            self._buckets[tick] = {operation: None}
            heapq.heappush(self._ticks, tick)
            if self._timer is None or tick < self._timer_tick:
                self._arm()
        else:
            if not bucket:
                self._empty -= 1
            bucket[operation] = None
        return tick

    def cancel(self, operation: Expiring, tick: int) -> None:
        """Forget an operation; nothing happens if it has expired already."""
        bucket = self._buckets.get(tick)
        if bucket is not None and bucket.pop(operation, tick) is None and not bucket:
            # Not removed at once: the next request may want the same tick.
            self._empty += 1
            if self._empty >= self._sweep_at:
                self._sweep()

    def _sweep(self) -> None:
        """Forget the buckets that no one waits in: their deadlines may be weeks away."""
        self._buckets = {tick: bucket for tick, bucket in self._buckets.items() if bucket}
        self._ticks = sorted(self._buckets)
        self._empty = 0
        self._sweep_at = max(_SWEEP_AT, len(self._buckets))

    def close(self) -> None:
        """Forget everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._buckets.clear()
        self._ticks.clear()
        self._empty = 0

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_tick = self._ticks[0]
        self._timer = self._loop.call_at(self._timer_tick * TICK_MS / 1000, self._turn)

    def _turn(self) -> None:
        self._timer = None
        now_tick = int(self._loop.time() * 1000) // TICK_MS
        # The loop may call a timer within its clock's resolution too early: the tick it was armed for is due.
        now_tick = max(now_tick, self._timer_tick)
        while self._ticks and self._ticks[0] <= now_tick:
            bucket = self._buckets.pop(heapq.heappop(self._ticks))
            self._empty -= not bucket
            for operation in bucket:
                operation.expire()
        if self._ticks and self._timer is None:
            self._arm()


class Delayed(ABC, Generic[Result]):
    """A request that waits for some of its partitions.

    ``results`` are those of all its partitions, in order, as they will be if all goes well; ``waiting`` the indexes
    of those that are not settled yet. ``respond`` gets the final results, once.
    """

    __slots__ = ("_respond", "_results", "_tick", "_waiting", "_wheel")

    def __init__(
        self,
        results: list[Result],
        waiting: Iterable[int],
        respond: Callable[[list[Result]], None],
        wheel: TimerWheel,
        timeout_ms: int,
    ) -> None:
        self._results = results
        self._waiting = set(waiting)
        self._respond: Callable[[list[Result]], None] | None = respond
        self._wheel = wheel
        self._tick = wheel.add(self, timeout_ms)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} waiting for {len(self._waiting)} of {len(self._results)}>"

    @property
    def is_done(self) -> bool:
        return self._respond is None

    @property
    def size_bytes(self) -> int:
        """The memory of what it keeps, about: its results and its places in the queues of partitions."""
        results = self._results
        if len(results) == 1:
            return _REQUEST_BYTES
        return _REQUEST_BYTES + len(results) * _RESULT_BYTES + sum(map(self._text_bytes, results))

    def settle(self, index: int, error_code: ErrorCode) -> None:
        """The fate of one partition is known."""
        if index not in self._waiting:
            return
        self._waiting.remove(index)
        if error_code is not ErrorCode.NONE:
            self._results[index] = self._failed(self._results[index], error_code)
        if not self._waiting:
            self._wheel.cancel(self, self._tick)
            self._finish()

    def expire(self) -> None:
        """Answer REQUEST_TIMED_OUT where nothing is known: what was asked may or may not come about."""
        for index in self._waiting:
            self._results[index] = self._failed(self._results[index], ErrorCode.REQUEST_TIMED_OUT)
        self._waiting.clear()
        self._finish()

    def _finish(self) -> None:
        respond, self._respond = self._respond, None
        if respond is not None:
            respond(self._results)

    @abstractmethod
    def _failed(self, result: Result, error_code: ErrorCode) -> Result:
        """The answer for the same partition with an error."""

    def _text_bytes(self, result: Result) -> int:
        """What a result that is an error keeps besides: texts that no one else has."""
        return 0


class DelayedProduce(Delayed[ProduceResult]):
    """A produce request under acks=all: its partitions wait for their high watermarks."""

    __slots__ = ()

    def _failed(self, result: ProduceResult, error_code: ErrorCode) -> ProduceResult:
        return failed(result, error_code)

    def _text_bytes(self, result: ProduceResult) -> int:
        if not result.error_code:
            return 0
        texts = (result.topic, result.error_message, *(text for _, text in result.record_errors))
        return sum(map(getsizeof, texts))


def failed(result: ProduceResult, error_code: ErrorCode, message: str | None = None) -> ProduceResult:
    """The answer for the same partition with an error: no offset is told."""
    return ProduceResult(result.topic, result.partition, error_code, error_message=message)


class DelayedFetch:
    """A fetch that found too little and waits for more.

    ``attempt`` gets the indexes of the partitions that changed, reads those again and returns whether it answered; it
    gets None when the time is over, and must answer then. ``unwatch`` removes it from the partitions that can wake it.
    """

    __slots__ = ("_attempt", "_changed", "_is_done", "_loop", "_tick", "_unwatch", "_wheel")

    def __init__(
        self,
        attempt: Callable[[set[int] | None], bool],
        unwatch: Callable[[DelayedFetch], None],
        loop: asyncio.AbstractEventLoop,
        wheel: TimerWheel,
        max_wait_ms: int,
    ) -> None:
        self._attempt = attempt
        self._unwatch = unwatch
        self._loop = loop
        self._wheel = wheel
        self._is_done = False
        self._changed: set[int] = set()
        self._tick = wheel.add(self, max_wait_ms)

    def __repr__(self) -> str:
        return f"<DelayedFetch {'done' if self._is_done else 'waiting'}>"

    @property
    def is_done(self) -> bool:
        return self._is_done

    def wake(self, index: int) -> None:
        """Partition ``index`` changed: look again, once, after what else has arrived meanwhile.

        Not in this turn of the loop but after the next: its sockets hold what a client has sent after the first batch,
        and a fetch that takes several costs little more than a fetch of one.
        """
        if not self._changed:
            self._loop.call_soon(self._loop.call_soon, self._look)
        self._changed.add(index)

    def _look(self) -> None:
        changed, self._changed = self._changed, set()
        if not self._is_done and self._attempt(changed):
            self._end()
            self._wheel.cancel(self, self._tick)

    def finish_now(self) -> None:
        """Answer with the data at hand: the client sent another request after this fetch."""
        if not self._is_done:
            self._wheel.cancel(self, self._tick)
            self.expire()

    def expire(self) -> None:
        if not self._is_done:
            self._end()
            self._attempt(None)

    def abandon(self) -> None:
        """The client is gone: no waiter is left."""
        if not self._is_done:
            self._end()
            self._wheel.cancel(self, self._tick)

    def _end(self) -> None:
        self._is_done = True
        self._unwatch(self)
