"""Planted examples of what is acknowledged while too few are in sync, each with its nearest legal neighbor.

Broker 1 leads partition 0 in epoch 1. Values 6 to 8 of both streams were sent from 1,590 ms on, and acknowledged at
1,600 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.support.stories import SECOND, TOPIC, Story
from tests.verifier.planted.headers import both
from tests.verifier.planted.model import Planted

MS = SECOND // 1000
PLACE = {"topic": TOPIC, "partition": 0}
TOO_FEW = {"leader_epoch": 1, "isr": [1], "min_insync_replicas": 2}


def noted(broker: int, event: str, time_ms: int, **more: Any) -> Callable[[Story], None]:
    """A broker's journal has this line."""
    line = {"event": event, "monotonic_ns": time_ms * MS, **more}
    return lambda story: story.journals.setdefault(broker, []).append(line)


def under(from_ms: int, until_ms: int) -> Callable[[Story], None]:
    """The leader is alone in its ISR for so long, and two are wanted."""
    begun = noted(1, "under-min-isr", from_ms, **PLACE, **TOO_FEW)
    return both(begun, noted(1, "under-min-isr-over", until_ms, **PLACE))


def led(*looks: tuple[int, int, int]) -> Callable[[Story], None]:
    """The conductor saw these leaders: when in ms, which epoch, and who. Each look is 100 ms after the one before."""

    def plant(story: Story) -> None:
        story.leaders = [
            {
                **PLACE,
                "time_ns": time_ms * MS,
                "before_ns": (time_ms - 100) * MS if number else None,
                "leader": leader,
                "leader_epoch": epoch,
                "isr": [1, 2, 3],
            }
            for number, (time_ms, epoch, leader) in enumerate(looks)
        ]

    return plant


def acks_of_one(story: Story) -> None:
    story.settings = replace(story.settings, acks="1", idempotence=False)


FOUND = {("under-min-isr", None): {"count": 2, "partition": 0, "offset": 12}}
GROWN = "acknowledged when the ISR has grown"
ALONE = "a leader that is alone takes what was sent before"

PLANTED: Mapping[str, Planted] = {
    GROWN: Planted(under(1500, 1600)),
    "acknowledged before the ISR has grown": Planted(under(1500, 1601), FOUND, neighbor=GROWN),
    ALONE: Planted(under(1590, 1700)),
    "a leader that is alone takes what was sent then": Planted(under(1589, 1700), FOUND, neighbor=ALONE),
    "a controller has written a larger ISR, which its leader does not note": Planted(
        both(
            under(1500, 1700),
            noted(2, "partition-changed", 1600, **PLACE, leader=1, leader_epoch=1, isr=[1, 2], reason="isr"),
        )
    ),
    "a controller wrote the smaller ISR": Planted(
        both(
            under(1500, 1700),
            noted(2, "partition-changed", 1550, **PLACE, leader=1, leader_epoch=1, isr=[1], reason="isr"),
        ),
        FOUND,
        neighbor="a controller has written a larger ISR, which its leader does not note",
    ),
    "a leader is started again, and notes nothing more": Planted(
        both(noted(1, "under-min-isr", 1500, **PLACE, **TOO_FEW), noted(1, "logs-loaded", 1600))
    ),
    "a leader dies after it took what it should not": Planted(
        both(noted(1, "under-min-isr", 1500, **PLACE, **TOO_FEW), noted(1, "logs-loaded", 1601)),
        FOUND,
        neighbor="a leader is started again, and notes nothing more",
    ),
    "a leader that is alone, and a former one that may not know it": Planted(
        both(under(1500, 1700), led((0, 0, 2), (500, 1, 1)))
    ),
    "a leader that is alone, and led before": Planted(
        both(under(1500, 1700), led((0, 0, 1), (500, 1, 1))),
        FOUND,
        neighbor="a leader that is alone, and a former one that may not know it",
    ),
    "acknowledged with acks=1 by a leader that is alone": Planted(both(under(1500, 1700), acks_of_one)),
}
