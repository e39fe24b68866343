"""One event at a time: the queue that keeps two changes of the cluster from interleaving.

Owns the order and the task. Does not own what an event does; one that raises is its caller's, or the log's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from cluster.metadata.store import SessionExpiredError

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

#: Something to do, from start to end, before anything else of this queue is begun.
Event = Callable[[], Awaitable[Any]]

#: Puts an event into a queue, for somebody who knows nothing else of it.
Post = Callable[[Event], None]


class QueueClosed(ConnectionError):
    """The queue was closed before the event was done."""


class EventQueue:
    """Runs events in the order in which they came."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: asyncio.Queue[tuple[str | None, Event, asyncio.Future[Any] | None]] = asyncio.Queue()
        self._posted: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"EventQueue({self._name}, {self._waiting.qsize()} waiting)"

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    def post(self, event: Event) -> None:
        """Run ``event`` some time; an exception is logged."""
        if not self._closed:
            self._waiting.put_nowait((None, event, None))

    def post_once(self, name: str, event: Event) -> None:
        """The same, unless an event of this name waits already: for events that read the latest state anyway."""
        if not self._closed and name not in self._posted:
            self._posted.add(name)
            self._waiting.put_nowait((name, event, None))

    async def run(self, event: Callable[[], Awaitable[_Result]]) -> _Result:
        """Run ``event`` in its turn and return or raise what it does. Raises QueueClosed."""
        if self._closed:
            raise QueueClosed(f"{self._name} is closed")
        done: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((None, event, done))
        return await done

    async def close(self) -> None:
        """Stop, also in the middle of an event. Who waits for one gets QueueClosed."""
        self._closed = True
        while not self._waiting.empty():
            _, _, done = self._waiting.get_nowait()
            self._give_up(done)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            name, event, done = await self._waiting.get()
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
                if done is None and isinstance(error, SessionExpiredError):
                    # What it knew of the cluster is void: the next session reads everything again.
                    logger.info("an event of %s was given up: %s", self._name, error)
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
