"""Planted examples for the anomalies of time, and for what looks like one and is legal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.support.stories import SECOND, TOPIC, Batch, Story
from tests.verifier.planted.changes import (
    change,
)
from tests.verifier.planted.model import Planted
from verifier.evidence.history import HistoryRow

MS = SECOND // 1000


def read_at(time_ms: int) -> Callable[[Story], None]:
    """The poll that brought s1/3..5 returned then; they were sent from 1,290 ms on, and acknowledged at 1,300 ms."""
    return lambda story: change(story, "poll", (1, 3), "reader-1", complete_ns=time_ms * MS)


def send_from(time_ms: int) -> Callable[[Story], None]:
    """s1/3..5 (offset 6) were sent from then on; s2/3..5 (offset 9) were acknowledged at 1,300 ms."""

    def plant(story: Story) -> None:
        change(story, "send", (1, 3), invoke_ns=time_ms * MS, complete_ns=1400 * MS)
        change(story, "poll", (1, 3), "reader-1", complete_ns=1400 * MS)

    return plant


def with_one_lost(spoil: Callable[[Story], None]) -> Callable[[Story], None]:
    """The same, and of what was acknowledged first one value was acknowledged a second time, where it is not."""

    def plant(story: Story) -> None:
        spoil(story)
        (row,) = [
            each for each in story.rows["producer-1"] if (each.f, each.stream, each.first_sequence) == ("send", 2, 3)
        ]
        story.rows["producer-1"].append(row._replace(last_sequence=3, first_offset=800, last_offset=800))

    return plant


def watermarks(first: int, second: int, time_ms: int = 1300, epoch_at: int = 0) -> Callable[[Story], None]:
    """The live reader is told both, one after the other; the second at that time.

    The final epoch, 1, begins at offset ``epoch_at``; what is before is of epoch 0.
    """

    def plant(story: Story) -> None:
        def older(batches: list[Batch]) -> None:
            batches[:] = [replace(each, leader_epoch=int(each.base_offset >= epoch_at)) for each in batches]

        story.everywhere(0, older)
        rows = story.rows["reader-1"]
        rows[3] = rows[3]._replace(high_watermark=first)
        rows[4] = rows[4]._replace(high_watermark=second, complete_ns=time_ms * MS)

    return plant


def told(high_watermark: int, epoch_at: int = 0) -> Callable[[Story], None]:
    """The live reader is handed offsets 9 to 11 and knows this watermark then.

    The final epoch, 1, begins at offset ``epoch_at``.
    """

    def plant(story: Story) -> None:
        watermarks(-1, high_watermark, epoch_at=epoch_at)(story)

    return plant


def told_end(end: int, time_ms: int, *, is_committed: bool = False) -> Callable[[Story], None]:
    """A reader was told then that partition 0 ends there. Offsets 6 to 11 were sent from 1,290 ms on."""

    def plant(story: Story) -> None:
        times = {"invoke_ns": (time_ms - 1) * MS, "complete_ns": time_ms * MS}
        rows = story.rows["reader-1"]
        if is_committed:
            rows.append(HistoryRow("isolation", "ok", session=2))
        told = HistoryRow("end-offset", "ok", TOPIC, 0, first_offset=end, last_offset=end, session=2, **times)
        rows.append(told)

    return plant


def with_librdkafka(plant: Callable[[Story], None], reader: str = "reader-1") -> Callable[[Story], None]:
    """The same, of a reader that takes the watermark of a former leader's late answer."""

    def planted(story: Story) -> None:
        plant(story)
        story.clients[reader] = "confluent"

    return planted


def in_two_sessions(story: Story) -> None:
    """Legal: the second is what another session is told."""
    watermarks(15, 12)(story)
    rows = story.rows["reader-1"]
    rows[4:] = [each._replace(session=2) for each in rows[4:]]


def unknown_between(story: Story) -> None:
    """A row that does not know lies between the two."""
    watermarks(18, -1)(story)
    rows = story.rows["reader-1"]
    rows[5] = rows[5]._replace(high_watermark=15)


BACK = {("watermark-regression", None): {"count": 1, "size": 3, "offset": 12}}
EARLY_READ = {("read-above-watermark", None): {"count": 1, "size": 1, "offset": 11}}

PLANTED: Mapping[str, Planted] = {
    "read before it was sent": Planted(
        read_at(1289),
        {("read-before-send", None): {"count": 3, "stream": 1, "sequence": 3, "offset": 6}},
        neighbor="read when it was sent",
    ),
    "read when it was sent": Planted(read_at(1290)),
    "sent when another was acknowledged, and before it": Planted(send_from(1300)),
    "sent after another was acknowledged, and before it": Planted(
        send_from(1301),
        {("realtime-order", None): {"count": 3, "stream": 1, "sequence": 3, "offset": 6}},
        neighbor="sent when another was acknowledged, and before it",
    ),
    "sent after one that has no one place": Planted(
        with_one_lost(send_from(1301)), {("inconsistent-offsets", "acknowledged"): {"count": 1, "offset": 800}}
    ),
    "a watermark goes back": Planted(watermarks(15, 12), BACK, neighbor="a watermark stays"),
    "a watermark stays": Planted(watermarks(15, 15)),
    "a watermark goes back in another session": Planted(in_two_sessions),
    "a watermark goes back, with an unknown one between": Planted(
        unknown_between,
        {("watermark-regression", None): {"count": 1, "size": 3, "offset": 15}},
        neighbor="a watermark stays",
    ),
    "an end that is there": Planted(told_end(12, 1290)),
    "an end that is there since long": Planted(told_end(6, 1289)),
    "an end beyond what is sent later": Planted(
        told_end(12, 1289),
        {("wrong-end-offset", "not-yet-sent"): {"count": 1, "partition": 0, "offset": 12}},
        neighbor="an end that is there",
    ),
    "an end that is one too far": Planted(
        told_end(7, 1289),
        {("wrong-end-offset", "not-yet-sent"): {"count": 1, "partition": 0, "offset": 7}},
        neighbor="an end that is there since long",
    ),
    "a watermark goes back after an election": Planted(watermarks(12, 9, epoch_at=12)),
    "a watermark goes back before an election": Planted(
        watermarks(12, 9, time_ms=1289, epoch_at=12),
        {
            ("watermark-regression", None): {"count": 1, "size": 3, "offset": 9},
            ("read-above-watermark", None): {"count": 1, "size": 3, "offset": 9},
            ("read-before-send", None): {"count": 3, "stream": 2, "sequence": 3, "offset": 9},
        },
        neighbor="a watermark goes back after an election",
    ),
    "a watermark goes back though it was of the last epoch": Planted(
        watermarks(13, 10, epoch_at=12),
        {("watermark-regression", None): {"count": 1, "size": 3, "offset": 10}},
        neighbor="a watermark goes back after an election",
    ),
    "a watermark goes back, and librdkafka tells it": Planted(
        with_librdkafka(watermarks(18, 15, epoch_at=12)),
        {("watermark-regression", None): {"count": 1, "size": 3, "offset": 15}},
        neighbor="a former leader's late answer tells librdkafka a lower watermark",
    ),
    "a former leader's late answer tells librdkafka a lower watermark": Planted(
        with_librdkafka(watermarks(18, 12, epoch_at=12))
    ),
    "a watermark goes back before an election, and librdkafka tells it": Planted(
        with_librdkafka(watermarks(12, 9, time_ms=1289, epoch_at=12)),
        {
            ("watermark-regression", None): {"count": 1, "size": 3, "offset": 9},
            ("read-above-watermark", None): {"count": 1, "size": 3, "offset": 9},
            ("read-before-send", None): {"count": 3, "stream": 2, "sequence": 3, "offset": 9},
        },
    ),
    "handed what was not committed, and librdkafka tells it": Planted(
        with_librdkafka(told(11)),
        EARLY_READ,
        neighbor="handed all that was committed",
    ),
    "handed what a former leader's late answer does not cover": Planted(
        with_librdkafka(told(9, epoch_at=9)),
    ),
    "handed what was not committed yet": Planted(
        told(11),
        EARLY_READ,
        neighbor="handed all that was committed",
    ),
    "handed all that was committed": Planted(told(12)),
    "handed what nothing is committed of": Planted(
        told(0),
        {
            ("read-above-watermark", None): {"count": 1, "size": 3, "offset": 9},
            ("watermark-regression", None): {"count": 1, "size": 6, "offset": 0},
        },
        neighbor="handed all that was committed",
    ),
    "handed what was not committed, as another leader says": Planted(told(11, epoch_at=12)),
    "a final reader is handed what was not committed": Planted(
        lambda story: change(story, "poll", (1, 9), "final-1", high_watermark=18),
        {("read-above-watermark", None): {"count": 1, "size": 1, "offset": 18}},
        neighbor="handed all that was committed",
    ),
}
