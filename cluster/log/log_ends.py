"""LogEnds: where a log ended when, so that it is known later who has written nothing since.

Owns after which time a producer may make room for another one, by the broker's clock. Does not own whether it does
(``producers.py``). Pure.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

#: A producer that wrote nothing for this long makes room for another in a log that has enough of them. It is more than
#: a producer continues sending the same batch again by default (delivery.timeout.ms, two minutes).
ROOM_MS = 300_000
#: Distance of the moments of which it is known where the log ended.
MOMENT_MS = 10_000


class _Moment(NamedTuple):
    monotonic_ms: int
    offset: int


class LogEnds:
    """Of one log."""

    def __init__(self) -> None:
        self._moments: deque[_Moment] = deque()

    def __repr__(self) -> str:
        return f"LogEnds({len(self._moments)})"

    def note_end(self, end_offset: int, monotonic_ms: int) -> None:
        """The log ends there now."""
        moments = self._moments
        if not moments or monotonic_ms - moments[-1].monotonic_ms >= MOMENT_MS:
            moments.append(_Moment(monotonic_ms, end_offset))
        while len(moments) > 1 and monotonic_ms - moments[1].monotonic_ms >= ROOM_MS:
            moments.popleft()

    def idle_below(self, monotonic_ms: int) -> int | None:
        """Where the log ended ``ROOM_MS`` ago, as far as ``note_end`` was told."""
        moment = self._moments[0] if self._moments else None
        return None if moment is None or monotonic_ms - moment.monotonic_ms < ROOM_MS else moment.offset

    def cut(self, offset: int) -> None:
        """The log ends at ``offset`` now: it was never longer."""
        while self._moments and self._moments[-1].offset > offset:
            self._moments.pop()
