"""A follower of ZooKeeper that lags behind its leader: what it has applied of a ``MemoryTree``. For simulation.

Owns that view: all changes in their order, each after the same time. A client of it reads what is old, and is told of
changes when they are applied here; its own writes are answered when they are. Does not own the client (``memory``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import NamedTuple

from cluster.metadata.memory_tree import MemoryTree, Seen
from cluster.metadata.memory_way import server_time_s
from cluster.metadata.store import NoNodeError, Stat


class _LateChange(NamedTuple):
    """What became of a node, and whether its children are what changed."""

    due_s: float
    path: str
    children: bool
    seen: Seen | None


class LaggingView:
    """``changed`` is told (path, whether its children) when a change is applied."""

    def __init__(self, tree: MemoryTree, lag_s: float, changed: Callable[[str, bool], None]) -> None:
        self._tree = tree
        self._lag_s = lag_s
        self._changed = changed
        self._nodes = tree.look_at_all()
        self._changes: deque[_LateChange | tuple[float, asyncio.Future[None]]] = deque()
        self._session_id = tree.open_session(self)

    def __repr__(self) -> str:
        return f"LaggingView({self._lag_s:g} s behind, {len(self._changes)} to come)"

    # What the tree tells it.

    def session_ended(self, session_id: int) -> None:
        """Only ``keep_up``."""

    def node_changed(self, path: str, *, children: bool) -> None:
        self._later(_LateChange(self._due_s(), path, children, self._tree.look_at(path)))

    # What a client reads.

    def get(self, path: str) -> tuple[bytes, Stat]:
        seen = self._node(path)
        return seen.data, seen.stat

    def exists(self, path: str) -> Stat | None:
        seen = self._nodes.get(path)
        return None if seen is None else seen.stat

    def children(self, path: str) -> list[str]:
        return sorted(self._node(path).children)

    def caught_up(self) -> asyncio.Future[None]:
        """Done when all is applied that has happened until now."""
        applied: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._later((self._due_s(), applied))
        return applied

    def keep_up(self) -> None:
        """Apply what is left, and follow no more."""
        self._tree.end_session(self._session_id)
        while self._changes:
            self._apply_next()

    # Time.

    def _due_s(self) -> float:
        return server_time_s() + self._lag_s

    def _later(self, change: _LateChange | tuple[float, asyncio.Future[None]]) -> None:
        self._changes.append(change)
        # Anyone who made the change may be gone by then, and its clock is not the server's.
        Context().run(asyncio.get_running_loop().call_at, change[0], self._apply)

    def _apply(self) -> None:
        now_s = server_time_s()
        while self._changes and self._changes[0][0] <= now_s:
            self._apply_next()

    def _apply_next(self) -> None:
        change = self._changes.popleft()
        if not isinstance(change, _LateChange):
            if not change[1].done():
                change[1].set_result(None)
            return
        if change.seen is None:
            self._nodes.pop(change.path, None)
        else:
            self._nodes[change.path] = change.seen
        self._changed(change.path, change.children)

    def _node(self, path: str) -> Seen:
        seen = self._nodes.get(path)
        if seen is None:
            raise NoNodeError(path)
        return seen
