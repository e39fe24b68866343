"""Slices: a task of Locust's lasts a fifth of a second, so that Locust can stop a user between two of them.

Owns how long a slice is, and that the other users have their turns in it. Does not own what is done.
"""

from __future__ import annotations

from collections.abc import Callable

import gevent

from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ns

SLICE_NS = 200_000_000


def for_a_slice(clock: Clock, work: Callable[[int], int]) -> None:
    """Call ``work`` with the current time over and over, for one slice. It returns the ns until its next call."""
    end_ns = clock.monotonic_ns() + SLICE_NS
    while (now_ns := clock.monotonic_ns()) < end_ns:
        gevent.sleep(seconds_of_ns(work(now_ns)))
