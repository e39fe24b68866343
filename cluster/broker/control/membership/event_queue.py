"""One event at a time: the queue that keeps two changes of the cluster from interleaving.

Owns the order and the task: what administrators ask for is patient, and comes after everything else; long work looks
now and then whether its time is up (``Shift``). Does not own what an event does; one that raises is its caller's, or
the log's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeVar

from cluster.broker.pauses import Pauses, Shares
from cluster.metadata.store import SessionExpiredError
from cluster.seams.clock import Clock
from cluster.seams.out_of_memory import halt_if_out_of_memory

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

#: Something to do, from start to end, before anything else of this queue is begun.
Event = Callable[[], Awaitable[Any]]

#: Puts an event into a queue, for someone who knows nothing else of it.
Post = Callable[[Event], None]


class QueueClosed(ConnectionError):
    """The queue was closed before the event was done."""


#: Work that can be divided runs for this long, then other patient work runs.
SHIFT_NS = 500_000_000

#: Whether it is patient, its place in the order, its name, what to do, and who waits for it.
_Entry = tuple[bool, int, str | None, Event, asyncio.Future[Any] | None]


class EventQueue:
    """Runs events in the order in which they came, the patient ones after all others."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: asyncio.PriorityQueue[_Entry] = asyncio.PriorityQueue()
        self._numbers = count()
        self._urgent = 0
        self._posted: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"EventQueue({self._name}, {self._waiting.qsize()} waiting)"

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    @property
    def has_urgent(self) -> bool:
        """Whether an event waits that is not patient."""
        return self._urgent > 0

    def post(self, event: Event, *, patient: bool = False) -> None:
        """Run ``event`` some time; an exception is logged."""
        if not self._closed:
            self._put(patient, None, event, None)

    def post_once(self, name: str, event: Event, *, patient: bool = False) -> None:
        """The same, unless an event of this name waits already: for events that read the latest state anyway."""
        if not self._closed and name not in self._posted:
            self._posted.add(name)
            self._put(patient, name, event, None)

    async def run(self, event: Callable[[], Awaitable[_Result]], *, patient: bool = False) -> _Result:
        """Run ``event`` in its turn and return or raise what it does. Raises QueueClosed."""
        if self._closed:
            raise QueueClosed(f"{self._name} is closed")
        done: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._put(patient, None, event, done)
        return await done

    def _put(self, patient: bool, name: str | None, event: Event, done: asyncio.Future[Any] | None) -> None:
        self._urgent += not patient
        self._waiting.put_nowait((patient, next(self._numbers), name, event, done))

    async def close(self) -> None:
        """Stop, also in the middle of an event. Who waits for one gets QueueClosed."""
        self._closed = True
        while not self._waiting.empty():
            *_, done = self._waiting.get_nowait()
            self._give_up(done)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        # While this waits no frame of it keeps the last event, which may keep a large request.
        while True:
            await self._do(*await self._waiting.get())

    async def _do(
        self, patient: bool, _number: int, name: str | None, event: Event, done: asyncio.Future[Any] | None
    ) -> None:
        self._urgent -= not patient
        if name is not None:
            self._posted.discard(name)
        try:
            result = await event()
        except asyncio.CancelledError:
            self._give_up(done)
            if self._closed:
                raise
            logger.exception("an event of %s was cancelled from inside", self._name)
        except Exception as error:
            halt_if_out_of_memory(error)
            if done is None and isinstance(error, SessionExpiredError):
                # What it knew of the cluster is void: the next session reads everything again.
                logger.info("an event of %s was abandoned: %s", self._name, error)
            elif done is None:
                logger.exception("an event of %s failed", self._name)
            elif not done.done():
                done.set_exception(error)
        else:
            if done is not None and not done.done():
                done.set_result(result)

    def _give_up(self, done: asyncio.Future[Any] | None) -> None:
        if done is not None and not done.done():
            done.set_exception(QueueClosed(f"{self._name} is closed"))


class Shift:
    """The time of one patient event with long work, which continues in another event when this one is up."""

    def __init__(self, queue: EventQueue, clock: Clock) -> None:
        self._queue = queue
        self._now_ns = clock.monotonic_ns
        self._until_ns = self._now_ns() + SHIFT_NS
        #: To be awaited often: the broker's other work continues meanwhile.
        self.pause = Pauses(Shares(self._now_ns))

    def __repr__(self) -> str:
        return f"Shift({self._queue!r})"

    async def is_over(self) -> bool:
        """To be asked after each piece of the work."""
        await self.pause()
        return self._queue.has_urgent or self._now_ns() >= self._until_ns
