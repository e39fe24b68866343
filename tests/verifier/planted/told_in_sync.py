"""Planted examples of watermarks that move while too few are in sync, each with its nearest legal neighbor.

Broker 1 leads partition 0 in epoch 1. At 1,600 ms a reader has two polls, and is told of the watermarks 15 and 18; all
that both streams sent meanwhile was sent at 1,590 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.support.stories import Story
from tests.verifier.planted.headers import both
from tests.verifier.planted.in_sync import PLACE, TOO_FEW, led, noted
from tests.verifier.planted.model import Planted


def alone(from_ms: int, until_ms: int, high_watermark: int, epoch_start_offset: int = 0) -> Callable[[Story], None]:
    """The leader is alone in its ISR for so long, and notes how far it had committed."""
    known = {"high_watermark": high_watermark, "epoch_start_offset": epoch_start_offset}
    begun = noted(1, "under-min-isr", from_ms, **PLACE, **TOO_FEW, **known)
    return both(begun, noted(1, "under-min-isr-over", until_ms, **PLACE))


def unclean(story: Story) -> None:
    """An election may cut off what is committed."""
    story.settings = replace(story.settings, unclean_leader_election=True)


def found(count: int, offset: int) -> Mapping[tuple[str, str | None], Mapping[str, int]]:
    return {("watermark-under-min-isr", None): {"count": count, "partition": 0, "offset": offset}}


STANDS = "a watermark that stands, and its leader is alone"
EARLIER = "a watermark that moved before its leader was alone"
LATER = "a watermark that moves when the ISR has grown"
FORMER = "a watermark below the start of its leader's epoch"
CUT_OFF = "a watermark of a later epoch, and elections cut off what is committed"
SECOND = led((0, 0, 1), (500, 1, 1))

PLANTED: Mapping[str, Planted] = {
    STANDS: Planted(alone(1590, 1700, 18)),
    "a watermark that moves, and its leader is alone": Planted(alone(1590, 1700, 12), found(2, 12), neighbor=STANDS),
    "a watermark that moves once, and its leader is alone": Planted(
        alone(1590, 1700, 15), found(1, 15), neighbor=STANDS
    ),
    EARLIER: Planted(alone(1600, 1700, 12)),
    "a watermark that moved when its leader was alone": Planted(alone(1599, 1700, 12), found(2, 12), neighbor=EARLIER),
    LATER: Planted(alone(1590, 1600, 12)),
    "a watermark that moves before the ISR has grown": Planted(alone(1590, 1601, 12), found(2, 12), neighbor=LATER),
    FORMER: Planted(both(alone(1590, 1700, 12, 18), SECOND)),
    "a watermark above the start of its leader's epoch": Planted(
        both(alone(1590, 1700, 12, 15), SECOND), found(1, 15), neighbor=FORMER
    ),
    CUT_OFF: Planted(both(alone(1590, 1700, 12), SECOND, unclean)),
    "a watermark of a first epoch, and elections cut off what is committed": Planted(
        both(alone(1590, 1700, 12), unclean), found(2, 12), neighbor=CUT_OFF
    ),
}
