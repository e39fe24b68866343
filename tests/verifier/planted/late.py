"""Planted pairs for what arrives when its client has given it up, which a broker without idempotence takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.support.settings import settings
from tests.support.stories import SECOND, Batch, Story, row
from tests.verifier.planted.changes import anonymous, change, read_in_order
from tests.verifier.planted.excuses import EARLY, LOSSES, election, excused
from tests.verifier.planted.model import Planted
from verifier.evidence.history import HistoryRow

#: One request at a time, and none is sent again.
ONCE = settings(idempotence=False, retries=0, max_in_flight=1, client="native")
LATE = {"count": 3, "stream": 1, "sequence": 3, "offset": 12}
REORDERED = {("log-reorder", "values"): LATE, ("nonmonotonic-send", None): LATE}
REVERSED = {key: {"count": 6, "stream": 1, "sequence": 6, "offset": 12} for key in REORDERED}


def give_up(story: Story, sequence: int, at_ns: int = 13 * SECOND // 10, lost_ns: int = 13 * SECOND // 10) -> None:
    """The client of stream 1 waits for this batch in vain, and closes the connection."""
    error = "REQUEST_TIMED_OUT: no answer"
    told = {"type": "info", "first_offset": -1, "last_offset": -1, "error": error, "complete_ns": at_ns}
    change(story, "send", (1, sequence), **told)
    lost = row("disconnect", "info", 0, 1, sequence, sequence + 2, -1)
    story.rows["producer-1"].append(lost._replace(complete_ns=lost_ns, count=1))


def overtaken(*, given_up: bool = True, idempotence: bool = False, **times: int) -> Callable[[Story], None]:
    """Values 3 to 5 of stream 1 stand behind 6 to 8, which were sent later. Each is under way for a second."""

    def swap(batches: list[Batch]) -> None:
        late, following = batches[2], batches[4]
        batches[2], batches[4] = replace(following, base_offset=6), replace(late, base_offset=12)

    def moved(each: HistoryRow) -> HistoryRow:
        if each.stream != 1 or each.f not in ("send", "poll") or not 3 <= each.first_sequence < 9:
            return each
        shift = 6 if each.first_sequence < 6 else -6
        each = each._replace(first_offset=each.first_offset + shift, last_offset=each.last_offset + shift)
        return each._replace(invoke_ns=each.complete_ns - SECOND) if each.f == "send" else each

    def plant(story: Story) -> None:
        if not idempotence:
            story.settings = ONCE
            anonymous(story)
        story.everywhere(0, swap)
        story.rows = {process: [moved(each) for each in rows] for process, rows in story.rows.items()}
        read_in_order(story)
        if given_up:
            give_up(story, 3, **times)

    return plant


def behind_what_was_given_up(story: Story) -> None:
    """All stands in the new epoch, the first batch too: it was sent to the new leader, whether it was answered or not.

    Others that nobody knows of may have stood in the part that was cut off.
    """
    election(0, replace(EARLY, client="native", retries=0, max_in_flight=1))(story)
    story.rows["producer-1"] += [row("reserve", "invoke", 0, 1, 20, 25, -1), row("send", "info", 0, 1, 20, 25, -1)]
    give_up(story, 0)


def told_late(**fields: Any) -> Callable[[Story], None]:
    """Given up, and late; of the connection that was lost its client says this."""

    def plant(story: Story) -> None:
        overtaken()(story)
        rows = story.rows["producer-1"]
        rows[:] = [each._replace(**fields) if each.f == "disconnect" else each for each in rows]

    return plant


def refused(error: str) -> Callable[[Story], None]:
    """Its only attempt ended so."""

    def plant(story: Story) -> None:
        overtaken()(story)
        change(story, "send", (1, 3), error=f"{error}: 3 record(s) for t-0 failed after 1 attempt(s)")

    return plant


def three_in_reverse(connections: int) -> Callable[[Story], None]:
    """Values 3 to 8 of stream 1 were given up in two requests, and stand behind 9 to 11, the later request first."""

    def plant(story: Story) -> None:
        story.settings = ONCE
        anonymous(story)

        def swap(batches: list[Batch]) -> None:
            first, last = batches[2], batches[6]
            batches[2], batches[6] = replace(last, base_offset=6), replace(first, base_offset=18)

        def moved(each: HistoryRow) -> HistoryRow:
            shift = {1: 12, 3: -12}.get(each.first_sequence // 3, 0)
            if each.stream != 1 or each.f not in ("send", "poll"):
                return each
            each = each._replace(first_offset=each.first_offset + shift, last_offset=each.last_offset + shift)
            return each._replace(invoke_ns=9 * SECOND // 10) if each.f == "send" and each.first_sequence else each

        story.everywhere(0, swap)
        story.rows = {process: [moved(each) for each in rows] for process, rows in story.rows.items()}
        read_in_order(story)
        for sequence in (3, 6):
            give_up(story, sequence)
        rows = story.rows["producer-1"]
        lost = [each for each in rows if each.f == "disconnect"]
        rows[:] = [each for each in rows if each.f != "disconnect"]
        rows.append(lost[0]._replace(last_sequence=8, count=connections))

    return plant


def led(*leaders: int, given_up: bool = True) -> Callable[[Story], None]:
    """Each broker led in its turn, the epochs from 1.3 and 1.8 s on; values 3 to 5 stand in the last of them."""

    def plant(story: Story) -> None:
        overtaken(given_up=given_up)(story)
        begins = {1: (0,), 2: (0, 12), 3: (0, 6, 12)}[len(leaders)]

        def lead(batches: list[Batch]) -> None:
            batches[:] = [
                replace(each, leader_epoch=sum(each.base_offset >= begin for begin in begins)) for each in batches
            ]

        story.everywhere(0, lead)
        looks = [(0, None), (145 * SECOND // 100, 14 * SECOND // 10), (185 * SECOND // 100, 18 * SECOND // 10)]
        story.leaders = [
            {"time_ns": at, "before_ns": before, "partition": 0, "leader": who, "leader_epoch": epoch, "isr": [1, 2]}
            for epoch, (who, (at, before)) in enumerate(zip(leaders, looks, strict=False), 1)
        ]
        story.partitions[0].leader_epoch = len(leaders)
        story.partitions[0].leader = leaders[-1]

    return plant


def held_back(*leaders: int, in_flight: int = 5) -> Callable[[Story], None]:
    """Values 3 to 5 were acknowledged at 3 s, by the last of these leaders."""

    def plant(story: Story) -> None:
        led(*leaders, given_up=False)(story)
        story.settings = replace(ONCE, max_in_flight=in_flight)
        change(story, "send", (1, 3), complete_ns=3 * SECOND)

    return plant


PLANTED: Mapping[str, Planted] = {
    "given up, and late": Planted(overtaken(), excused(REORDERED, "unanswered")),
    "acknowledged, and late": Planted(
        overtaken(given_up=False), excused(REORDERED, None), neighbor="given up, and late"
    ),
    "given up, and late though the broker knows sequences": Planted(
        overtaken(idempotence=True),
        {
            **excused(REORDERED, None),
            ("sequence-gap", "skipped"): {"count": 2, "offset": 6},
            ("sequence-gap", "backwards"): {"count": 1, "offset": 12},
        },
        neighbor="given up, and late",
    ),
    "given up, and late without a lost connection": Planted(
        overtaken(lost_ns=9 * SECOND), excused(REORDERED, None), neighbor="given up, and late"
    ),
    "overtaken before it was given up": Planted(
        overtaken(at_ns=17 * SECOND // 10), excused(REORDERED, None), neighbor="given up, and late"
    ),
    "given up with another connection than its own": Planted(
        told_late(first_sequence=0, last_sequence=2), excused(REORDERED, None), neighbor="given up, and late"
    ),
    "given up with a connection that carried nothing": Planted(
        told_late(first_sequence=-1, last_sequence=-1), excused(REORDERED, None), neighbor="given up, and late"
    ),
    "given up before its connection was lost": Planted(
        told_late(first_sequence=-1, last_sequence=-1, complete_ns=2 * SECOND), excused(REORDERED, "unanswered")
    ),
    "given up, and no connection was lost": Planted(
        told_late(count=0), excused(REORDERED, None), neighbor="given up, and late"
    ),
    "given up when it was answered": Planted(
        refused("NOT_LEADER_OR_FOLLOWER"), excused(REORDERED, None), neighbor="given up without an answer"
    ),
    "given up without an answer": Planted(refused("NETWORK_EXCEPTION"), excused(REORDERED, "unanswered")),
    "given up in two requests over two connections": Planted(three_in_reverse(2), excused(REVERSED, "unanswered")),
    "given up in two requests over one connection": Planted(
        three_in_reverse(1), excused(REVERSED, None), neighbor="given up in two requests over two connections"
    ),
    "given up before its leader had ever led": Planted(
        led(1, 2), excused(REORDERED, None), neighbor="given up before its leader led again"
    ),
    "given up before its leader led again": Planted(led(1, 2, 1), excused(REORDERED, "unanswered")),
    "acknowledged late by a leader that came back": Planted(held_back(1, 2, 1), excused(REORDERED, "returned")),
    "acknowledged late by a leader that had not led before": Planted(
        held_back(1, 2, 3),
        excused(REORDERED, None),
        neighbor="acknowledged late by a leader that came back",
    ),
    "acknowledged late by the one leader": Planted(
        held_back(1), excused(REORDERED, None), neighbor="acknowledged late by a leader that came back"
    ),
    "acknowledged late where one request is in flight": Planted(
        held_back(1, 2, 1, in_flight=1),
        excused(REORDERED, None),
        neighbor="acknowledged late by a leader that came back",
    ),
    "behind a batch that was given up": Planted(
        behind_what_was_given_up, excused(LOSSES, None), neighbor="cut off by an election"
    ),
}
