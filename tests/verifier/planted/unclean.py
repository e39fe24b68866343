"""Planted pairs for what an unclean election may have moved: readers, watermarks, and what a producer's log holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.support.settings import settings
from tests.support.stories import SECOND, Story
from tests.verifier.planted.changes import change
from tests.verifier.planted.excuses import WEEK, elect
from tests.verifier.planted.headers import sequences_of
from tests.verifier.planted.model import Planted
from tests.verifier.planted.readers import SKIPPED, pass_over, read_again
from tests.verifier.planted.timing import BACK, watermarks

UNCLEAN = settings(unclean_leader_election=True, replica_lag_time_max_ms=1000, session_timeout_ms=1000)

AGAIN = {"count": 1, "size": 3, "stream": 2, "sequence": 0, "offset": 3}
GAP = {"count": 1, "offset": 21}


def elected(
    damage: Callable[[Story], None], start_offset: int, at_ns: int = 13 * SECOND // 10
) -> Callable[[Story], None]:
    """The same after an election that the conductor saw, where a replica that lacks batches may lead."""

    def plant(story: Story) -> None:
        damage(story)
        story.settings = UNCLEAN
        elect(story, start_offset, at_ns=at_ns)

    return plant


def long_after(story: Story) -> None:
    """The reader had come there, and goes on, when the old leader was long gone."""
    elected(pass_over, 0)(story)
    for value in ((1, 0), (1, 3)):
        change(story, "poll", value, "reader-1", invoke_ns=WEEK, complete_ns=WEEK)


def excused(check: str, found: Mapping[str, Any], cause: str | None = None) -> dict[tuple[str, str | None], Any]:
    """An unclean election excuses it."""
    return {(check, cause): {**found, "excuse": "election"}}


PLANTED: Mapping[str, Planted] = {
    "set forward by an unclean election": Planted(elected(pass_over, 0), excused("poll-skip", SKIPPED)),
    "set forward from where an unclean election cut": Planted(
        elected(pass_over, 3), {("poll-skip", None): SKIPPED}, neighbor="set forward by an unclean election"
    ),
    "set forward before an unclean election": Planted(
        elected(pass_over, 0, WEEK), {("poll-skip", None): SKIPPED}, neighbor="set forward by an unclean election"
    ),
    "set forward long after an unclean election": Planted(
        long_after, {("poll-skip", None): SKIPPED}, neighbor="set forward by an unclean election"
    ),
    "set back by an unclean election": Planted(elected(read_again, 3), excused("nonmonotonic-poll", AGAIN)),
    "set back from where an unclean election cut": Planted(
        elected(read_again, 6), {("nonmonotonic-poll", None): AGAIN}, neighbor="set back by an unclean election"
    ),
    "a watermark that an unclean election sets back": Planted(
        elected(watermarks(12, 9), 0), excused("watermark-regression", BACK["watermark-regression", None])
    ),
    "a watermark that goes back before an unclean election": Planted(
        elected(watermarks(12, 9), 0, WEEK), BACK, neighbor="a watermark that an unclean election sets back"
    ),
    "sequences that an unclean election cut off": Planted(
        elected(sequences_of(2, [0, 3, 6, 10]), 21), excused("sequence-gap", GAP, "skipped")
    ),
    "sequences skipped after an unclean election": Planted(
        elected(sequences_of(2, [0, 3, 6, 10]), 15),
        {("sequence-gap", "skipped"): GAP},
        neighbor="sequences that an unclean election cut off",
    ),
}
