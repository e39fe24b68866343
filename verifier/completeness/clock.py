"""Whether the machine's wall clock was steady enough for timestamps to be compared with the run's span. Pure.

Samples are seconds apart, so that a clock which jumped may have stood elsewhere between two of them. A shift within the
margin that all runs are granted is no matter; the bounds are widened by it (``verifier.bounds``).
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.bounds import MARGIN_MS
from verifier.closing.closing import Closing
from verifier.doubts import CLOCK, Doubt
from verifier.evidence.units import seconds_of_ms


def doubts(closing: Closing) -> Iterator[Doubt]:
    """A clock that moved by more than the margin: no one is accused of a timestamp then."""
    moved_ms = closing.clock.span_ms
    if moved_ms > MARGIN_MS:
        yield Doubt(
            f"the wall clock moved by {seconds_of_ms(moved_ms):.1f} s against the monotonic clock during the run "
            "(it was set, or the machine slept)",
            CLOCK,
        )
