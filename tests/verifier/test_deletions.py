"""What journals say was deleted on purpose, and what follows for a log that begins later."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stories import TOPIC, Story, clean
from verifier.deletions import Deletions, deletions

KEPT = {"retention.ms": "-1"}


def read(story: Story, path: Path) -> Deletions:
    directory = story.write(path)
    return deletions(directory, story.model().topics)


@pytest.mark.parametrize(
    ("reason", "settings", "asked"),
    [
        (None, {}, 7),
        (None, KEPT, 7),
        ("time", {}, 7),
        ("time", KEPT, 0),
        ("size", {"retention.bytes": "1000"}, 7),
        ("size", {}, 0),
        ("asked for", {}, 0),
        ("log-start", {}, 0),
        ("the leader's log begins later", {}, 0),
    ],
)
def test_only_a_request_or_the_settings_ask_for_a_deletion(
    tmp_path: Path, reason: str | None, settings: dict[str, str], asked: int
) -> None:
    """A move of the log's start for any other reason carries out what somebody asked for, or is a loss."""
    story = clean()
    story.topic_config = settings
    story.delete_below(0, 7, reason)
    assert read(story, tmp_path).judged_from(TOPIC, 0, 20) == asked


def test_what_was_asked_of_any_broker_counts_as_far_as_the_log_begins_there(tmp_path: Path) -> None:
    """The furthest request counts, of whichever leader; records that are still there are judged."""
    story = clean()
    story.delete_below(0, 9, broker=2)
    story.delete_below(0, 4, broker=3)
    found = read(story, tmp_path)
    assert [found.judged_from(TOPIC, 0, start) for start in (20, 9, 6)] == [9, 9, 6]
    assert found.judged_from(TOPIC, 1, 20) == 0


def test_a_replica_is_compared_from_where_it_may_begin(tmp_path: Path) -> None:
    """From its leader's start, or its own if that is later and was asked for."""
    story = clean()
    story.delete_below(0, 9)
    story.delete_below(0, 8, "asked for", broker=2)
    story.delete_below(0, 12, "asked for", broker=3)
    found = read(story, tmp_path)
    assert [found.compared_from(broker, TOPIC, 0, 5) for broker in (1, 2, 3)] == [5, 8, 9]


def test_without_a_journal_nothing_was_deleted_and_a_damaged_one_leaves_it_open(tmp_path: Path) -> None:
    """A journal that cannot be read accuses nobody: what lies below a log's start is then not judged."""
    story = clean()
    assert read(story, tmp_path / "none").judged_from(TOPIC, 0, 6) == 0
    directory = story.write(tmp_path / "damaged")
    directory.control_jsonl(2).write_text('{"event": "log-start", "topic": "t"}\n')
    found = deletions(directory, story.model().topics)
    assert found.complaint is not None
    assert "broker 2" in found.complaint
    assert found.judged_from(TOPIC, 0, 6) == 6
