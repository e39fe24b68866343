"""Planted examples of values that nobody wrote, and of parties that disagree, with their legal neighbors."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.stories import Batch, Story, row
from tests.verifier.planted.changes import (
    change,
)
from tests.verifier.planted.model import Planted
from verifier.evidence.sequenced_value import encode


def forget_read_value(story: Story) -> None:
    """A value that nobody acknowledged was read at offset 0 and is nowhere: another one stands there."""
    story.rows["producer-1"].append(row("reserve", "invoke", 0, 1, 500, 500, -1))
    story.rows["producer-1"].append(row("send", "info", 0, 1, 500, 500, -1)._replace(error="_PURGE_INFLIGHT: Local"))
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 500, 500, 0)._replace(session=2))


def read_beyond(story: Story) -> None:
    """A value that nobody acknowledged was read behind the end of the final log."""
    story.rows["producer-1"].append(row("reserve", "invoke", 0, 1, 500, 500, -1))
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 500, 500, 4000)._replace(session=2))


def held_twice(story: Story) -> None:
    """A batch stands at an offset that the log has given to another; readers were handed both."""
    place = story.partitions[0]
    at = place.high_watermark - 2
    story.rows["producer-1"].append(row("reserve", "invoke", 0, 1, 500, 500, -1))
    story.rows["producer-1"].append(row("send", "info", 0, 1, 500, 500, -1)._replace(error="_PURGE_INFLIGHT: Local"))
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 500, 500, at)._replace(session=2))
    for batches in place.replicas.values():
        batches.append(Batch(at, ((1, 500),)))


def never_reserved(story: Story) -> None:
    """The reservation of stream 1 ends one too early."""
    change(story, "reserve", (1, 0), last_sequence=10)


def failed_and_there(story: Story) -> None:
    """A batch whose send certainly failed is in the log."""
    change(story, "send", (1, 0), type="fail", first_offset=-1, last_offset=-1)


def foreign_value(story: Story) -> None:
    """Somebody else wrote into the topic."""
    place = story.partitions[0]
    stranger = Batch(place.high_watermark, (), raw_values=(b"hello", encode(1, 1, 1, 1)))
    for batches in place.replicas.values():
        batches.append(stranger)
    place.high_watermark += 2
    place.log_end_offsets = {broker: end + 2 for broker, end in place.log_end_offsets.items()}


def undecodable_read(story: Story) -> None:
    """A reader of the load phase was handed damaged bytes at offset 1."""
    story.rows["reader-1"].append(
        row("poll", "ok", 0, -1, -1, -1, 1)._replace(last_offset=1, session=2, error="undecodable: damaged")
    )


def failed_then_acknowledged(story: Story) -> None:
    """Legal: a first try certainly failed, the second was acknowledged."""
    story.rows["producer-1"].append(row("send", "fail", 0, 1, 0, 2, -1))


def read_from_nowhere(story: Story) -> None:
    """A reader was handed a value that nobody had reserved, at an offset that the log does not have."""
    story.rows["reader-1"].append(row("poll", "ok", 0, 9, 500, 500, 4000)._replace(session=2))


def senseless_rows(story: Story) -> None:
    """Rows whose ranges contradict each other are no claims: they are counted, and the run is unknown."""
    story.rows["producer-1"].append(row("send", "ok", 0, 1, 5, 3, 7))
    story.rows["producer-1"].append(row("send", "ok", 0, 1, 500, 502, 600)._replace(last_offset=601))
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 0, 2, 50)._replace(last_sequence=20_000_000, session=2))


PLANTED: Mapping[str, Planted] = {
    "acknowledged elsewhere": Planted(
        lambda story: change(story, "send", (1, 9), first_offset=800, last_offset=802),
        {("inconsistent-offsets", "acknowledged"): {"count": 3, "offset": 800}},
        neighbor="an acknowledgement without an offset",
    ),
    "read and then another": Planted(
        forget_read_value,
        {("inconsistent-offsets", "read"): {"count": 1, "offset": 0}},
        neighbor="read again where it is",
    ),
    "read and then nothing": Planted(
        read_beyond, {("inconsistent-offsets", "read"): {"count": 1, "offset": 4000}}, neighbor="read again where it is"
    ),
    "held and read twice": Planted(
        held_twice,
        {
            ("inconsistent-offsets", "read"): {"count": 1, "offset": 23},
            ("log-reorder", "offsets"): {"count": 3, "offset": 23},
            ("checkpoint-mismatch", "high-watermark"): {"count": 1},
        },
        neighbor="read again where it is",
    ),
    "read from nowhere": Planted(
        read_from_nowhere,
        {
            ("phantom", "never-reserved"): {"count": 1, "stream": 9, "sequence": 500, "offset": 4000},
            ("inconsistent-offsets", "read"): {"count": 1, "offset": 4000},
        },
        neighbor="read again where it is",
    ),
    "never reserved": Planted(
        never_reserved,
        {("phantom", "never-reserved"): {"count": 1, "stream": 1, "sequence": 11, "offset": 20}},
        neighbor="clean",
    ),
    "failed and yet there": Planted(
        failed_and_there,
        {("phantom", "failed"): {"count": 3, "stream": 1, "sequence": 0, "offset": 0}},
        neighbor="failed, then acknowledged",
    ),
    "a foreign value": Planted(
        foreign_value, {("phantom", "foreign"): {"count": 2, "offset": 25}}, neighbor="the broker's own time"
    ),
    "handed out as garbage": Planted(
        undecodable_read, {("phantom", "undecodable"): {"count": 1, "offset": 1}}, neighbor="read again where it is"
    ),
    "an acknowledgement without an offset": Planted(
        lambda story: change(story, "send", (1, 0), first_offset=-1, last_offset=-1)
    ),
    "unknown outcomes": Planted(
        lambda story: change(story, "send", (1, 0), type="info", first_offset=-1, last_offset=-1)
    ),
    "failed, then acknowledged": Planted(failed_then_acknowledged),
    "rows that make no sense": Planted(senseless_rows),
}
