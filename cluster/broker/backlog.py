"""What one connection keeps behind its first unanswered request, and whether its next request may start.

Answers leave in the order of requests. So while one request waits (a produce for its followers, a fetch for bytes), the
answers and results of those behind it are kept. Owns the bound and the sum. The first request does not count: it waits
for nothing on this connection, so one request behind it may always start, however much the first one keeps. Does not
own the requests, their order, or how reading is paused (``server``).
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.seams.storage import FileRange, Payload

#: Unanswered requests of one connection above which no more are read until half of them are answered.
MAX_UNANSWERED = 100
#: What may be kept behind the first of them before the next request starts. It may keep anything then.
MAX_WAITING_BYTES = 262_144

#: One part of an answer apart from its bytes; the part of a file is not in memory.
_PART_BYTES = 128


class Backlog:
    """Of one connection."""

    __slots__ = ("_kept_bytes",)

    def __init__(self) -> None:
        self._kept_bytes = 0

    def __repr__(self) -> str:
        return f"<Backlog of {self._kept_bytes} bytes>"

    @property
    def kept_bytes(self) -> int:
        """What all unanswered requests keep, the first one included."""
        return self._kept_bytes

    def change(self, before_bytes: int, now_bytes: int) -> None:
        """One request keeps ``now_bytes``; 0 when its answer leaves."""
        self._kept_bytes += now_bytes - before_bytes

    def may_start(self, unanswered: int, first_bytes: int, *, is_paused: bool) -> bool:
        """Whether the next request may start while ``unanswered`` others wait, of which the first keeps
        ``first_bytes``."""
        most = MAX_UNANSWERED // 2 if is_paused else MAX_UNANSWERED - 1
        return unanswered <= most and self._kept_bytes - first_bytes <= MAX_WAITING_BYTES


def answer_bytes(parts: Sequence[Payload]) -> int:
    """The memory of an answer that waits."""
    return sum(_PART_BYTES + (0 if isinstance(part, FileRange) else len(part)) for part in parts)
