"""Planted pairs for what arrives when its client has given it up, which a broker without idempotence takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

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
    "behind a batch that was given up": Planted(
        behind_what_was_given_up, excused(LOSSES, None), neighbor="cut off by an election"
    ),
}
