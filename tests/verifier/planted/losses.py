"""Planted examples of what is lost, missing or not read, each with its nearest legal neighbor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.support.stories import SENTINEL_STREAM, Batch, Story, row
from tests.verifier.planted.changes import (
    anonymous,
    change,
    hole_of_unknowns,
    lose_acked,
    remove,
)
from tests.verifier.planted.model import Planted


def lose_with_unknown_offset(story: Story) -> None:
    """The last batch of stream 2 is gone; its acknowledgement carried no offset; the sentinel closed up."""
    log = story.leader_log(0)
    lost, sentinel = log[-2], log[-1]
    place = story.partitions[0]
    for broker in place.replicas:
        place.replicas[broker] = [*log[:-2], replace(sentinel, base_offset=lost.base_offset)]
    place.high_watermark -= 3
    place.sentinel_offset -= 3
    place.log_end_offsets = {broker: end - 3 for broker, end in place.log_end_offsets.items()}
    for process, rows in story.rows.items():
        story.rows[process] = [each for each in rows if not (each.f == "poll" and _is(each, lost.values))]
    change(story, "send", lost.values[0], first_offset=-1, last_offset=-1)
    for process in ("sentinel", "final-1"):
        story.rows[process] = [
            each._replace(first_offset=lost.base_offset, last_offset=lost.base_offset)
            if each.stream == SENTINEL_STREAM and each.first_offset >= 0
            else each
            for each in story.rows[process]
        ]


def _is(each: Any, values: tuple[tuple[int, int], ...]) -> bool:
    return (each.stream, each.first_sequence) in values


def lost_with_reversed_offsets(story: Story) -> None:
    """Two values that are lost had been acknowledged in the wrong order: a lost value has no position."""
    lose_with_unknown_offset(story)
    remove(story, "send", (2, 9))
    for sequence in (9, 10, 11):
        story.rows["producer-1"].append(row("send", "ok", 0, 2, sequence, sequence, 900 - sequence))


def behind_the_sentinel(story: Story, read: bool) -> None:
    """A batch was acknowledged behind the sentinel; the final reader stopped there, or passed the sentinel by."""
    place = story.partitions[0]
    late = Batch(place.high_watermark, ((1, 12),), producer_id=1001, base_sequence=12)
    for batches in place.replicas.values():
        batches.append(late)
    place.high_watermark += 1
    place.log_end_offsets = {broker: end + 1 for broker, end in place.log_end_offsets.items()}
    story.rows["producer-1"].append(row("reserve", "invoke", 0, 1, 12, 12, -1))
    story.rows["producer-1"].append(row("send", "ok", 0, 1, 12, 12, late.base_offset))
    if read:
        remove(story, "poll", (SENTINEL_STREAM, 0), "final-1")
        story.rows["final-1"].append(row("poll", "ok", 0, 1, 12, 12, late.base_offset, phase="final"))


def never_acknowledged(lose: Callable[[Story], None], value: tuple[int, int]) -> Callable[[Story], None]:
    """Legal: the same is gone, without the sequence numbers that would show it, and its producer was told nothing."""

    def plant(story: Story) -> None:
        lose(story)
        anonymous(story)
        change(story, "send", value, type="info", first_offset=-1, last_offset=-1)

    return plant


def hole_in_a_compacted_topic(story: Story) -> None:
    """Legal: records that are superseded are removed, and leave holes."""
    hole_of_unknowns(story)
    story.topic_config = {"cleanup.policy": "compact"}


def pass_over_a_marker(story: Story) -> None:
    """One poll brings a final reader what stands on both sides of a transaction's marker: it skipped nothing."""
    place = story.partitions[0]
    marker = Batch(place.high_watermark, (), producer_id=1001, raw_values=(b"\0\0\0\0\0\0",), attributes=0x30)
    behind = Batch(marker.next_offset, ((1, 12),), producer_id=1001, base_sequence=12)
    for batches in place.replicas.values():
        batches += [marker, behind]
    place.high_watermark += 2
    place.log_end_offsets = {broker: end + 2 for broker, end in place.log_end_offsets.items()}
    story.rows["producer-1"].append(row("reserve", "invoke", 0, 1, 12, 12, -1))
    story.rows["producer-1"].append(row("send", "ok", 0, 1, 12, 12, behind.base_offset))
    op = story.rows["final-1"][-1].op
    story.rows["final-1"].append(row("poll", "ok", 0, 1, 12, 12, behind.base_offset, phase="final")._replace(op=op))


PLANTED: Mapping[str, Planted] = {
    "clean": Planted(lambda story: None),
    "lost at the tail": Planted(
        lose_with_unknown_offset,
        {("lost-write", None): {"count": 3, "stream": 2, "sequence": 9, "offset": None}},
        neighbor="gone at the tail, and never acknowledged",
    ),
    "lost in the middle": Planted(
        lose_acked,
        {
            ("lost-write", None): {"count": 3, "stream": 1, "sequence": 3, "offset": 6},
            ("inconsistent-offsets", "acknowledged"): {"count": 3, "offset": 6},
            ("log-gap", "sequences"): {"count": 1, "size": 3, "stream": 1, "sequence": 3, "offset": 6},
            ("sequence-gap", "skipped"): {"count": 1, "offset": 9},
        },
        neighbor="gone in the middle, and never acknowledged",
    ),
    "lost, and acknowledged in the wrong order": Planted(
        lost_with_reversed_offsets, {("lost-write", None): {"count": 3, "stream": 2, "offset": 889}}
    ),
    "a hole": Planted(
        hole_of_unknowns,
        {
            ("log-gap", "offsets"): {"count": 1, "size": 3, "offset": 3},
            ("sequence-gap", "first"): {"count": 1, "offset": 9},
        },
        neighbor="a hole in a compacted topic",
    ),
    "skipped by a final reader": Planted(
        lambda story: remove(story, "poll", (1, 1), "final-1"),
        {
            ("unseen", None): {"count": 1, "stream": 1, "sequence": 1, "offset": 1},
            ("int-poll-skip", None): {"count": 1, "stream": 1, "sequence": 2, "offset": 2},
        },
        neighbor="a poll passes over a marker",
    ),
    "acknowledged behind the sentinel": Planted(lambda story: behind_the_sentinel(story, read=False)),
    "the sentinel itself is skipped": Planted(
        lambda story: behind_the_sentinel(story, read=True),
        {
            ("unseen", None): {"count": 1, "stream": SENTINEL_STREAM, "sequence": 0, "offset": 24},
            ("poll-skip", None): {"count": 1, "stream": 1, "sequence": 12, "offset": 25},
        },
        neighbor="acknowledged behind the sentinel",
    ),
    "gone at the tail, and never acknowledged": Planted(never_acknowledged(lose_with_unknown_offset, (2, 9))),
    "gone in the middle, and never acknowledged": Planted(never_acknowledged(lose_acked, (1, 3))),
    "a hole in a compacted topic": Planted(hole_in_a_compacted_topic),
    "a poll passes over a marker": Planted(
        pass_over_a_marker, {("phantom", "attributes"): {"count": 1, "size": 1, "offset": 25}}
    ),
}
