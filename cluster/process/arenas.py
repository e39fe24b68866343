"""How many heaps the C library keeps for the threads of a process. Owns that setting; knows nothing of brokers.

glibc gives each thread an arena of its own, up to eight for a core, and what a thread freed stays in its arena. A
broker whose helper threads decode large requests now and then kept 6 MB more for that, of no use to anybody.
"""

from __future__ import annotations

import contextlib
import ctypes

#: ``M_ARENA_MAX`` of glibc's ``malloc.h``.
_ARENA_MAX = -8
#: One for the event loop, one for all that works beside it.
ARENAS = 2


def share_arenas() -> bool:
    """Let all threads to come share two heaps. False where the C library has no such setting."""
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).mallopt(_ARENA_MAX, ARENAS))
    return False
