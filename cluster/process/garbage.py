"""Looking for garbage, in a process with an event loop that must not stand still: no pass looks at everything.

Python's own full collections look at all objects there are, so they take longer the more a process holds: half a second
for a few million. Here what has survived two passes is set aside (``gc.freeze``), so that a pass looks at what is new
alone. Whatever is set aside still goes when nothing refers to it anymore; only objects that refer to each other in
circles do not. For these all is looked at now and then, the more seldom the longer it takes.

Owns when Python looks for garbage. Does not own the memory of the C library (``arenas``).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

#: Objects, and collections of the youngest of them, after which Python looks at the young ones. Its defaults (700 and
#: 10) are for small programs: a request that names thousands of partitions would be interrupted dozens of times. What
#: is looked at then is 60,000 objects at most, which takes about 10 ms.
YOUNG_AFTER = (10_000, 5)
#: Collections of the young ones after which what they left is looked at once more, and set aside.
SET_ASIDE_AFTER = 2
#: All is looked at when at least this time has passed,
ALL_EACH_NS = 10_000_000_000
#: and so many times what it took the last time.
ALL_EACH_TIMES = 500
#: Instead of Python's own full collections.
_NEVER = 2**31 - 1


class Garbage:
    """Of the process. ``begin`` it when what lives as long as the process was made; ``end`` restores Python's way."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now_ns: Callable[[], int]) -> None:
        self._loop = loop
        self._now_ns = now_ns
        self._thresholds = gc.get_threshold()
        self._young = 0
        self._is_due = False
        self._has_set_aside = False
        self._looked_ns = now_ns()
        self._took_ns = 0

    def __repr__(self) -> str:
        return f"<Garbage: {gc.get_freeze_count()} objects set aside>"

    def begin(self) -> None:
        """What is there now is set aside."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(*YOUNG_AFTER, _NEVER)
        gc.callbacks.append(self._collected)
        gc.enable()

    def end(self) -> None:
        if self._collected in gc.callbacks:
            gc.callbacks.remove(self._collected)
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()

    def look_at_all(self) -> bool:
        """Look at everything, if something was set aside since the last time and that is long ago; whether it did."""
        wait_ns = max(ALL_EACH_NS, ALL_EACH_TIMES * self._took_ns)
        begun_ns = self._now_ns()
        if not self._has_set_aside or begun_ns - self._looked_ns < wait_ns:
            return False
        self._has_set_aside = False
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._looked_ns = self._now_ns()
        self._took_ns = self._looked_ns - begun_ns
        return True

    def _collected(self, phase: str, info: dict[str, Any]) -> None:
        """Python has collected, in whichever thread it was."""
        if phase == "stop" and info["generation"] == 1:
            self._young += 1
            if self._young >= SET_ASIDE_AFTER and not self._is_due:
                self._is_due = True
                self._loop.call_soon_threadsafe(self._set_aside)

    def _set_aside(self) -> None:
        self._young, self._is_due, self._has_set_aside = 0, False, True
        gc.collect()
        gc.freeze()
