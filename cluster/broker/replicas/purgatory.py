"""Requests that must wait: produces for the high watermark, fetches for bytes.

Owns the life of a delayed request: settled, woken, expired or abandoned, exactly once (Kafka's DelayedOperation). Does
not own the keys: each ``Replica`` holds the requests that wait for it, and wakes them. Nor time: the wheel
(``timer_wheel``) ends what has waited long enough. No task is made per request.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import islice
from sys import getsizeof
from typing import Generic, Protocol, TypeVar

from cluster.broker.replicas.timer_wheel import TimerWheel
from cluster.protocol.errors import ErrorCode
from cluster.protocol.produce import ProduceResult

#: What a request that waits takes: itself, and each of its partitions, as measured.
_REQUEST_BYTES = 1_000
_RESULT_BYTES = 360

#: Changed partitions that a fetch reads before others have their turn.
PARTITIONS_AT_ONCE = 200

#: The answer for one partition of a request.
Result = TypeVar("Result")


class PartitionQueue(Protocol):
    """The queue of a partition, which is told who leaves it before its turn."""

    def produce_left(self) -> None: ...

    def deletion_left(self) -> None: ...


class Delayed(ABC, Generic[Result]):
    """A request that waits for some of its partitions.

    ``results`` are those of all its partitions, in order, as they will be if all goes well; ``waiting`` the indexes
    of those that are not settled yet. ``respond`` gets the final results, once. What is done keeps nothing: partitions
    may know it for longer.
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
        self._waiting: dict[int, PartitionQueue | None] = dict.fromkeys(waiting)
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

    def waits_at(self, index: int, place: PartitionQueue) -> None:
        """Part ``index`` is in the queue of a partition, and is settled from there."""
        self._waiting[index] = place

    def settle(self, index: int, error_code: ErrorCode) -> None:
        """The fate of one partition is known."""
        if index not in self._waiting:
            return
        del self._waiting[index]
        if error_code is not ErrorCode.NONE:
            self._results[index] = self._failed(self._results[index], error_code)
        if not self._waiting:
            self._wheel.cancel(self, self._tick)
            self._finish()

    def expire(self) -> None:
        """Answer REQUEST_TIMED_OUT where nothing is known: what was asked may or may not come about."""
        for index in self._waiting:
            self._results[index] = self._failed(self._results[index], ErrorCode.REQUEST_TIMED_OUT)
        self._finish()

    def finish_now(self) -> None:
        """The same before the time is over."""
        self._wheel.cancel(self, self._tick)
        self.expire()

    def abandon(self) -> None:
        """No one wants the answer anymore. What was asked continues, and may come about."""
        self._wheel.cancel(self, self._tick)
        self._respond = None
        self._finish()

    def _finish(self) -> None:
        respond, self._respond = self._respond, None
        results, self._results = self._results, []
        waiting, self._waiting = self._waiting, {}
        for place in waiting.values():
            if place is not None:
                self._leave(place)
        if respond is not None:
            respond(results)

    @abstractmethod
    def _leave(self, place: PartitionQueue) -> None:
        """Tell a partition that it need not settle this."""

    @abstractmethod
    def _failed(self, result: Result, error_code: ErrorCode) -> Result:
        """The answer for the same partition with an error."""

    def _text_bytes(self, result: Result) -> int:
        """What a result that is an error keeps besides: texts that no one else has."""
        return 0


class DelayedProduce(Delayed[ProduceResult]):
    """A produce request under acks=all: its partitions wait for their high watermarks."""

    __slots__ = ()

    def _leave(self, place: PartitionQueue) -> None:
        place.produce_left()

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
        if len(changed) > PARTITIONS_AT_ONCE:
            changed, self._changed = set(islice(changed, PARTITIONS_AT_ONCE)), changed
            self._changed -= changed
            self._loop.call_soon(self._look)
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
