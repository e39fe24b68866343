"""The heaps of the C library: how many there are, and when they give memory back. Knows nothing of brokers.

glibc gives each thread an arena of its own, up to eight for a core, and what a thread freed stays in its arena. A
broker whose helper threads decode large requests now and then kept 6 MB more for that; with two arenas it kept 3 MB,
for ``malloc_trim`` gives back the free end of the first one alone. And whatever is below memory in use stays with the
process, however long it has been free: after 20,000 odd requests that was another 8 MB.
"""

from __future__ import annotations

import contextlib
import ctypes

#: ``M_ARENA_MAX`` of glibc's ``malloc.h``.
_ARENA_MAX = -8
#: For the event loop and all that works beside it: while one of them runs Python, no other does.
ARENAS = 1


def share_arenas() -> bool:
    """Let all threads to come share one heap. False where the C library has no such setting."""
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).mallopt(_ARENA_MAX, ARENAS))
    return False


def give_back_memory() -> None:
    """Return free pages to the system (``malloc_trim``), where the C library can. Takes 1 ms, or 5 for 40 MB."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
