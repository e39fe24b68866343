"""Planted examples of replicas whose files are damaged, differ or are out of order, with their legal neighbors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.support.stories import Batch, Story
from tests.verifier.mutations.cluster import torn_tail_above, zombie_tail
from tests.verifier.planted.changes import (
    change,
    flip,
    on_follower,
)
from tests.verifier.planted.model import Planted


def corrupt_batch(story: Story) -> None:
    """A byte of a value's padding changed on one replica."""

    def change_batch(batches: list[Batch]) -> None:
        batches[1] = replace(batches[1], spoil=flip(3))

    on_follower(story, change_batch)


def corrupt_value(story: Story) -> None:
    """A byte of a value's padding changed before the batch's CRC was taken: all replicas agree on it."""

    def change_batch(batches: list[Batch]) -> None:
        batches[1] = replace(batches[1], spoil=flip(3, fix_crc=True))

    story.everywhere(0, change_batch)


def zeros_at_end(story: Story) -> None:
    """One replica's file ends in zeros where the sentinel must be."""
    on_follower(story, lambda batches: batches.pop())
    place = story.partitions[0]
    place.tails[max(broker for broker in place.replicas if broker != place.leader)] = bytes(64)


def diverge(**fields: Any) -> Callable[[Story], None]:
    """One replica holds the second batch otherwise."""

    def change_batch(batches: list[Batch]) -> None:
        batches[1] = replace(batches[1], **fields)

    return lambda story: on_follower(story, change_batch)


def extra_batch(story: Story) -> None:
    """One replica split a batch of the leader in two."""

    def change_batch(batches: list[Batch]) -> None:
        first = batches[0]
        half = replace(first, values=first.values[:1])
        rest = replace(first, base_offset=1, values=first.values[1:], base_sequence=1)
        batches[:1] = [half, rest]

    on_follower(story, change_batch)


def swap_in_file(story: Story) -> None:
    """One replica's file holds the second and third batch in the wrong order."""

    def change_batch(batches: list[Batch]) -> None:
        batches[1], batches[2] = batches[2], batches[1]

    on_follower(story, change_batch)


def written_twice_in_file(story: Story) -> None:
    """One replica's file holds the second batch twice, at the same offsets."""
    on_follower(story, lambda batches: batches.insert(1, batches[1]))


def written_twice_in_leader(story: Story) -> None:
    """The leader's file holds the second batch twice, at the same offsets."""
    log = story.leader_log(0)
    log.insert(1, log[1])


def far_backwards(story: Story) -> None:
    """A batch comes too early in one replica's file; both that follow begin below what it reached."""
    on_follower(story, lambda batches: batches.insert(1, batches.pop(3)))


def wild_tail(story: Story) -> None:
    """Legal: above the high watermark, a replica holds batches in any order, and damaged ones."""
    place = story.partitions[0]
    end = place.high_watermark

    def change_batch(batches: list[Batch]) -> None:
        batches += [Batch(end + 5, ((1, 70),)), Batch(end, ((1, 71),)), Batch(end + 1, ((1, 72),), spoil=flip(3))]

    on_follower(story, change_batch)


def flipped_crc(story: Story) -> None:
    """A byte of a batch's stored CRC changed on one replica."""

    def change_batch(batches: list[Batch]) -> None:
        size = len(batches[1].encode())
        batches[1] = replace(batches[1], spoil=flip(size - 18))

    on_follower(story, change_batch)


def replica_behind(story: Story) -> None:
    """A replica ends before the high watermark and said so: not its log is to blame (the run is unknown)."""
    on_follower(story, lambda batches: batches.pop())
    place = story.partitions[0]
    place.log_end_offsets[max(broker for broker in place.replicas if broker != place.leader)] = 24


def corrupt_name(story: Story) -> None:
    """On the leader, the magic of a value changed and the batch's CRC with it does not match: whose it is, is lost."""
    log = story.leader_log(0)
    at = log[1].encode().index(b"GPLS")
    size = len(log[1].encode())
    log[1] = replace(log[1], spoil=flip(size - at))
    change(story, "send", (2, 0), type="info", first_offset=-1, last_offset=-1)


def renamed(start: int, name: int) -> Callable[[Story], None]:
    """The log is in segments of three batches, of which the one that begins there has another name on all replicas."""

    def plant(story: Story) -> None:
        story.split_at = 3
        story.renamed = {start: name}

    return plant


def renamed_after_deletion(story: Story) -> None:
    """The first segment kept its name when its first records went."""
    story.delete_below(0, 9)
    story.partitions[0].log_start_offset = 9
    story.everywhere(0, lambda batches: batches.__delitem__(slice(3)))
    story.renamed = {9: 4}


class _First:
    """A generator whose every choice is the first."""

    def choice(self, options: Any) -> Any:
        return options[0]

    def randrange(self, *bounds: int) -> int:
        return bounds[0] if len(bounds) > 1 else 0

    def random(self) -> float:
        return 0.0


def legal(mutation: Callable[[Story, Any], None]) -> Callable[[Story], None]:
    return lambda story: mutation(story, _First())


def damaged_value_above(story: Story) -> None:
    """Legal: above the high watermark a replica holds a value that was damaged before its batch was made."""
    end = story.partitions[0].high_watermark
    on_follower(story, lambda batches: batches.append(Batch(end, ((1, 70),), spoil=flip(3, fix_crc=True))))


PLANTED: Mapping[str, Planted] = {
    "a file out of order": Planted(
        swap_in_file,
        {("log-reorder", "offsets"): {"count": 1, "offset": 3}},
        neighbor="anything above the high watermark",
    ),
    "written twice by a replica": Planted(
        written_twice_in_file,
        {("log-reorder", "offsets"): {"count": 1, "offset": 3}},
        neighbor="anything above the high watermark",
    ),
    "written twice by the leader": Planted(
        written_twice_in_leader,
        {
            ("log-reorder", "offsets"): {"count": 1, "offset": 3},
            ("sequence-gap", "backwards"): {"count": 1, "offset": 3},
        },
    ),
    "far out of order": Planted(far_backwards, {("log-reorder", "offsets"): {"count": 2, "offset": 3}}),
    "a flipped byte": Planted(
        corrupt_batch,
        {("log-corrupt", "batch"): {"count": 1, "size": 3, "offset": 3}},
        neighbor="anything above the high watermark",
    ),
    "a flipped CRC": Planted(
        flipped_crc, {("log-corrupt", "batch"): {"count": 1, "offset": 3}}, neighbor="anything above the high watermark"
    ),
    "a damaged value": Planted(
        corrupt_value,
        {("log-corrupt", "value"): {"count": 1, "stream": 2, "sequence": 2, "offset": 5}},
        neighbor="a damaged value above the high watermark",
    ),
    "zeros at the end of a file": Planted(
        zeros_at_end,
        {("log-corrupt", "tail"): {"count": 1, "offset": 24}, ("log-divergence", "missing"): {"offset": 24}},
        neighbor="a torn tail above the high watermark",
    ),
    "a segment named above its first batch": Planted(
        renamed(9, 10),
        {("log-corrupt", "segment"): {"count": 3, "size": 9, "offset": 9}},
        neighbor="a segment named below its first batch",
    ),
    "a segment named below its first batch": Planted(renamed_after_deletion),
    "a name lost in a corrupt batch": Planted(corrupt_name, {("log-corrupt", "batch"): {"count": 1, "offset": 3}}),
    "another epoch": Planted(
        diverge(leader_epoch=7),
        {
            ("log-divergence", "different"): {"count": 1, "offset": 3},
            ("epoch-regression", None): {"count": 7, "offset": 6},
            ("checkpoint-mismatch", "epochs"): {"count": 7, "offset": 6},
        },
        neighbor="two leaders of two epochs",
    ),
    "other content": Planted(
        diverge(values=((2, 0), (2, 1), (2, 77))),
        {
            ("log-divergence", "different"): {"count": 1, "offset": 3},
            ("split-brain", None): {"count": 1, "size": 2, "offset": 3},
        },
        neighbor="two leaders of two epochs",
    ),
    "a replica that lacks a batch": Planted(
        lambda story: on_follower(story, lambda batches: batches.pop(1)),
        {("log-divergence", "missing"): {"count": 1, "offset": 3}},
        neighbor="a follower that deleted first",
    ),
    "a replica that split a batch": Planted(
        extra_batch,
        {
            ("log-divergence", "different"): {"count": 1, "offset": 0},
            ("log-divergence", "extra"): {"count": 1, "offset": 1},
            ("split-brain", None): {"count": 1, "size": 2, "offset": 0},
        },
        neighbor="a zombie's tail",
    ),
    "a replica that is behind and says so": Planted(replica_behind),
    "a torn tail above the high watermark": Planted(legal(torn_tail_above)),
    "a zombie's tail": Planted(legal(zombie_tail)),
    "anything above the high watermark": Planted(wild_tail),
    "a damaged value above the high watermark": Planted(damaged_value_above),
}
