"""MemorySession: the session of one client of a ``MemoryTree``, with its link, its watches, and how they fail.

Owns a cut link (the session lives on until its timeout), an expired session (the client learns it when it is back), a
link that is slow, a server that lags behind the others (``lagging``), a client whose process stands still. What the
client hears it hears in the context in which it was started. Does not own requests (``memory``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context

from cluster.metadata.lagging import LaggingView
from cluster.metadata.memory_tree import MemoryTree
from cluster.metadata.memory_watch import MemoryWatch
from cluster.metadata.memory_way import Way
from cluster.metadata.store import ConnectionLostError, SessionExpiredError, SessionState
from cluster.seams.units import seconds_of_ms


class MemorySession:
    """``latency_s`` is the time that a message takes, each way."""

    def __init__(self, tree: MemoryTree, session_timeout_ms: int, latency_s: float) -> None:
        self._tree = tree
        #: Who is read from: the tree, or a follower that lags behind it.
        self._reads: MemoryTree | LaggingView = tree
        self._session_timeout_ms = session_timeout_ms
        self._way = Way(latency_s)
        self._session_id = 0
        self._connected = False
        self._link = asyncio.Event()
        self._link.set()
        self._hears = asyncio.Event()
        self._hears.set()
        self._closed = False
        self._links = 0
        self._context: Context | None = None
        self._listeners: list[Callable[[SessionState], None]] = []
        self._watches: list[MemoryWatch] = []
        self._expiry: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = "closed" if self._closed else "connected" if self._connected else "suspended"
        return f"{type(self).__name__}(session={self._session_id:#x}, {state})"

    # What tests do to it.

    def cut(self) -> None:
        """The link breaks: calls raise ConnectionLostError, the session ends after its timeout."""
        if self._link.is_set():
            self._link.clear()
            self._links += 1
            if self._connected:
                self._connected = False
                self._announce(SessionState.SUSPENDED)
            self._way.lose()
            self.stall()

    def heal(self) -> None:
        """The link is back: the session continues, or its end is announced and a new one follows."""
        if not self._link.is_set():
            self._link.set()
            self.unstall()
            self._soon(self._reconnect)

    def stall(self) -> None:
        """The client's process stands still: the server hears nothing, and ends the session after its timeout."""
        self.unstall()
        timeout_s = seconds_of_ms(self._session_timeout_ms)
        self._expiry = asyncio.get_running_loop().call_later(timeout_s, self._tree.end_session, self._session_id)

    def unstall(self) -> None:
        """It continues; if its session has ended, it learns of that now."""
        if self._expiry is not None:
            self._expiry.cancel()

    def slow(self, latency_s: float | None) -> None:
        """From now on requests, answers and events take this long each (None: as usual), and keep their order."""
        self._way.latency_s = self._way.usual_latency_s if latency_s is None else latency_s

    def lag(self, lag_s: float) -> None:
        """The server of this session is a follower that learns of everything so late; undone by ``keep_up``."""
        self.keep_up()
        self._reads = LaggingView(self._tree, lag_s, self._changed)

    def keep_up(self) -> None:
        """Undo ``lag``: the follower has caught up."""
        if isinstance(self._reads, LaggingView):
            view = self._reads
            self._reads = self._tree
            view.keep_up()

    def deafen(self) -> None:
        """What the server sends (answers and events) is held back until ``hear``; what is asked of it still happens."""
        self._hears.clear()

    def hear(self) -> None:
        """Undo ``deafen``: what was held arrives."""
        if not self._hears.is_set():
            self._hears.set()
            for watch in self._watches:
                self._soon_once(watch)

    def expire(self) -> None:
        """The server ends the session now."""
        self._tree.end_session(self._session_id)

    # What the tree tells it.

    def session_ended(self, session_id: int) -> None:
        if session_id == self._session_id and self._link.is_set() and not self._closed:
            self._links += 1
            self._soon(self._reconnect)

    def node_changed(self, path: str, *, children: bool) -> None:
        if self._reads is self._tree:
            self._changed(path, children)

    def _changed(self, path: str, children: bool) -> None:
        for watch in self._watches:
            if watch.path == path and watch.children == children and self._connected and self._hears.is_set():
                self._soon_once(watch)

    def _soon(self, act: Callable[..., None], *arguments: object) -> None:
        asyncio.get_running_loop().call_soon(act, *arguments, context=self._context)

    def _soon_once(self, watch: MemoryWatch) -> None:
        if not watch.is_scheduled:
            watch.is_scheduled = True
            self._way.bring(self._soon, watch.call)

    # The seam, as far as it is of the session.

    @property
    def session_id(self) -> int:
        return self._session_id if self._tree.is_open(self._session_id) else 0

    @property
    def session_timeout_ms(self) -> int:
        return self._session_timeout_ms

    async def start(self, timeout_ms: int) -> None:
        self._context = copy_context()
        async with asyncio.timeout(seconds_of_ms(timeout_ms)):
            await self._link.wait()
        self._reconnect()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._connected = False
            self._way.lose()
            if self._link.is_set():
                self._tree.end_session(self._session_id)

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        self._listeners.append(listener)

    def watch_data(self, path: str, listener: Callable[[], None]) -> None:
        self._watch(path, listener, children=False)

    def watch_children(self, path: str, listener: Callable[[], None]) -> None:
        self._watch(path, listener, children=True)

    def _watch(self, path: str, listener: Callable[[], None], *, children: bool) -> None:
        watch = MemoryWatch(path, children, listener)
        self._watches.append(watch)
        if self._connected:
            self._soon_once(watch)

    def _require(self, session_id: int, links: int) -> None:
        if self._closed or session_id != self._session_id:
            raise SessionExpiredError(f"session {session_id:#x} is over")
        if not self._connected or links != self._links:
            if self._link.is_set() and not self._tree.is_open(session_id):
                raise SessionExpiredError(f"session {session_id:#x} is over")
            raise ConnectionLostError("the link is cut")
        if not self._tree.is_open(session_id):
            raise ConnectionLostError("the server has ended the session, which is not known here yet")

    def _reconnect(self) -> None:
        if self._closed or not self._link.is_set():
            return
        if self._session_id and not self._tree.is_open(self._session_id):
            self._connected = False
            self._announce(SessionState.EXPIRED)
            self._session_id = 0
        if not self._session_id:
            self._session_id = self._tree.open_session(self)
        self._connected = True
        self._announce(SessionState.CONNECTED)
        for watch in self._watches:
            self._soon_once(watch)

    def _announce(self, state: SessionState) -> None:
        for listener in self._listeners:
            self._soon(listener, state)
