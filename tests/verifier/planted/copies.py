"""Planted examples of values that stand twice or in another order, each with its nearest legal neighbor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.support.stories import SECOND, Batch, Story, row
from tests.verifier.planted.changes import (
    append_copy,
    change,
    copy_after_timeout,
    read_in_order,
    reverse_stream,
)
from tests.verifier.planted.model import Planted


def late_incarnation(story: Story) -> None:
    """Legal: a producer ended by a fatal error; what it had in flight arrives behind its successor's first batch."""
    log = story.leader_log(0)
    story.partitions[0].replicas = {
        broker: [
            replace(log[2], base_offset=0, producer_id=3000, base_sequence=0),
            log[1],
            replace(log[0], base_offset=6),
            log[3],
            replace(log[4], producer_id=3000, base_sequence=3),
            log[5],
            replace(log[6], producer_id=3000, base_sequence=6),
            *log[7:],
        ]
        for broker in story.partitions[0].replicas
    }
    for process, rows in story.rows.items():
        told = []
        for each in rows:
            if each.stream == 1 and each.f in ("send", "poll") and each.first_sequence < 6:
                shift = 6 if each.first_sequence < 3 else -6
                each = each._replace(first_offset=each.first_offset + shift, last_offset=each.last_offset + shift)
            told.append(each)
        story.rows[process] = told
    read_in_order(story)
    # nobody was told of it; its successor's was sent before anything else was acknowledged
    given_up = {"type": "info", "first_offset": -1, "last_offset": -1, "error": "outstanding at a fatal error"}
    change(story, "send", (1, 0), complete_ns=1400 * SECOND // 1000, **given_up)
    change(story, "send", (1, 3), invoke_ns=990 * SECOND // 1000, producer_id=3000)
    for sequence in (6, 9):
        change(story, "send", (1, sequence), producer_id=3000)


def acknowledged_to_the_former(story: Story) -> None:
    """The same, and the batch that came late was acknowledged: its client had the answer before it had a successor."""
    late_incarnation(story)
    told = {"type": "ok", "first_offset": 6, "last_offset": 8, "error": None}
    change(story, "send", (1, 0), **told)


def three_copies(story: Story) -> None:
    """Two copies of one producer, and a third of another."""
    append_copy(story)
    append_copy(story, producer_id=5000)


def acknowledged_at_its_copy(story: Story) -> None:
    """A batch stands twice and was acknowledged where its second copy is: its first place counts for its order."""
    append_copy(story)
    change(story, "send", (1, 0), first_offset=25, last_offset=27)


def read_where_it_no_longer_is(story: Story) -> None:
    """A value was read at an offset that the final log does not have; it stands elsewhere."""
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 0, 0, 4000)._replace(session=2))


def resent_after_timeout(story: Story, *epochs: int) -> None:
    """Three values that the client sent again after a timeout stand twice, under these epochs of one producer."""
    place, rows = story.partitions[0], story.rows["producer-1"]
    end, values = place.high_watermark, tuple((1, sequence) for sequence in (12, 13, 14))
    # epoch 0 goes on behind what it wrote before; a later one begins at 0
    copies = [
        Batch(end + 3 * number, values, producer_id=1001, producer_epoch=epoch, base_sequence=0 if epoch else 12)
        for number, epoch in enumerate(epochs)
    ]
    story.everywhere(0, lambda batches: batches.extend(copies))
    place.high_watermark += 6
    place.log_end_offsets = dict.fromkeys(place.log_end_offsets, place.high_watermark)
    timed_out = row("send", "info", 0, 1, 15, 15, -1)._replace(error="_MSG_TIMED_OUT: Local: Message timed out")
    rows.append(row("reserve", "invoke", 0, 1, 12, 15, -1))
    rows.append(row("send", "ok", 0, 1, 12, 14, end)._replace(invoke_ns=3 * SECOND, complete_ns=5 * SECOND))
    rows.append(timed_out._replace(invoke_ns=3 * SECOND, complete_ns=4 * SECOND))
    for copy in copies:
        for step, value in enumerate(copy.values):
            read = row("poll", "ok", 0, *value, value[1], copy.base_offset + step, phase="final")
            story.rows["final-1"].append(read)


def reversed_and_sent_again(story: Story) -> None:
    """Two batches in the wrong order, and one a second time under another producer: its first place counts."""
    reverse_stream(story)
    append_copy(story, producer_id=5000)


def copy_of_the_trimmed(story: Story) -> None:
    """Of two copies one lies below the log's start (its bytes are still there): what is left is one, out of order."""
    append_copy(story)
    story.partitions[0].log_start_offset = 6
    story.delete_below(0, 6)


def copy_above(story: Story) -> None:
    """Legal: what was sent again stands behind the high watermark, and nobody was handed it."""
    copy = replace(story.leader_log(0)[0], base_offset=story.partitions[0].high_watermark)
    story.everywhere(0, lambda batches: batches.append(copy))


def read_again(story: Story) -> None:
    """Legal: a reader that begins again is handed a value a second time, from the same offset."""
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 0, 0, 0)._replace(session=2))


COPIED = {"stream": 1, "sequence": 0, "offset": 0, "count": 3}


#: The headers of a batch that stands a second time at offset 25 say so too.
REPEATED = {
    ("sequence-duplicate", None): {"count": 1, "size": 2, "offset": 0},
    ("sequence-gap", "backwards"): {"count": 1, "offset": 25},
}


#: The headers of batches that changed their places.
REVERSED = {
    ("sequence-gap", "first"): {"count": 1, "offset": 0},
    ("sequence-gap", "backwards"): {"count": 1, "offset": 6},
    ("sequence-gap", "skipped"): {"count": 1, "offset": 12},
}

PLANTED: Mapping[str, Planted] = {
    "stored twice": Planted(
        append_copy,
        {("duplicate", "broker"): COPIED, ("log-duplicate", "broker"): {**COPIED, "size": 6}, **REPEATED},
        neighbor="a second copy above the high watermark",
    ),
    "stored twice and not read twice": Planted(
        lambda story: append_copy(story, read=False),
        {("log-duplicate", "broker"): {**COPIED, "size": 6}, **REPEATED},
        neighbor="a second copy above the high watermark",
    ),
    "sent again": Planted(
        lambda story: append_copy(story, producer_id=5000),
        {("duplicate", "client-resend"): COPIED, ("log-duplicate", "client-resend"): COPIED},
        neighbor="a second copy above the high watermark",
    ),
    "sent again after a timeout": Planted(
        copy_after_timeout,
        {("duplicate", "client-resend-after-error"): COPIED, ("log-duplicate", "client-resend-after-error"): COPIED},
        neighbor="a second copy above the high watermark",
    ),
    "stored under an epoch that was over": Planted(
        lambda story: resent_after_timeout(story, 1, 0),
        {
            ("producer-epoch-regression", None): {"count": 1, "offset": 28},
            ("duplicate", "client-resend"): {"count": 3, "stream": 1, "sequence": 12, "offset": 25},
            ("log-duplicate", "client-resend"): {"count": 3, "stream": 1, "sequence": 12, "offset": 25},
        },
        neighbor="stored under the next epoch",
    ),
    "stored under the next epoch": Planted(
        lambda story: resent_after_timeout(story, 0, 1),
        {
            ("duplicate", "client-resend-after-error"): {"count": 3, "stream": 1, "sequence": 12, "offset": 25},
            ("log-duplicate", "client-resend-after-error"): {"count": 3, "stream": 1, "sequence": 12, "offset": 25},
        },
    ),
    "repeated without an identity": Planted(
        lambda story: append_copy(story, producer_id=-1),
        {("duplicate", "unidentified"): COPIED, ("log-duplicate", "unidentified"): COPIED},
        neighbor="a second copy above the high watermark",
    ),
    "stored three times": Planted(
        three_copies,
        {("duplicate", "mixed"): COPIED, ("log-duplicate", "mixed"): {**COPIED, "size": 9}, **REPEATED},
        neighbor="a second copy above the high watermark",
    ),
    "acknowledged at its second copy": Planted(
        acknowledged_at_its_copy, {("duplicate", "broker"): COPIED, ("log-duplicate", "broker"): COPIED, **REPEATED}
    ),
    "read where it no longer is": Planted(
        read_where_it_no_longer_is,
        {
            ("duplicate", "vanished"): {"count": 1, "stream": 1, "sequence": 0, "offset": 0},
            ("inconsistent-offsets", "read"): {"count": 1, "offset": 4000},
        },
        neighbor="read again where it is",
    ),
    "stored and told in the wrong order": Planted(
        reverse_stream,
        {
            ("log-reorder", "values"): {"count": 3, "stream": 1, "sequence": 0, "offset": 6},
            ("nonmonotonic-send", None): {"count": 3, "stream": 1, "sequence": 0, "offset": 6},
            ("realtime-order", None): {"count": 3, "stream": 1, "sequence": 3, "offset": 0},
            **REVERSED,
        },
        neighbor="a late batch of a former producer",
    ),
    "stored in the wrong order and again": Planted(
        reversed_and_sent_again,
        {
            ("log-reorder", "values"): {"count": 3, "stream": 1, "sequence": 0, "offset": 6},
            ("nonmonotonic-send", None): {"count": 3, "stream": 1, "sequence": 0, "offset": 6},
            ("duplicate", "client-resend"): {"count": 3, "stream": 1, "sequence": 3, "offset": 0},
            ("log-duplicate", "client-resend"): {"count": 3, "stream": 1, "sequence": 3, "offset": 0},
            **REVERSED,
            ("sequence-gap", "first"): {"count": 2, "offset": 0},
        },
    ),
    "a copy below the start of the log": Planted(
        copy_of_the_trimmed,
        {
            ("log-reorder", "values"): {"count": 3, "stream": 1, "sequence": 0, "offset": 25},
            ("nonmonotonic-send", None): {"count": 3, "stream": 1, "sequence": 0, "offset": 25},
            ("sequence-gap", "backwards"): {"count": 1, "offset": 25},
        },
    ),
    "a late batch of a former producer": Planted(late_incarnation),
    "a late batch that its former producer was told of": Planted(
        acknowledged_to_the_former,
        {("nonmonotonic-send", None): {"count": 3, "stream": 1, "sequence": 0, "offset": 6}},
        neighbor="a late batch of a former producer",
    ),
    "a second copy above the high watermark": Planted(copy_above),
    "read again where it is": Planted(read_again),
}
