"""What several groups of planted examples do to a clean story. Owns no example and no expectation."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import crc32c

from tests.support.stories import Batch, Story, row
from tests.verifier.mutations.batches import lose_and_close_up


def change(story: Story, f: str, value: tuple[int, int], process: str | None = None, **fields: Any) -> None:
    """Change the rows of a kind that begin with this value."""
    for name, rows in story.rows.items():
        if process in (None, name):
            story.rows[name] = [
                each._replace(**fields) if each.f == f and (each.stream, each.first_sequence) == value else each
                for each in rows
            ]


def remove(story: Story, f: str, value: tuple[int, int], process: str | None = None) -> None:
    """Remove the rows of a kind that begin with this value."""
    for name, rows in story.rows.items():
        if process in (None, name):
            story.rows[name] = [
                each for each in rows if not (each.f == f and (each.stream, each.first_sequence) == value)
            ]


def append_copy(story: Story, read: bool = True, **identity: Any) -> None:
    """The first batch of stream 1 stands a second time behind everything."""
    place = story.partitions[0]
    copy = replace(story.leader_log(0)[0], base_offset=place.high_watermark, **identity)
    for batches in place.replicas.values():
        batches.append(copy)
    place.high_watermark += 3
    place.log_end_offsets = {broker: end + 3 for broker, end in place.log_end_offsets.items()}
    if read:
        for step, value in enumerate(copy.values):
            story.rows["final-1"].append(row("poll", "ok", 0, *value, value[1], copy.base_offset + step, phase="final"))


def copy_after_timeout(story: Story) -> None:
    """The client timed out, and sent again under a new epoch."""
    append_copy(story, producer_epoch=1)
    story.rows["producer-1"].append(row("reserve", "invoke", 0, 1, 900, 900, -1))
    timed_out = row("send", "info", 0, 1, 900, 900, -1)._replace(error="_MSG_TIMED_OUT: Local: Message timed out")
    story.rows["producer-1"].append(timed_out)


def lose_acked(story: Story) -> None:
    """What the defect does: a batch of stream 1 is acknowledged and not stored, the next ones take its offsets."""
    lose_batch(story, 2)


def lose_batch(story: Story, number: int) -> None:
    """The same of this batch of the log."""

    class That:
        def choice(self, options: Any) -> Any:
            return options[number] if isinstance(options[0], Batch) else options[0]

    lose_and_close_up(story, That())  # type: ignore[arg-type]


def anonymous(story: Story) -> None:
    """Without idempotence batches carry no producer id, and no sequence."""

    def forget(batches: list[Any]) -> None:
        batches[:] = [
            each if each.sentinel else replace(each, producer_id=-1, producer_epoch=-1, base_sequence=-1)
            for each in batches
        ]

    story.everywhere(0, forget)


def reverse_stream(story: Story) -> None:
    """The first two batches of stream 1 change places, in the log and in what clients were told."""
    log = story.leader_log(0)
    first, other, second = log[0], log[1], log[2]
    moved = [replace(second, base_offset=0), other, replace(first, base_offset=second.base_offset)]
    for batches in story.partitions[0].replicas.values():
        batches[:3] = moved
    for process, rows in story.rows.items():
        told = []
        for each in rows:
            if each.stream == 1 and each.f in ("send", "poll") and each.first_sequence < 6:
                shift = 6 if each.first_sequence < 3 else -6
                each = each._replace(first_offset=each.first_offset + shift, last_offset=each.last_offset + shift)
            told.append(each)
        story.rows[process] = told
    read_in_order(story)


def read_in_order(story: Story) -> None:
    """Readers are handed what the log holds in the order of its offsets, live ones all that is committed."""
    for process, rows in story.rows.items():
        if process.startswith(("reader", "final")):
            rows = sorted(rows, key=lambda each: (each.f == "poll", each.first_offset))
            story.rows[process] = [
                each._replace(high_watermark=each.last_offset + 1) if (each.f, each.phase) == ("poll", "load") else each
                for each in rows
            ]


def hole_of_unknowns(story: Story) -> None:
    """No batch covers offsets 3..5, and nobody was told that one did."""
    story.everywhere(0, lambda batches: batches.pop(1))
    change(story, "send", (2, 0), type="info", first_offset=-1, last_offset=-1)
    for sequence in range(3):
        remove(story, "poll", (2, sequence))


def on_follower(story: Story, change_batch: Callable[[list[Batch]], None]) -> None:
    """Change one replica that is not the leader."""
    place = story.partitions[0]
    change_batch(place.replicas[max(broker for broker in place.replicas if broker != place.leader)])


def flip(back: int, *, fix_crc: bool = False) -> Callable[[bytes], bytes]:
    """Change one byte, counted from the end of the batch."""

    def spoil(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[len(data) - back] ^= 0x55
        if fix_crc:
            changed[17:21] = struct.pack(">I", crc32c.crc32c(bytes(changed[21:])))
        return bytes(changed)

    return spoil


def trimmed(story: Story) -> None:
    """Legal: the topic's retention removed the first two batches; nobody can tell what was there."""
    story.topic_config = {"retention.ms": "1000"}
    trimmed_by_nobody(story)


def trimmed_by_nobody(story: Story) -> None:
    """The log begins at 6, though the topic keeps everything and nothing was to be deleted."""
    story.partitions[0].log_start_offset = 6
    story.everywhere(0, lambda batches: batches.__delitem__(slice(0, 2)))
