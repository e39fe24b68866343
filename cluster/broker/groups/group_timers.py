"""The timers of groups, by name. Owns that a name has one timer at most. Does not own what follows when one is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cluster.coordinator.group.decisions import TimerChange, TimerName


class GroupTimers:
    """``fired`` is called with a name and the deadline that it was set to. Lengths are the loop's: a wall clock that is
    set back prolongs none."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fired: Callable[[TimerName, int], None]) -> None:
        self._loop = loop
        self._fired = fired
        self._handles: dict[TimerName, asyncio.TimerHandle] = {}

    def __repr__(self) -> str:
        return f"<GroupTimers: {len(self._handles)}>"

    def __len__(self) -> int:
        return len(self._handles)

    def change(self, change: TimerChange, now_ms: int) -> None:
        """Set or cancel one, by a decision of ``now_ms``."""
        name, deadline_ms = change
        handle = self._handles.pop(name, None)
        if handle is not None:
            handle.cancel()
        if deadline_ms is not None:
            delay_s = max(0, deadline_ms - now_ms) / 1000
            self._handles[name] = self._loop.call_later(delay_s, self._due, name, deadline_ms)

    def _due(self, name: TimerName, deadline_ms: int) -> None:
        del self._handles[name]
        self._fired(name, deadline_ms)

    def close(self) -> None:
        """Cancel all."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()
