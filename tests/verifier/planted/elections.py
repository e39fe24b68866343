"""Planted pairs for how much an event excuses: what one log can have held, and how many copies a retry can leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.stories import SECOND, Story
from tests.verifier.planted.changes import change
from tests.verifier.planted.excuses import (
    COPIES,
    LOSSES,
    acknowledged_long_after,
    election,
    excused,
    fault,
    stored_again,
    with_retry,
)
from tests.verifier.planted.model import Planted

WEEK = 7 * 86_400 * SECOND


def acknowledged_under(name: str, target: str) -> Callable[[Story], None]:
    """Acknowledged long after the election, while this fault lasted; broker 2 led before."""

    def plant(story: Story) -> None:
        acknowledged_long_after(story)
        story.faults = fault(name, target, SECOND, WEEK)

    return plant


def acknowledged_at(*offsets: int) -> Callable[[Story], None]:
    """The three values were acknowledged one by one, at these offsets."""

    def plant(story: Story) -> None:
        election()(story)
        rows = story.rows["producer-1"]
        at = next(n for n, each in enumerate(rows) if each.f == "send" and (each.stream, each.first_sequence) == (1, 3))
        rows[at : at + 1] = [
            rows[at]._replace(first_sequence=sequence, last_sequence=sequence, first_offset=offset, last_offset=offset)
            for sequence, offset in zip((3, 4, 5), offsets, strict=True)
        ]

    return plant


def acknowledged_soon(story: Story) -> None:
    """After the election, and within what a client may learn late of."""
    election()(story)
    change(story, "send", (1, 3), invoke_ns=41 * SECOND // 10, complete_ns=42 * SECOND // 10)


def stored_five_times(story: Story) -> None:
    for _ in range(4):
        stored_again(story)


CUT_OFF = "by a leader that was cut off"
AT_ONE_OFFSET = {
    ("lost-write", None): LOSSES["lost-write", None],
    ("inconsistent-offsets", "acknowledged"): {"count": 1, "offset": 6},
    ("log-gap", "sequences"): LOSSES["log-gap", "sequences"],
}

PLANTED: Mapping[str, Planted] = {
    "acknowledged soon after the election": Planted(acknowledged_soon, excused(LOSSES, "election")),
    "by a leader that was killed": Planted(
        acknowledged_under("kill-leader", "broker 2, leader of t-0"), excused(LOSSES, None), neighbor=CUT_OFF
    ),
    "while another broker was cut off": Planted(
        acknowledged_under("isolate-broker", "broker 3, follower of t-0, 5 links"),
        excused(LOSSES, None),
        neighbor=CUT_OFF,
    ),
    "by a leader that a peer could not reach": Planted(
        acknowledged_under("cut-link", "b3-b2, requests only, lossless"), excused(LOSSES, "election")
    ),
    "acknowledged one by one": Planted(acknowledged_at(6, 7, 8), excused(LOSSES, "election")),
    "acknowledged at one offset": Planted(
        acknowledged_at(6, 6, 6), excused(AT_ONE_OFFSET, None), neighbor="acknowledged one by one"
    ),
    "four copies by as many retries": Planted(
        with_retry(stored_five_times, 1, 0, 2, records=12), excused(COPIES, "retry")
    ),
    "four copies by one retry": Planted(
        with_retry(stored_five_times, 1, 0, 2), excused(COPIES, None), neighbor="four copies by as many retries"
    ),
}
