"""Pauses: long work on the event loop lets others have their turn.

Owns how long a share of such work is, and the turn of the loop after it. Does not own the work: answers that are made
in shares (``portions.py``), and what is done for each of thousands of logs (``checkpoints.py``, ``housekeeping.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

#: How long something is worked on before others have their turn.
SHARE_NS = 5_000_000


class Pauses:
    """For a caller that awaits much that is there already: awaited again and again, it lets others have their turn."""

    __slots__ = ("_now_ns", "_until_ns")

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._until_ns = now_ns() + SHARE_NS

    def __repr__(self) -> str:
        return f"Pauses(until {self._until_ns})"

    async def __call__(self) -> None:
        if self._now_ns() >= self._until_ns:
            await asyncio.sleep(0)
            self._until_ns = self._now_ns() + SHARE_NS
