"""Checks that the wall clock was steady enough to compare timestamps with the start and end of the run. Pure.

Owns this doubt. The clock is sampled every few seconds, so a clock that jumped may have shown other times between two
samples. A shift within the margin that every run has raises no doubt; ``verifier.bounds`` widens the bounds by it.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.bounds import MARGIN_MS
from verifier.closing.closing import Closing
from verifier.doubts import CLOCK, Doubt
from verifier.evidence.units import seconds_of_ms


def doubts(closing: Closing) -> Iterator[Doubt]:
    """A doubt if the clock moved by more than the margin. Then no timestamp counts as an anomaly."""
    moved_ms = closing.clock.span_ms
    if moved_ms > MARGIN_MS:
        yield Doubt(
            f"the wall clock moved by {seconds_of_ms(moved_ms):.1f} s against the monotonic clock during the run "
            "(it was set, or the machine slept)",
            CLOCK,
        )
