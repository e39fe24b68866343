"""Planted pairs for how much an event excuses: what one log can have held, and how many copies a retry can leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.support.stories import SECOND, Batch, Story, row
from tests.verifier.planted.changes import change, lose_batch
from tests.verifier.planted.excuses import (
    AFTER,
    COPIES,
    EARLY,
    LOSSES,
    acknowledged_long_after,
    disconnect,
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


def came_again(
    client: str,
    max_in_flight: int,
    at_ns: int = 13 * SECOND // 10,
    start_offset: int = 0,
    value: tuple[int, int] = (1, 0),
) -> Callable[[Story], None]:
    """The batch that begins with this value stands in the new epoch because it was sent again, twice."""

    def plant(story: Story) -> None:
        election(start_offset, replace(EARLY, client=client, max_in_flight=max_in_flight))(story)
        again = row("retry", "info", 0, *value, value[1] + 2, -1)._replace(
            error="retry: NOT_LEADER_OR_FOLLOWER", count=6
        )
        story.rows["producer-1"].append(again._replace(complete_ns=at_ns))

    return plant


def between_elections(stands_from: int, start_offset: int) -> Callable[[Story], None]:
    """Of epoch 2 nothing is left: epoch 1 stands from the one offset on, and epoch 3 begins at the other."""

    def plant(story: Story) -> None:
        election(start_offset, replace(EARLY, client="native", retries=0))(story)
        story.everywhere(0, renumber)
        first, last = story.leaders
        last |= {"leader_epoch": 3, "leader": 1, "time_ns": 15 * SECOND // 10, "before_ns": 135 * SECOND // 100}
        between = {"leader_epoch": 2, "leader": 2, "time_ns": 125 * SECOND // 100, "before_ns": 11 * SECOND // 10}
        story.leaders = [first, {**last, **between}, last]

    def renumber(batches: list[Batch]) -> None:
        batches[:] = [
            replace(each, leader_epoch=3 if each.leader_epoch == 2 else int(each.base_offset >= stands_from))
            for each in batches
        ]

    return plant


def two_stretches(connections: int) -> Callable[[Story], None]:
    """acks=0: the last batch of the stream is lost, too, and what lies between the two stands."""

    def plant(story: Story) -> None:
        disconnect(1, 21 * SECOND // 10, connections)(story)
        lose_batch(story, 5)

    return plant


CUT_OFF = "by a leader that was cut off"
AT_ONE_OFFSET = {
    ("lost-write", None): LOSSES["lost-write", None],
    ("inconsistent-offsets", "acknowledged"): {"count": 1, "offset": 6},
    ("log-gap", "sequences"): LOSSES["log-gap", "sequences"],
}

LOST = ("lost-write", None)
TWO = {**AFTER, LOST: {**AFTER[LOST], "count": 6}}


def seen_at(at_ns: int) -> Callable[[Story], None]:
    """What stands in the new epoch was acknowledged from 1.3 s on; the conductor saw it begin about then."""

    def plant(story: Story) -> None:
        election(at_ns=at_ns)(story)
        # readers are handed it a little later, so that nothing was committed before
        story.rows["reader-1"] = [
            each._replace(complete_ns=each.complete_ns + SECOND // 5) if each.f == "poll" else each
            for each in story.rows["reader-1"]
        ]

    return plant


PLANTED: Mapping[str, Planted] = {
    "in an epoch that was seen a little late": Planted(seen_at(4 * SECOND), excused(LOSSES, "election")),
    "in an epoch that was seen long after": Planted(
        seen_at(20 * SECOND), excused(LOSSES, None), neighbor="in an epoch that was seen a little late"
    ),
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
    "behind what came again": Planted(came_again("native", 5), excused(LOSSES, "election")),
    "behind what came again, with one batch in flight": Planted(
        came_again("native", 1), excused(LOSSES, None), neighbor="behind what came again"
    ),
    "where another that came again stands": Planted(
        came_again("native", 5, start_offset=6, value=(2, 3)), excused(LOSSES, "election")
    ),
    "handed over after what came again": Planted(
        came_again("native", 5, 12 * SECOND // 10), excused(LOSSES, None), neighbor="behind what came again"
    ),
    "acknowledged between two elections": Planted(between_elections(0, 9), excused(LOSSES, "election")),
    "acknowledged below what stands before two elections": Planted(
        between_elections(9, 12), excused(LOSSES, None), neighbor="acknowledged between two elections"
    ),
    "two stretches with two connections": Planted(two_stretches(2), excused(TWO, "disconnect")),
    "two stretches with one connection": Planted(
        two_stretches(1),
        {**excused(TWO, "disconnect"), LOST: {**TWO[LOST], "excuse": None}},
        neighbor="two stretches with two connections",
    ),
    "four copies by as many retries": Planted(
        with_retry(stored_five_times, 1, 0, 2, records=12), excused(COPIES, "retry")
    ),
    "four copies by one retry": Planted(
        with_retry(stored_five_times, 1, 0, 2), excused(COPIES, None), neighbor="four copies by as many retries"
    ),
}
