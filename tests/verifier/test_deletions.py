"""What was deleted on purpose: what the run asked for, and what follows for a log that begins later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.stories import TOPIC, Story, clean
from verifier.accounts.summing import accounts
from verifier.closing.closing import gather
from verifier.deletions import Deletions, complaints, deletions, doubts, have_begun
from verifier.doubts import JOURNALS
from verifier.evidence.run_directory import RunDirectory


def of(story: Story, directory: RunDirectory) -> Deletions:
    return deletions(directory, story.model(), accounts(sorted(directory.history_dir.glob("*.arrow"))))


def read(story: Story, path: Path) -> Deletions:
    return of(story, story.write(path))


def test_only_a_request_on_record_excuses_a_deletion(tmp_path: Path) -> None:
    """DeleteRecords in a history does; what a broker's journal says of itself does not."""
    asked, claimed = clean(), clean()
    asked.delete_below(0, 7)
    for broker in (1, 2, 3):
        claimed.begins_at(0, 7, broker)
    assert read(asked, tmp_path / "asked").judged_from(TOPIC, 0, 20) == 7
    assert read(claimed, tmp_path / "claimed").judged_from(TOPIC, 0, 20) == 0


@pytest.mark.parametrize("outcome", ["ok", "info", "fail"])
def test_a_request_that_certainly_failed_asks_for_nothing(tmp_path: Path, outcome: str) -> None:
    """One of unknown outcome may have been carried out."""
    story = clean()
    story.delete_below(0, 7)
    rows = story.rows["producer-1"]
    rows[-1] = rows[-1]._replace(type=outcome)  # type: ignore[arg-type]
    assert read(story, tmp_path).judged_from(TOPIC, 0, 20) == (0 if outcome == "fail" else 7)


@pytest.mark.parametrize(
    ("settings", "judged_from"),
    [
        ({}, 0),
        ({"retention.ms": "-1", "retention.bytes": "-1"}, 0),
        ({"retention.ms": "5"}, 6),
        ({"retention.bytes": "5"}, 6),
    ],
)
def test_what_a_topic_deletes_by_itself_is_not_judged(
    tmp_path: Path, settings: dict[str, str], judged_from: int
) -> None:
    """With retention on, what lies below the log's start is unknown, and the run cannot be valid for it."""
    story = clean()
    story.topic_config = settings
    story.partitions[0].log_start_offset = 6
    found = read(story, tmp_path)
    assert found.judged_from(TOPIC, 0, 6) == judged_from
    assert bool(complaints(found, story.model())) is bool(judged_from)
    story.partitions[0].log_start_offset = 0
    assert complaints(found, story.model()) == []


def test_the_furthest_request_counts_as_far_as_the_log_begins_there(tmp_path: Path) -> None:
    """Records that are still there are judged, whatever was asked for."""
    story = clean()
    story.delete_below(0, 9)
    story.delete_below(0, 4)
    found = read(story, tmp_path)
    assert [found.judged_from(TOPIC, 0, start) for start in (20, 9, 6)] == [9, 9, 6]
    assert found.judged_from(TOPIC, 1, 20) == 0


def test_a_replica_is_compared_from_where_it_may_begin(tmp_path: Path) -> None:
    """From its leader's start, or its own if that is later and was asked for."""
    story = clean()
    story.delete_below(0, 9)
    story.begins_at(0, 8, broker=2)
    story.begins_at(0, 12, broker=3)
    found = read(story, tmp_path)
    assert [found.compared_from(broker, TOPIC, 0, 5) for broker in (1, 2, 3)] == [5, 8, 9]


def test_a_journal_that_cannot_be_read_is_a_doubt(tmp_path: Path) -> None:
    """It excuses nothing, and the run cannot be valid."""
    story = clean()
    directory = story.write(tmp_path)
    directory.node(2).mkdir(exist_ok=True)
    directory.control_jsonl(2).write_text('{"event": "log-start", "topic": "t"}\n')
    found = of(story, directory)
    assert found.complaint is not None
    (doubt,) = doubts(found)
    assert "broker 2" in doubt.reason and doubt.blinds == JOURNALS
    assert not doubts(read(story, tmp_path / "whole"))
    assert found.judged_from(TOPIC, 0, 6) == 0


@pytest.mark.parametrize("partition", [0, 1])
def test_an_acknowledgement_without_an_offset_may_be_of_what_was_deleted(tmp_path: Path, partition: int) -> None:
    """Where the head of its partition was deleted, nobody can tell whether its record stood there."""
    story = clean(partitions=2)
    rows = story.rows["producer-1"]
    at = next(number for number, row in enumerate(rows) if row.f == "send" and row.partition == 0)
    rows[at] = rows[at]._replace(first_offset=-1, last_offset=-1)
    story.delete_below(partition, 4)
    story.partitions[partition].log_start_offset = 4
    found = complaints(read(story, tmp_path), story.model())
    told = "t-0: records were deleted, and an acknowledgement without an offset may be of one of them"
    assert found == ([told] if partition == 0 else [])


def test_what_may_have_deleted_something(tmp_path: Path) -> None:
    """A request, the topic's retention, or a log that begins above 0 for whatever reason."""

    def begun(name: str, change: Callable[[Story], object]) -> bool:
        story = clean()
        change(story)
        directory = story.write(tmp_path / name)
        return have_begun(story.model(), gather(directory, story.model()).accounts)

    def keep_for_a_second(story: Story) -> None:
        story.topic_config = {"retention.ms": "1000"}

    def begin_later(story: Story) -> None:
        story.partitions[0].log_start_offset = 3

    assert not begun("clean", lambda story: None)
    assert begun("asked", lambda story: story.delete_below(0, 9))
    assert begun("retention", keep_for_a_second)
    assert begun("begins", begin_later)
