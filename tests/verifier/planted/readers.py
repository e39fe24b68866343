"""Planted examples for the anomalies of readers, and for what looks like one and is legal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.stories import TOPIC, Story
from tests.verifier.planted.changes import (
    hole_of_unknowns,
    remove,
    trimmed,
)
from tests.verifier.planted.model import Planted
from verifier.evidence.history import Function, HistoryRow


def _index(rows: list[HistoryRow], offset: int) -> int:
    return next(index for index, each in enumerate(rows) if each.f == "poll" and each.first_offset == offset)


def moved(f: Function, offset: int, session: int = 1) -> HistoryRow:
    """A reader is told to go on there."""
    return HistoryRow(f, "ok", TOPIC, 0, first_offset=offset, last_offset=offset, session=session)


def pass_over(story: Story) -> None:
    """The live reader is handed offsets 0..2, and then 6."""
    rows = story.rows["reader-1"]
    del rows[_index(rows, 3)]


def pass_over_at_first(story: Story) -> None:
    """The live reader is to read from offset 0 on, and is handed 3."""
    rows = story.rows["reader-1"]
    del rows[_index(rows, 0)]


def read_again(story: Story) -> None:
    """The live reader is handed offsets 3..5 by two polls."""
    rows = story.rows["reader-1"]
    at = _index(rows, 3)
    rows.insert(at + 1, rows[at]._replace(op=100))


def begin_too_early(story: Story) -> None:
    """The live reader is to read from offset 3 on, and is handed 0."""
    rows = story.rows["reader-1"]
    rows[0] = rows[0]._replace(first_offset=3, last_offset=3)


def repeat_inside(story: Story) -> None:
    """One poll of the final reader brings offset 4 twice."""
    rows = story.rows["final-1"]
    at = _index(rows, 4)
    rows.insert(at + 1, rows[at])


def move(
    spoil: Callable[[Story], None], f: Function, at: int, offset: int, session: int = 1
) -> Callable[[Story], None]:
    """Legal: as ``spoil``, but the reader was told, before the poll that begins ``at``, to go on at ``offset``."""

    def plant(story: Story) -> None:
        spoil(story)
        rows = story.rows["reader-1"]
        index = max(number for number, each in enumerate(rows) if each.f == "poll" and each.first_offset == at)
        rows[index:] = [each._replace(session=session) for each in rows[index:]]
        rows.insert(index, moved(f, offset, session))

    return plant


def begin_behind_the_deleted(story: Story) -> None:
    """Legal: retention removed what lies below 6, and a reader that begins at 0 is handed 6."""
    trimmed(story)
    rows = story.rows["reader-1"]
    del rows[_index(rows, 0) : _index(rows, 6)]


def pass_over_a_hole(story: Story) -> None:
    """No batch covers offsets 3..5, and nobody says that anything was there: it is the log that lacks it."""
    hole_of_unknowns(story)


def pass_over_what_another_read(story: Story) -> None:
    """No batch covers offsets 3..5; a reader was handed them, and another one was not."""
    hole = list(story.rows["reader-1"])
    hole_of_unknowns(story)
    story.rows["reader-2"] = [each for each in hole if each.first_offset < 6]


SKIPPED = {"count": 1, "size": 3, "stream": 1, "sequence": 3, "offset": 6}

PLANTED: Mapping[str, Planted] = {
    "a poll passes over a batch": Planted(pass_over, {("poll-skip", None): SKIPPED}, neighbor="a reader seeks forward"),
    "the first poll begins too late": Planted(
        pass_over_at_first,
        {("poll-skip", None): {"count": 1, "size": 3, "stream": 2, "sequence": 0, "offset": 3}},
        neighbor="a reader begins behind what was deleted",
    ),
    "a reader seeks forward": Planted(move(pass_over, "seek", 6, 6)),
    "a reader is assigned further on": Planted(
        move(pass_over, "assign", 6, 6, session=2),
        {("poll-skip", None): {"count": 1, "size": 3, "stream": None, "sequence": None, "offset": 6}},
        neighbor="a reader is assigned where it had come",
    ),
    "a reader is assigned where it had come": Planted(move(lambda story: None, "assign", 6, 6, session=2)),
    "a reader is assigned behind a hole": Planted(
        move(hole_of_unknowns, "assign", 6, 6, session=2),
        {
            ("log-gap", "offsets"): {"count": 1, "size": 3, "offset": 3},
            ("sequence-gap", "first"): {"count": 1, "offset": 9},
        },
    ),
    "a session without its assignment": Planted(
        lambda story: story.rows["reader-1"].__delitem__(slice(0, 2)),
    ),
    "a reader begins behind what was deleted": Planted(begin_behind_the_deleted),
    "readers pass over a hole": Planted(
        pass_over_a_hole,
        {
            ("log-gap", "offsets"): {"count": 1, "size": 3, "offset": 3},
            ("sequence-gap", "first"): {"count": 1, "offset": 9},
        },
    ),
    "a reader passes over what another one read": Planted(
        pass_over_what_another_read,
        {
            ("log-gap", "offsets"): {"count": 1, "size": 3, "offset": 3},
            ("sequence-gap", "first"): {"count": 1, "offset": 9},
            ("inconsistent-offsets", "read"): {"count": 3, "offset": 3},
            ("poll-skip", None): {**SKIPPED, "count": 2, "size": 6},
        },
    ),
    "a poll passes over a value inside": Planted(
        lambda story: remove(story, "poll", (2, 1), "final-1"),
        {
            ("int-poll-skip", None): {"count": 1, "size": 1, "stream": 2, "sequence": 2, "offset": 5},
            ("unseen", None): {"count": 1, "stream": 2, "sequence": 1, "offset": 4},
        },
        neighbor="a poll passes over a marker",
    ),
    "a batch handed out twice": Planted(
        read_again,
        {("nonmonotonic-poll", None): {"count": 1, "size": 3, "stream": 2, "sequence": 0, "offset": 3}},
        neighbor="a reader seeks back",
    ),
    "a reader seeks back": Planted(move(read_again, "seek", 3, 3)),
    "a reader is assigned again": Planted(move(read_again, "assign", 3, 3, session=2)),
    "a reader is handed what is before its assignment": Planted(
        begin_too_early,
        {("nonmonotonic-poll", None): {"count": 1, "size": 3, "offset": 0}},
        neighbor="a reader is assigned again",
    ),
    "one poll brings a value twice": Planted(
        repeat_inside,
        {("int-nonmonotonic-poll", None): {"count": 1, "size": 1, "stream": 2, "sequence": 1, "offset": 4}},
        neighbor="a reader seeks back",
    ),
}
