"""Garbage collection in a process whose event loop must not stop: passes are short, whatever the process holds.

Python's own full collections examine all objects, so they take longer the more a process holds: half a second for a
few million. Here, whatever has survived two passes is set aside (``gc.freeze``), and a pass examines new objects only.
An object that is set aside is still freed when nothing refers to it anymore, unless it is part of a cycle. For cycles
everything is examined now and then; the longer that takes, the less often. Nothing else runs meanwhile.

Owns when Python searches for garbage. Does not own the memory of the C library (``arenas``).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

#: Objects, and collections of the youngest of them, after which Python examines the young ones. Its defaults (700 and
#: 10) are for small programs: a request that names thousands of partitions would be interrupted dozens of times. A
#: pass examines 60,000 objects at most, which takes about 10 ms.
YOUNG_AFTER = (10_000, 5)
#: Collections of the young ones after which what they left is examined again, and set aside.
SET_ASIDE_AFTER = 2
#: Everything is examined when at least this time has passed,
ALL_EACH_NS = 10_000_000_000
#: and this many times what it took the last time.
ALL_EACH_TIMES = 200
#: With more objects than this it takes longer than others should wait (a third of a second for a million of a broker,
#: which are not in the processor's caches), and is done at most this often.
MANY_OBJECTS = 300_000
MANY_EACH_NS = 600_000_000_000
#: Python counts what is set aside by walking through it, 50 ms for a million. If there was too much, it is counted
#: again after this time.
COUNTED_EACH_NS = 60_000_000_000
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
        #: When there was too much to examine; None if it was not counted since everything was examined.
        self._counted_ns: int | None = None

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

    def examine_all(self) -> bool:
        """Examine everything, if that was long ago and something was set aside since; True if it did."""
        begun_ns = self._now_ns()
        elapsed_ns = begun_ns - self._looked_ns
        if not self._has_set_aside or elapsed_ns < max(ALL_EACH_NS, ALL_EACH_TIMES * self._took_ns):
            return False
        if elapsed_ns < MANY_EACH_NS and self._is_too_much(begun_ns):
            return False
        self._counted_ns = None
        self._has_set_aside = False
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._looked_ns = self._now_ns()
        self._took_ns = self._looked_ns - begun_ns
        return True

    def _is_too_much(self, now_ns: int) -> bool:
        if self._counted_ns is not None and now_ns - self._counted_ns < COUNTED_EACH_NS:
            return True
        self._counted_ns = now_ns
        return gc.get_freeze_count() >= MANY_OBJECTS

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
