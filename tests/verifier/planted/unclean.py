"""Planted pairs for what an unclean election may have moved: readers, and the watermarks that they are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.settings import settings
from tests.support.stories import SECOND, Story, row
from tests.verifier.planted.changes import change
from tests.verifier.planted.excuses import LOSSES, WEEK, elect, election, excused
from tests.verifier.planted.model import Planted
from tests.verifier.planted.timing import BACK, EARLY_READ, told, watermarks

UNCLEAN = settings(unclean_leader_election=True, replica_lag_time_max_ms=1000, session_timeout_ms=1000)


def cut(*, handed: bool, without: tuple[int, ...] = (), again: bool = False) -> Callable[[Story], None]:
    """Values 3 to 5 of stream 1 were at offsets 6 to 8 until an unclean election cut them off; others took their place.

    ``handed``: the live reader had them by then. ``without``: what stands at these offsets it is not handed. ``again``:
    what stands from 6 on it is handed twice.
    """

    def plant(story: Story) -> None:
        election(6, UNCLEAN)(story)
        rows = [each for each in story.rows["reader-1"] if each.f != "poll" or each.first_offset not in without]
        at = next(number for number, each in enumerate(rows) if each.first_offset >= 6)
        if handed:
            rows.insert(at, row("poll", "ok", 0, 1, 3, 5, 6))
        if again:
            rows.insert(at, rows[at]._replace(op=100))
        story.rows["reader-1"] = rows

    return plant


def long_after(story: Story) -> None:
    """The reader was handed them when the old leader was long gone."""
    cut(handed=True)(story)
    change(story, "poll", (1, 3), "reader-1", invoke_ns=WEEK, complete_ns=WEEK)


def taken_back(at_ns: int) -> Callable[[Story], None]:
    """A reader is handed offsets 9 to 11 when it knows the watermark 11, and the conductor saw an election."""

    def plant(story: Story) -> None:
        told(11)(story)
        story.settings = UNCLEAN
        elect(story, 0, at_ns=at_ns)

    return plant


def set_back(start_offset: int, at_ns: int) -> Callable[[Story], None]:
    """A watermark goes back from 15 to 12, and the conductor saw an election."""

    def plant(story: Story) -> None:
        watermarks(15, 12)(story)
        story.settings = UNCLEAN
        elect(story, start_offset, at_ns=at_ns)

    return plant


def lost(cause: str) -> dict[tuple[str, str | None], dict[str, object]]:
    """What an unclean election cut off, which is excused; whether a reader saw it, too, is the cause."""
    found = {key: value for key, value in LOSSES.items() if key[0] != "inconsistent-offsets"}
    return excused(
        {**found, ("inconsistent-offsets", cause): LOSSES["inconsistent-offsets", "acknowledged"]}, "election"
    )


MOVED = {"count": 1, "size": 3, "stream": 2, "sequence": 3, "offset": 6}
AHEAD = {"count": 1, "size": 3, "stream": 2, "sequence": 6, "offset": 12}

PLANTED: Mapping[str, Planted] = {
    "set back by an unclean election": Planted(
        cut(handed=True), {**lost("read"), **excused({("nonmonotonic-poll", None): MOVED}, "election")}
    ),
    "set back from what stands": Planted(
        cut(handed=False, again=True),
        {**lost("acknowledged"), ("nonmonotonic-poll", None): MOVED},
        neighbor="set back by an unclean election",
    ),
    "set back long after an unclean election": Planted(
        long_after,
        {
            **lost("read"),
            ("nonmonotonic-poll", None): MOVED,
        },
        neighbor="set back by an unclean election",
    ),
    "set forward by an unclean election": Planted(
        cut(handed=True, without=(6, 9)), {**lost("read"), **excused({("poll-skip", None): AHEAD}, "election")}
    ),
    "set forward from what stands": Planted(
        cut(handed=False, without=(9,)),
        {**lost("acknowledged"), ("poll-skip", None): AHEAD},
        neighbor="set forward by an unclean election",
    ),
    "a watermark that an unclean election sets back": Planted(
        set_back(0, 13 * SECOND // 10), excused(BACK, "election")
    ),
    "handed what an unclean election takes back": Planted(
        taken_back(13 * SECOND // 10), excused(EARLY_READ, "election")
    ),
    "handed what was not committed before an unclean election": Planted(
        taken_back(WEEK), EARLY_READ, neighbor="handed what an unclean election takes back"
    ),
    "a watermark that goes back before an unclean election": Planted(
        set_back(0, WEEK), BACK, neighbor="a watermark that an unclean election sets back"
    ),
}
