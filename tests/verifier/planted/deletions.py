"""Planted examples of what is gone because it was deleted, or is said to be, each with its nearest legal neighbor."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.settings import settings
from tests.support.stories import Story, row
from tests.verifier.planted.changes import (
    anonymous,
    change,
    lose_acked,
    on_follower,
    trimmed,
    trimmed_by_nobody,
)
from tests.verifier.planted.model import Planted


def trimmed_further_than_asked(story: Story) -> None:
    """A client had records below 3 deleted; the log begins at 6, and its broker says that this was asked for."""
    trimmed_by_nobody(story)
    story.delete_below(0, 3)
    story.begins_at(0, 6)


def trimmed_on_its_own_word(story: Story) -> None:
    """The log begins at 6, and only the brokers themselves say why: a journal is no witness for its broker."""
    trimmed_by_nobody(story)
    story.topic_config = {"retention.ms": "-1"}
    for broker in story.partitions[0].replicas:
        story.begins_at(0, 6, broker)


def deleted_below_12(story: Story) -> None:
    """Legal: a client had records below 12 deleted, of those that were written, acknowledged and read."""
    story.partitions[0].log_start_offset = 12
    story.delete_below(0, 12)
    for broker in story.partitions[0].replicas:
        story.begins_at(0, 12, broker)


def lost_and_then_deleted(story: Story) -> None:
    """A batch was acknowledged at 6 to 8 and not stored, another one was read there; then all below 12 was deleted."""
    lose_acked(story)
    deleted_below_12(story)


def read_otherwise_and_then_deleted(story: Story) -> None:
    """Two readers were handed different values at 6, of which nobody was told where they are; then it was deleted."""
    change(story, "send", (1, 3), first_offset=-1, last_offset=-1)
    story.rows["producer-1"].append(row("reserve", "invoke", 0, 1, 500, 500, -1))
    story.rows["producer-1"].append(row("send", "info", 0, 1, 500, 500, -1)._replace(error="_PURGE_INFLIGHT: Local"))
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 500, 500, 6)._replace(session=2))
    deleted_below_12(story)


def cut_off_and_then_deleted(story: Story) -> None:
    """Legal with acks=1: what was acknowledged at 6 to 8 may have been cut off; the epochs that tell are deleted."""
    lost_and_then_deleted(story)
    story.settings = settings(acks="1", idempotence=False)
    anonymous(story)


def deleted_by_request(story: Story) -> None:
    """Legal: a client had records below 4 deleted; whole segments are still there, and a follower lags behind."""
    story.partitions[0].log_start_offset = 4
    story.delete_below(0, 4)
    story.begins_at(0, 4)
    story.begins_at(0, 3, broker=2)


def added_after_a_deletion(story: Story) -> None:
    """Legal: a replica was added after records below 4 were deleted; its first batch is the one that holds 4."""
    story.partitions[0].log_start_offset = 4
    story.delete_below(0, 4)
    story.begins_at(0, 4, broker=3)
    on_follower(story, lambda batches: batches.__delitem__(0))


def led_by_one_added_after_a_deletion(story: Story) -> None:
    """Legal: the same replica leads in the end, and those before it still hold the first batch too."""
    added_after_a_deletion(story)
    story.partitions[0].leader = 3


def added_without_its_first_batch(story: Story) -> None:
    """A replica that was added after a deletion below 4 begins behind the batch that holds 4: it lacks 4 and 5."""
    added_after_a_deletion(story)
    on_follower(story, lambda batches: batches.__delitem__(0))


def follower_ahead_in_retention(story: Story) -> None:
    """Legal: each replica looks at the time by itself; one has deleted what its leader still has."""
    story.topic_config = {"retention.ms": "1000"}
    story.begins_at(0, 6, broker=3)
    on_follower(story, lambda batches: batches.__delitem__(slice(0, 2)))


def follower_lost_its_beginning(story: Story) -> None:
    """A replica's log begins at 6, as its journal says, though nothing was to be deleted: it lacks two batches."""
    story.begins_at(0, 6, broker=3)
    on_follower(story, lambda batches: batches.__delitem__(slice(0, 2)))


def compacted(story: Story) -> None:
    """Superseded records are gone from a compacted topic: nothing about it is judged."""
    lose_acked(story)
    story.topic_config = {"cleanup.policy": "compact,delete"}


def unknown_offsets_after_retention(story: Story) -> None:
    """Legal: what retention removed had been acknowledged without an offset."""
    trimmed(story)
    for value in ((1, 0), (2, 0)):
        change(story, "send", value, first_offset=-1, last_offset=-1)


PLANTED: Mapping[str, Planted] = {
    "retention": Planted(trimmed),
    "deleted by nobody": Planted(
        trimmed_by_nobody,
        {
            ("lost-write", None): {"count": 6, "stream": 1, "sequence": 0, "offset": 0},
            ("inconsistent-offsets", "read"): {"count": 6, "offset": 0},
            ("log-gap", "sequences"): {"count": 2, "size": 6, "stream": 1, "sequence": 0, "offset": 0},
        },
        neighbor="retention",
    ),
    "deleted further than asked for": Planted(
        trimmed_further_than_asked,
        {
            ("lost-write", None): {"count": 3, "stream": 2, "sequence": 0, "offset": 3},
            ("inconsistent-offsets", "read"): {"count": 3, "offset": 3},
            ("log-gap", "sequences"): {"count": 1, "size": 3, "stream": 2, "sequence": 0, "offset": 3},
        },
        neighbor="deleted by request",
    ),
    "deleted on the brokers' own word": Planted(
        trimmed_on_its_own_word,
        {
            ("lost-write", None): {"count": 6, "stream": 1, "sequence": 0, "offset": 0},
            ("inconsistent-offsets", "read"): {"count": 6, "offset": 0},
            ("log-gap", "sequences"): {"count": 2, "size": 6, "stream": 1, "sequence": 0, "offset": 0},
        },
        neighbor="retention",
    ),
    "lost and then deleted": Planted(
        lost_and_then_deleted,
        {("inconsistent-offsets", "acknowledged"): {"count": 3, "offset": 6}},
        neighbor="stored and then deleted",
    ),
    "read otherwise and then deleted": Planted(
        read_otherwise_and_then_deleted,
        {("inconsistent-offsets", "read"): {"count": 1, "offset": 6}},
        neighbor="stored and then deleted",
    ),
    "stored and then deleted": Planted(deleted_below_12),
    "cut off and then deleted": Planted(cut_off_and_then_deleted),
    "deleted by request": Planted(deleted_by_request),
    "a replica that was added after a deletion": Planted(added_after_a_deletion),
    "led by a replica that was added after a deletion": Planted(led_by_one_added_after_a_deletion),
    "added after a deletion without the batch of its start": Planted(
        added_without_its_first_batch,
        {("log-divergence", "missing"): {"count": 1, "offset": 3}},
        neighbor="a replica that was added after a deletion",
    ),
    "a follower that deleted first": Planted(follower_ahead_in_retention),
    "a follower that lost its beginning": Planted(
        follower_lost_its_beginning,
        {("log-divergence", "missing"): {"count": 2, "offset": 0}},
        neighbor="a follower that deleted first",
    ),
    "a compacted topic": Planted(compacted),
    "retention of what had no offset": Planted(unknown_offsets_after_retention),
}
