"""How far a live reader must have come where acknowledgements do not say where their values stand: the log says it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.judge import judge
from tests.support.settings import settings
from tests.support.stories import SECOND, TOPIC, Story, clean
from tests.verifier.planted.changes import anonymous, change
from verifier.evidence.history import HistoryRow

#: The last batch of the load: the values 9 to 11 of stream 2, at the offsets 21 to 23.
LAST = (2, 9)


def unacknowledged() -> Story:
    """With acks=0 no acknowledgement has an offset."""
    story = clean()
    story.settings = settings(acks="0", idempotence=False)
    anonymous(story)
    nowhere(story, 0)
    return story


def nowhere(story: Story, first_sequence: int) -> None:
    """From this sequence on, no acknowledgement has an offset."""
    story.rows["producer-1"] = [
        each._replace(first_offset=-1, last_offset=-1)
        if each.f == "send" and each.first_sequence >= first_sequence
        else each
        for each in story.rows["producer-1"]
    ]


def stop(story: Story, offset: int) -> None:
    """The live reader is handed nothing at this offset or above."""
    story.rows["reader-1"] = [each for each in story.rows["reader-1"] if each.f != "poll" or each.first_offset < offset]


def stopped_halfway() -> Story:
    story = unacknowledged()
    stop(story, 12)
    return story


def without_the_last() -> Story:
    story = unacknowledged()
    stop(story, 21)
    return story


def without_the_newest() -> Story:
    """What the reader lacks was acknowledged less than 5 s before ``recovery``, which begins at 51 s."""
    story = without_the_last()
    change(story, "send", LAST, complete_ns=46 * SECOND + 1)
    return story


def without_what_is_not_stored() -> Story:
    """Nobody could read what the log does not have."""
    story = without_the_last()
    story.everywhere(0, lambda batches: batches.pop(-2))
    return story


def without_what_was_sent_again() -> Story:
    """The idempotent producer's last batches were sent again, and the broker had them already."""
    story = clean()
    nowhere(story, 6)
    story.rows["producer-1"] += [HistoryRow("retry", "info", TOPIC, 0, stream, 6, 11, count=6) for stream in (1, 2)]
    stop(story, 12)
    return story


#: What is said of how far the reader came.
CASES: dict[Callable[[], Story], str | None] = {
    unacknowledged: None,
    stopped_halfway: "t-0: reader-1 came to offset 11 live, of 23 acknowledged before recovery",
    without_the_last: "t-0: reader-1 came to offset 20 live, of 23 acknowledged before recovery",
    without_the_newest: None,
    without_what_is_not_stored: None,
    without_what_was_sent_again: "t-0: reader-1 came to offset 11 live, of 23 acknowledged before recovery",
}


@pytest.mark.full
def test_the_log_says_how_far_a_reader_must_have_come(spark: Any, tmp_path: Path) -> None:
    """Where an acknowledgement has no offset, its value has one; without it nothing would be due at all."""
    told = {each.__name__: each().write(tmp_path / each.__name__).path for each in CASES}
    judged = judge(spark, told, tmp_path / "scratch")
    said = {
        name: [reason for reason in found.reasons if "acknowledged before recovery" in reason]
        for name, found in judged.items()
    }
    assert said == {each.__name__: [] if reason is None else [reason] for each, reason in CASES.items()}
    valid = {name for name, found in judged.items() if found.verdict == "valid"}
    assert valid == {each.__name__ for each in (unacknowledged, without_the_newest)}
