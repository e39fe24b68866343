"""How slow a processor is at the moment, by a small piece of work whose time on the reference machine is known.

Bounds on turns of the loop are in seconds of that machine. A processor that is slower, or whose caches others share,
takes longer for the same steps, and that is not the broker's. Owns the measure. Does not own what is measured with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: The processor time of one piece of work on the machine on which the bounds were set, in seconds.
REFERENCE_S = 0.000_225
#: The least of them counts: an interrupt makes one longer, and would hide a long turn.
SAMPLES = 3


def work() -> int:
    """Objects made, kept, looked through and freed: what the broker's loop does most."""
    table = {number: (number, str(number)) for number in range(2000)}
    return sum(len(pair) for _, pair in table.items())


def slowness(now_s: Callable[[], float] = time.thread_time) -> float:
    """How many times as long as on the reference machine this thread needs now; at least 1."""
    took_s = []
    for _ in range(SAMPLES):
        begun = now_s()
        work()
        took_s.append(now_s() - begun)
    return max(1.0, min(took_s) / REFERENCE_S)
