"""Planted examples for the anomalies of values, and for what looks like one and is legal."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import crc32c

from tests.support.stories import SECOND, SENTINEL_STREAM, Batch, Story, row
from tests.verifier.mutations import lose_and_close_up, torn_tail_above, zombie_tail
from tests.verifier.planted.model import Planted
from verifier.evidence.values import encode


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


def lose_acked(story: Story) -> None:
    """What the defect does: a batch of stream 1 is acknowledged and not stored, the next ones take its offsets."""

    class Second:
        def choice(self, options: Any) -> Any:
            return options[2] if isinstance(options[0], Batch) else options[0]

    lose_and_close_up(story, Second())  # type: ignore[arg-type]


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


def forget_read_value(story: Story) -> None:
    """A value that nobody acknowledged was read at offset 0 and is nowhere: another one stands there."""
    story.rows["producer-1"].append(row("reserve", "invoke", 0, 1, 500, 500, -1))
    story.rows["producer-1"].append(row("send", "info", 0, 1, 500, 500, -1)._replace(error="_PURGE_INFLIGHT: Local"))
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 500, 500, 0)._replace(session=2))


def read_beyond(story: Story) -> None:
    """A value that nobody acknowledged was read behind the end of the final log."""
    story.rows["producer-1"].append(row("reserve", "invoke", 0, 1, 500, 500, -1))
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 500, 500, 4000)._replace(session=2))


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
    """Readers are handed what the log holds in the order of its offsets."""
    for process, rows in story.rows.items():
        if process.startswith(("reader", "final")):
            story.rows[process] = sorted(rows, key=lambda each: (each.f == "poll", each.first_offset))


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
    # and is acknowledged then; its successor's was sent before anything else was acknowledged
    change(story, "send", (1, 0), complete_ns=1400 * SECOND // 1000)
    change(story, "send", (1, 3), invoke_ns=990 * SECOND // 1000)


def trimmed(story: Story) -> None:
    """Legal: the topic's retention removed the first two batches; nobody can tell what was there."""
    story.topic_config = {"retention.ms": "1000"}
    trimmed_by_nobody(story)


def trimmed_by_nobody(story: Story) -> None:
    """The log begins at 6, though the topic keeps everything and nothing was to be deleted."""
    story.partitions[0].log_start_offset = 6
    story.everywhere(0, lambda batches: batches.__delitem__(slice(0, 2)))


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


def three_copies(story: Story) -> None:
    """Two copies of one producer, and a third of another."""
    append_copy(story)
    append_copy(story, producer_id=5000)


def written_twice_in_file(story: Story) -> None:
    """One replica's file holds the second batch twice, at the same offsets."""
    on_follower(story, lambda batches: batches.insert(1, batches[1]))


def written_twice_in_leader(story: Story) -> None:
    """The leader's file holds the second batch twice, at the same offsets."""
    log = story.leader_log(0)
    log.insert(1, log[1])


def lost_with_reversed_offsets(story: Story) -> None:
    """Two values that are lost had been acknowledged in the wrong order: a lost value has no position."""
    lose_with_unknown_offset(story)
    remove(story, "send", (2, 9))
    for sequence in (9, 10, 11):
        story.rows["producer-1"].append(row("send", "ok", 0, 2, sequence, sequence, 900 - sequence))


def acknowledged_at_its_copy(story: Story) -> None:
    """A batch stands twice and was acknowledged where its second copy is: its first place counts for its order."""
    append_copy(story)
    change(story, "send", (1, 0), first_offset=25, last_offset=27)


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


def failed_then_acknowledged(story: Story) -> None:
    """Legal: a first try certainly failed, the second was acknowledged."""
    story.rows["producer-1"].append(row("send", "fail", 0, 1, 0, 2, -1))


def corrupt_name(story: Story) -> None:
    """On the leader, the magic of a value changed and the batch's CRC with it does not match: whose it is, is lost."""
    log = story.leader_log(0)
    at = log[1].encode().index(b"GPLS")
    size = len(log[1].encode())
    log[1] = replace(log[1], spoil=flip(size - at))
    change(story, "send", (2, 0), type="info", first_offset=-1, last_offset=-1)


def read_from_nowhere(story: Story) -> None:
    """A reader was handed a value that nobody had reserved, at an offset that the log does not have."""
    story.rows["reader-1"].append(row("poll", "ok", 0, 9, 500, 500, 4000)._replace(session=2))


def read_where_it_no_longer_is(story: Story) -> None:
    """A value was read at an offset that the final log does not have; it stands elsewhere."""
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 0, 0, 4000)._replace(session=2))


def reversed_and_sent_again(story: Story) -> None:
    """Two batches in the wrong order, and one a second time under another producer: its first place counts."""
    reverse_stream(story)
    append_copy(story, producer_id=5000)


def copy_of_the_trimmed(story: Story) -> None:
    """Of two copies one lies below the log's start (its bytes are still there): what is left is one, out of order."""
    append_copy(story)
    story.partitions[0].log_start_offset = 6
    story.delete_below(0, 6)


def senseless_rows(story: Story) -> None:
    """Rows whose ranges contradict each other are no claims: they are counted, and the run is unknown."""
    story.rows["producer-1"].append(row("send", "ok", 0, 1, 5, 3, 7))
    story.rows["producer-1"].append(row("send", "ok", 0, 1, 500, 502, 600)._replace(last_offset=601))
    story.rows["reader-1"].append(row("poll", "ok", 0, 1, 0, 2, 50)._replace(last_sequence=20_000_000, session=2))


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
    "clean": Planted(lambda story: None),
    "lost at the tail": Planted(
        lose_with_unknown_offset,
        {("lost-write", None): {"count": 3, "stream": 2, "sequence": 9, "offset": None}},
    ),
    "lost in the middle": Planted(
        lose_acked,
        {
            ("lost-write", None): {"count": 3, "stream": 1, "sequence": 3, "offset": 6},
            ("inconsistent-offsets", "acknowledged"): {"count": 3, "offset": 6},
            ("log-gap", "sequences"): {"count": 1, "size": 3, "stream": 1, "sequence": 3, "offset": 6},
            ("sequence-gap", "skipped"): {"count": 1, "offset": 9},
        },
    ),
    "skipped by a final reader": Planted(
        lambda story: remove(story, "poll", (1, 1), "final-1"),
        {
            ("unseen", None): {"count": 1, "stream": 1, "sequence": 1, "offset": 1},
            ("int-poll-skip", None): {"count": 1, "stream": 1, "sequence": 2, "offset": 2},
        },
    ),
    "stored twice": Planted(
        append_copy, {("duplicate", "broker"): COPIED, ("log-duplicate", "broker"): {**COPIED, "size": 6}, **REPEATED}
    ),
    "stored twice and not read twice": Planted(
        lambda story: append_copy(story, read=False), {("log-duplicate", "broker"): {**COPIED, "size": 6}, **REPEATED}
    ),
    "sent again": Planted(
        lambda story: append_copy(story, producer_id=5000),
        {("duplicate", "client-resend"): COPIED, ("log-duplicate", "client-resend"): COPIED},
    ),
    "sent again after a timeout": Planted(
        copy_after_timeout,
        {("duplicate", "client-resend-after-error"): COPIED, ("log-duplicate", "client-resend-after-error"): COPIED},
    ),
    "repeated without an identity": Planted(
        lambda story: append_copy(story, producer_id=-1),
        {("duplicate", "unidentified"): COPIED, ("log-duplicate", "unidentified"): COPIED},
    ),
    "acknowledged elsewhere": Planted(
        lambda story: change(story, "send", (1, 9), first_offset=800, last_offset=802),
        {("inconsistent-offsets", "acknowledged"): {"count": 3, "offset": 800}},
    ),
    "read and then another": Planted(forget_read_value, {("inconsistent-offsets", "read"): {"count": 1, "offset": 0}}),
    "read and then nothing": Planted(read_beyond, {("inconsistent-offsets", "read"): {"count": 1, "offset": 4000}}),
    "stored and told in the wrong order": Planted(
        reverse_stream,
        {
            ("log-reorder", "values"): {"count": 3, "stream": 1, "sequence": 0, "offset": 6},
            ("nonmonotonic-send", None): {"count": 3, "stream": 1, "sequence": 0, "offset": 6},
            ("realtime-order", None): {"count": 3, "stream": 1, "sequence": 3, "offset": 0},
            **REVERSED,
        },
    ),
    "a file out of order": Planted(swap_in_file, {("log-reorder", "offsets"): {"count": 1, "offset": 3}}),
    "a hole": Planted(
        hole_of_unknowns,
        {
            ("log-gap", "offsets"): {"count": 1, "size": 3, "offset": 3},
            ("sequence-gap", "first"): {"count": 1, "offset": 9},
        },
    ),
    "a flipped byte": Planted(corrupt_batch, {("log-corrupt", "batch"): {"count": 1, "size": 3, "offset": 3}}),
    "a damaged value": Planted(
        corrupt_value, {("log-corrupt", "value"): {"count": 1, "stream": 2, "sequence": 2, "offset": 5}}
    ),
    "zeros at the end of a file": Planted(
        zeros_at_end,
        {("log-corrupt", "tail"): {"count": 1, "offset": 24}, ("log-divergence", "missing"): {"offset": 24}},
    ),
    "another epoch": Planted(
        diverge(leader_epoch=7),
        {
            ("log-divergence", "different"): {"count": 1, "offset": 3},
            ("epoch-regression", None): {"count": 7, "offset": 6},
            ("checkpoint-mismatch", "epochs"): {"count": 7, "offset": 6},
        },
    ),
    "other content": Planted(
        diverge(values=((2, 0), (2, 1), (2, 77))),
        {
            ("log-divergence", "different"): {"count": 1, "offset": 3},
            ("split-brain", None): {"count": 1, "size": 2, "offset": 3},
        },
    ),
    "a replica that lacks a batch": Planted(
        lambda story: on_follower(story, lambda batches: batches.pop(1)),
        {("log-divergence", "missing"): {"count": 1, "offset": 3}},
    ),
    "a replica that split a batch": Planted(
        extra_batch,
        {
            ("log-divergence", "different"): {"count": 1, "offset": 0},
            ("log-divergence", "extra"): {"count": 1, "offset": 1},
            ("split-brain", None): {"count": 1, "size": 2, "offset": 0},
        },
    ),
    "never reserved": Planted(
        never_reserved, {("phantom", "never-reserved"): {"count": 1, "stream": 1, "sequence": 11, "offset": 20}}
    ),
    "failed and yet there": Planted(
        failed_and_there, {("phantom", "failed"): {"count": 3, "stream": 1, "sequence": 0, "offset": 0}}
    ),
    "a foreign value": Planted(foreign_value, {("phantom", "foreign"): {"count": 2, "offset": 25}}),
    "handed out as garbage": Planted(undecodable_read, {("phantom", "undecodable"): {"count": 1, "offset": 1}}),
    "a torn tail above the high watermark": Planted(legal(torn_tail_above)),
    "a zombie's tail": Planted(legal(zombie_tail)),
    "an acknowledgement without an offset": Planted(
        lambda story: change(story, "send", (1, 0), first_offset=-1, last_offset=-1)
    ),
    "unknown outcomes": Planted(
        lambda story: change(story, "send", (1, 0), type="info", first_offset=-1, last_offset=-1)
    ),
    "a late batch of a former producer": Planted(late_incarnation),
    "retention": Planted(trimmed),
    "deleted by nobody": Planted(
        trimmed_by_nobody,
        {
            ("lost-write", None): {"count": 6, "stream": 1, "sequence": 0, "offset": 0},
            ("inconsistent-offsets", "read"): {"count": 6, "offset": 0},
            ("log-gap", "sequences"): {"count": 2, "size": 6, "stream": 1, "sequence": 0, "offset": 0},
        },
    ),
    "deleted further than asked for": Planted(
        trimmed_further_than_asked,
        {
            ("lost-write", None): {"count": 3, "stream": 2, "sequence": 0, "offset": 3},
            ("inconsistent-offsets", "read"): {"count": 3, "offset": 3},
            ("log-gap", "sequences"): {"count": 1, "size": 3, "stream": 2, "sequence": 0, "offset": 3},
        },
    ),
    "deleted on the brokers' own word": Planted(
        trimmed_on_its_own_word,
        {
            ("lost-write", None): {"count": 6, "stream": 1, "sequence": 0, "offset": 0},
            ("inconsistent-offsets", "read"): {"count": 6, "offset": 0},
            ("log-gap", "sequences"): {"count": 2, "size": 6, "stream": 1, "sequence": 0, "offset": 0},
        },
    ),
    "deleted by request": Planted(deleted_by_request),
    "a replica that was added after a deletion": Planted(added_after_a_deletion),
    "led by a replica that was added after a deletion": Planted(led_by_one_added_after_a_deletion),
    "added after a deletion without the batch of its start": Planted(
        added_without_its_first_batch, {("log-divergence", "missing"): {"count": 1, "offset": 3}}
    ),
    "a follower that deleted first": Planted(follower_ahead_in_retention),
    "a follower that lost its beginning": Planted(
        follower_lost_its_beginning, {("log-divergence", "missing"): {"count": 2, "offset": 0}}
    ),
    "a compacted topic": Planted(compacted),
    "retention of what had no offset": Planted(unknown_offsets_after_retention),
    "acknowledged behind the sentinel": Planted(lambda story: behind_the_sentinel(story, read=False)),
    "the sentinel itself is skipped": Planted(
        lambda story: behind_the_sentinel(story, read=True),
        {
            ("unseen", None): {"count": 1, "stream": SENTINEL_STREAM, "sequence": 0, "offset": 24},
            ("poll-skip", None): {"count": 1, "stream": 1, "sequence": 12, "offset": 25},
        },
    ),
    "read where it no longer is": Planted(
        read_where_it_no_longer_is,
        {
            ("duplicate", "vanished"): {"count": 1, "stream": 1, "sequence": 0, "offset": 0},
            ("inconsistent-offsets", "read"): {"count": 1, "offset": 4000},
        },
    ),
    "rows that make no sense": Planted(senseless_rows),
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
    "stored three times": Planted(
        three_copies, {("duplicate", "mixed"): COPIED, ("log-duplicate", "mixed"): {**COPIED, "size": 9}, **REPEATED}
    ),
    "written twice by a replica": Planted(
        written_twice_in_file, {("log-reorder", "offsets"): {"count": 1, "offset": 3}}
    ),
    "written twice by the leader": Planted(
        written_twice_in_leader,
        {
            ("log-reorder", "offsets"): {"count": 1, "offset": 3},
            ("sequence-gap", "backwards"): {"count": 1, "offset": 3},
        },
    ),
    "lost, and acknowledged in the wrong order": Planted(
        lost_with_reversed_offsets, {("lost-write", None): {"count": 3, "stream": 2, "offset": 889}}
    ),
    "acknowledged at its second copy": Planted(
        acknowledged_at_its_copy, {("duplicate", "broker"): COPIED, ("log-duplicate", "broker"): COPIED, **REPEATED}
    ),
    "far out of order": Planted(far_backwards, {("log-reorder", "offsets"): {"count": 2, "offset": 3}}),
    "anything above the high watermark": Planted(wild_tail),
    "a flipped CRC": Planted(flipped_crc, {("log-corrupt", "batch"): {"count": 1, "offset": 3}}),
    "a replica that is behind and says so": Planted(replica_behind),
    "failed, then acknowledged": Planted(failed_then_acknowledged),
    "a name lost in a corrupt batch": Planted(corrupt_name, {("log-corrupt", "batch"): {"count": 1, "offset": 3}}),
    "read from nowhere": Planted(
        read_from_nowhere,
        {
            ("phantom", "never-reserved"): {"count": 1, "stream": 9, "sequence": 500, "offset": 4000},
            ("inconsistent-offsets", "read"): {"count": 1, "offset": 4000},
        },
    ),
}
