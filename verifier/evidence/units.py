"""One unit of time made from another: the only place in the verifier where that is done.

Times of a run are nanoseconds of its monotonic clock (``docs/design.md`` "Units"); what was asked for is in seconds,
batches and settings have milliseconds. Pure. Others have ``cluster.seams.units``: no code is shared with the cluster.
"""

from __future__ import annotations

NS_PER_MS = 1_000_000


def seconds_of_ms(milliseconds: float) -> float:
    """What people are told, and what ``datetime`` takes."""
    return milliseconds / 1000


def seconds_of_ns(nanoseconds: float) -> float:
    """What people are told."""
    return nanoseconds / 1e9


def ms_of_ns(nanoseconds: float) -> float:
    """A latency, a lag or a gap, with its fraction."""
    return nanoseconds / 1e6


def microseconds_of_ns(nanoseconds: float) -> float:
    """What ``timedelta`` takes."""
    return nanoseconds / 1000


def whole_ms_of_ns(nanoseconds: int) -> int:
    """A moment of a clock, rounded down."""
    return nanoseconds // NS_PER_MS


def ms_of_seconds(seconds: float) -> float:
    """What ``datetime`` told, as batches have it."""
    return seconds * 1000


def ns_of_ms(milliseconds: int) -> int:
    """A setting of the cluster, exactly."""
    return milliseconds * NS_PER_MS


def ns_of_seconds(seconds: float) -> int:
    """What was asked for in seconds, rounded down."""
    return int(seconds * 1e9)
