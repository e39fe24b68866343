"""One unit of time made from another, by name: for all but the verifier.

Each layer has a unit of its own (``docs/design.md`` "Units") and converts where it meets another, here and nowhere
else, but for what is done for every request. The verifier shares no code with the cluster and has
``verifier.evidence.units``. Pure. Does not own what times look like to people (``loadgen.durations``).
"""

from __future__ import annotations

NS_PER_MS = 1_000_000


def seconds_of_ms(milliseconds: float) -> float:
    """What asyncio, sockets and threads wait for."""
    return milliseconds / 1000


def seconds_of_ns(nanoseconds: float) -> float:
    """What people and rates are told in."""
    return nanoseconds / 1e9


def ms_of_ns(nanoseconds: float) -> float:
    """A latency or a lag, with its fraction."""
    return nanoseconds / 1e6


def whole_ms_of_ns(nanoseconds: int) -> int:
    """A moment of a clock, rounded down."""
    return nanoseconds // NS_PER_MS


def seconds_of_microseconds(microseconds: float) -> float:
    """A delay in Toxiproxy's smallest unit."""
    return microseconds / 1_000_000


def ms_of_seconds(seconds: float) -> float:
    """What was asked for in seconds, or is told by asyncio's clock."""
    return seconds * 1000


def ms_of_minutes(minutes: int) -> int:
    """What was asked for in minutes."""
    return minutes * 60_000


def ns_of_ms(milliseconds: int) -> int:
    """A moment or a span of a layer that counts milliseconds, exactly."""
    return milliseconds * NS_PER_MS


def ns_of_seconds(seconds: float) -> int:
    """What was asked for in seconds, rounded down."""
    return int(seconds * 1e9)
