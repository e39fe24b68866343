"""Planted examples for the anomalies of batch headers, each with its nearest legal neighbor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.support.settings import settings
from tests.support.stories import MADE_MS, PRODUCER_IDS_BELOW, Batch, Story, row
from tests.verifier.planted.changes import (
    append_copy,
)
from tests.verifier.planted.model import Planted
from verifier.evidence.run_model import PhaseSpan

#: The batches of stream 1 and 2 take turns, three values each: stream 1 at 0, 6, 12, 18, stream 2 at 3, 9, 15, 21.
LAST_OF_STREAM_2 = 7


def everywhere(index: int, **fields: Any) -> Callable[[Story], None]:
    """All replicas hold a batch with other header fields: they agree on what is wrong."""

    def change(batches: list[Batch]) -> None:
        batches[index] = replace(batches[index], **fields)

    return lambda story: story.everywhere(0, change)


def of_the_other_stream(story: Story) -> None:
    """Each stream's batches carry the producer id that the other one was given; the verdict doubts it."""
    other = {1001: 1002, 1002: 1001}

    def change(batches: list[Batch]) -> None:
        batches[:] = [replace(each, producer_id=other.get(each.producer_id, each.producer_id)) for each in batches]

    story.everywhere(0, change)


def never_told(story: Story) -> None:
    """Legal: of both streams an instance ended before its client had told its id."""
    of_the_other_stream(story)
    for stream in (1, 2):
        begun = row("incarnation", "invoke", 0, stream, 12, 12, -1)
        story.rows["producer-1"].append(begun._replace(incarnation=2, producer_id=-1, producer_epoch=-1))


def clock(*moved_ms: int) -> Callable[[Story], None]:
    """Samples of the wall clock, which had moved so far."""
    return lambda story: story.clock_ms.extend(moved_ms)


def epochs(*numbers: int) -> Callable[[Story], None]:
    """All replicas hold batches of these leader epochs, the last of them to the end."""

    def change(batches: list[Batch]) -> None:
        for index, batch in enumerate(batches):
            batches[index] = replace(batch, leader_epoch=numbers[min(index, len(numbers) - 1)])

    return lambda story: story.everywhere(0, change)


def both(*plants: Callable[[Story], None]) -> Callable[[Story], None]:
    def plant(story: Story) -> None:
        for each in plants:
            each(story)

    return plant


def sequences_of(stream: int, base_sequences: list[int], **fields: Any) -> Callable[[Story], None]:
    """All replicas hold the batches of a stream under these base sequences; the values are as they were."""

    def change(batches: list[Batch]) -> None:
        mine = [index for index, batch in enumerate(batches) if batch.producer_id == 1000 + stream]
        for index, base_sequence in zip(mine, base_sequences, strict=True):
            batches[index] = replace(batches[index], base_sequence=base_sequence, **fields)

    return lambda story: story.everywhere(0, change)


def new_epoch_from_1(story: Story) -> None:
    """The producer of stream 1 begins a new epoch with its third batch, at sequence 1."""
    for index, base_sequence in ((4, 1), (6, 4)):
        everywhere(index, producer_epoch=1, base_sequence=base_sequence)(story)


def new_epoch(story: Story) -> None:
    """Legal: the producer of stream 1 begins a new epoch with its third batch, at sequence 0."""

    def change(batches: list[Batch]) -> None:
        batches[4] = replace(batches[4], producer_epoch=1, base_sequence=0)
        batches[6] = replace(batches[6], producer_epoch=1, base_sequence=3)

    story.everywhere(0, change)


def epoch_that_was_over(story: Story) -> None:
    """The producer of stream 1 begins a new epoch with its third batch; its last one is of the old epoch again."""
    everywhere(4, producer_epoch=1, base_sequence=0)(story)
    everywhere(6, base_sequence=6)(story)


def kafka_rule(story: Story) -> None:
    """The brokers take any first sequence of a producer that they do not know."""
    story.settings = settings(unknown_producer="kafka")


def log_start_moved(story: Story) -> None:
    """Records below 3 were deleted: what a producer wrote first may be gone."""
    story.partitions[0].log_start_offset = 3
    story.delete_below(0, 3)
    story.begins_at(0, 3)


def control_batch(story: Story) -> None:
    """A transaction's marker stands among a producer's batches, without a sequence of its own."""
    place = story.partitions[0]
    marker = Batch(place.high_watermark, (), producer_id=1001, raw_values=(b"\0\0\0\0\0\0",), attributes=0x30)
    for batches in place.replicas.values():
        batches.append(marker)
    place.high_watermark += 1
    place.log_end_offsets = {broker: end + 1 for broker, end in place.log_end_offsets.items()}


def tail(broker: int, leader_epoch: int, sequence: int) -> Callable[[Story], None]:
    """A replica holds one more batch above the high watermark."""

    def plant(story: Story) -> None:
        place = story.partitions[0]
        place.replicas[broker].append(Batch(place.high_watermark, ((1, sequence),), leader_epoch=leader_epoch))

    return plant


def unknown_below(below: int | None) -> Callable[[Story], None]:
    def plant(story: Story) -> None:
        story.producer_ids_below = below

    return plant


def cut_short(story: Story) -> None:
    """The run's last phase did not end."""
    phases = story.model().phases
    story.phases = [*phases[:-1], PhaseSpan("stop", phases[-1].start_ns)]


ENDED_MS = MADE_MS - 20_000 + 55_000  # the run began 20 s before, and its phases took 55 s
MARGIN_MS = 60_000
STRANGE = {"producer_id": PRODUCER_IDS_BELOW, "base_sequence": 0}

PLANTED: Mapping[str, Planted] = {
    "an epoch that was over": Planted(
        epochs(1, 2, 1, 2),
        {
            ("epoch-regression", None): {"count": 3, "offset": 6},
            ("checkpoint-mismatch", "epochs"): {"count": 3, "offset": 6},
        },
        neighbor="epochs that grow",
    ),
    "epochs that grow": Planted(epochs(1, 2, 2, 5)),
    "an older epoch above the high watermark": Planted(
        both(tail(1, 0, 70), lambda story: story.killed.add(1)), {("checkpoint-mismatch", "epochs"): {"offset": 25}}
    ),
    "a sequence that was skipped": Planted(
        sequences_of(2, [0, 3, 6, 10]),
        {("sequence-gap", "skipped"): {"count": 1, "offset": 21}},
        neighbor="sequences across the end of the circle",
    ),
    "sequences across the end of the circle": Planted(both(kafka_rule, sequences_of(2, [2**31 - 5, 2**31 - 2, 1, 4]))),
    "a sequence that skips across the end of the circle": Planted(
        both(kafka_rule, sequences_of(2, [2**31 - 6, 2**31 - 3, 1, 4])),
        {("sequence-gap", "skipped"): {"count": 1, "offset": 15}},
        neighbor="sequences across the end of the circle",
    ),
    "a sequence that goes back": Planted(
        sequences_of(2, [0, 3, 6, 8]),
        {("sequence-gap", "backwards"): {"count": 1, "offset": 21}},
        neighbor="a new epoch from 0",
    ),
    "a new epoch from 0": Planted(new_epoch),
    "a producer epoch that was over": Planted(
        epoch_that_was_over,
        {("producer-epoch-regression", None): {"count": 1, "offset": 18}},
        neighbor="a new epoch from 0",
    ),
    "a new epoch that does not begin at 0": Planted(
        new_epoch_from_1,
        {("sequence-gap", "first"): {"count": 1, "offset": 12}},
        neighbor="any first sequence under Kafka's rule",
    ),
    "any first sequence under Kafka's rule": Planted(both(kafka_rule, new_epoch_from_1)),
    "any first sequence behind a moved log start": Planted(
        both(log_start_moved, sequences_of(2, [30, 33, 36, 39])),
    ),
    "a marker without a sequence": Planted(
        control_batch,
        {("phantom", "attributes"): {"count": 1, "size": 1, "offset": 25}},
        neighbor="the broker's own time",
    ),
    "a batch of a transaction": Planted(
        everywhere(2, attributes=0x10), {("phantom", "attributes"): {"count": 1, "size": 3, "offset": 6}}
    ),
    "a time of deletion where nothing is compacted": Planted(
        everywhere(2, attributes=0x48), {("phantom", "attributes"): {"count": 1, "size": 3, "offset": 6}}
    ),
    "attributes that mean nothing": Planted(
        everywhere(2, attributes=-0x8000), {("phantom", "attributes"): {"count": 1, "size": 3, "offset": 6}}
    ),
    "the broker's own time": Planted(everywhere(2, attributes=0x08)),
    "one sequence at two offsets": Planted(
        sequences_of(2, [0, 3, 6, 6]),
        {
            ("sequence-duplicate", None): {"count": 1, "size": 2, "offset": 15},
            ("sequence-gap", "backwards"): {"count": 1, "offset": 21},
        },
        neighbor="one sequence in two epochs",
    ),
    "one sequence in two epochs": Planted(
        lambda story: append_copy(story, producer_epoch=1),
        {
            ("duplicate", "client-resend"): {"count": 3},
            ("log-duplicate", "client-resend"): {"count": 3},
        },
    ),
    "a producer id that nobody was given": Planted(
        everywhere(8, **STRANGE),
        {("unknown-producer-id", None): {"count": 3, "offset": 24}},
        neighbor="a producer id that no history tells of",
    ),
    "a producer id that no history tells of": Planted(everywhere(8, producer_id=PRODUCER_IDS_BELOW - 1)),
    "a producer id where it is not known what was handed out": Planted(
        both(unknown_below(None), everywhere(8, **STRANGE))
    ),
    "a producer id below all": Planted(
        both(unknown_below(None), everywhere(8, producer_id=-2)),
        {("unknown-producer-id", None): {"count": 3, "offset": 24}},
        neighbor="a batch without a producer id",
    ),
    "a producer id that another stream was given": Planted(of_the_other_stream),
    "a producer id that its client may never have told": Planted(never_told),
    "a batch without a producer id": Planted(everywhere(8, producer_id=-1, base_sequence=-1)),
    "a time before the run": Planted(
        everywhere(8, timestamp_ms=MADE_MS - 20_000 - MARGIN_MS - 1),
        {("timestamp-outside-run", "before"): {"count": 3, "offset": 24}},
        neighbor="a time at the margin before the run",
    ),
    "a time at the margin before the run": Planted(everywhere(8, timestamp_ms=MADE_MS - 20_000 - MARGIN_MS)),
    "no time at all": Planted(
        everywhere(8, timestamp_ms=-1),
        {("timestamp-outside-run", "before"): {"count": 3, "offset": 24}},
        neighbor="a time at the margin before the run",
    ),
    "a time behind the run": Planted(
        everywhere(8, timestamp_ms=ENDED_MS + MARGIN_MS + 1),
        {("timestamp-outside-run", "after"): {"count": 3, "offset": 24}},
        neighbor="a time at the margin behind the run",
    ),
    "a time at the margin behind the run": Planted(everywhere(8, timestamp_ms=ENDED_MS + MARGIN_MS)),
    "a time behind a clock that was set forward": Planted(
        both(clock(0, 50_000, 0), everywhere(8, timestamp_ms=ENDED_MS + 50_000 + MARGIN_MS + 1)),
        {("timestamp-outside-run", "after"): {"count": 3, "offset": 24}},
        neighbor="a time of a clock that was set forward",
    ),
    "a time of a clock that was set forward": Planted(
        both(clock(0, 50_000, 0), everywhere(8, timestamp_ms=ENDED_MS + 50_000 + MARGIN_MS))
    ),
    "a time before a clock that was set back": Planted(
        both(clock(0, -50_000), everywhere(8, timestamp_ms=MADE_MS - 70_000 - MARGIN_MS - 1)),
        {("timestamp-outside-run", "before"): {"count": 3, "offset": 24}},
        neighbor="a time of a clock that was set back",
    ),
    "a time of a clock that was set back": Planted(
        both(clock(0, -50_000), everywhere(8, timestamp_ms=MADE_MS - 70_000 - MARGIN_MS))
    ),
    "a time behind a run whose end is not known": Planted(
        both(cut_short, everywhere(8, timestamp_ms=ENDED_MS + MARGIN_MS + 1))
    ),
    "two leaders of one epoch": Planted(
        both(tail(1, 1, 70), tail(2, 1, 71)),
        {("split-brain", None): {"count": 1, "size": 2, "offset": 25}},
        neighbor="two leaders of two epochs",
    ),
    "two leaders of two epochs": Planted(both(tail(1, 1, 70), tail(2, 2, 71))),
    "the same tail on two replicas": Planted(both(tail(1, 1, 70), tail(2, 1, 70))),
}
