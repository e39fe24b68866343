"""Mutations of what clients were told and when: sends, acknowledgements, polls, sessions and retries."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.support.stories import (
    SECOND,
    Partition,
    Story,
)
from tests.verifier.mutations.model import (
    a_history,
    a_partition,
    a_row,
    leader_log,
    one_of,
    written_replicas,
)
from verifier.evidence.history import HistoryRow


@one_of(a_row("producer", lambda each: each.f == "send" and each.type == "ok"))
def change_send(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """What a producer was told changes: another outcome, another offset, none, or another order."""
    rows, index = target
    each = rows[index]
    low = each.first_offset + random.choice([step for step in (-3, -1, 1, 2, 500) if each.first_offset + step >= 0])
    changed = [
        each._replace(type="info", first_offset=-1, last_offset=-1, error="_PURGE_QUEUE: Local"),
        each._replace(type="fail", first_offset=-1, last_offset=-1),
        each._replace(first_offset=-1, last_offset=-1),
        each._replace(first_offset=low, last_offset=low + each.last_sequence - each.first_sequence),
    ]
    rows[index] = random.choice([other for other in changed if other != each])


@one_of(a_row("producer", lambda each: each.f == "send" and each.type == "ok" and each.first_offset >= 0))
def acknowledge_again(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """A value is acknowledged a second time, elsewhere."""
    rows, index = target
    each = rows[index]
    rows.append(each._replace(first_offset=each.first_offset + 7, last_offset=each.last_offset + 7))


@one_of(a_history("reader", "final"))
def change_reads(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """A reader misses something, is handed it elsewhere, twice, or as bytes it cannot decode."""
    index = random.choice([index for index, each in enumerate(rows) if each.f == "poll"])
    each = rows[index]
    move = random.choice([1, 2, 300])
    undecodable = each._replace(stream=-1, first_sequence=-1, last_sequence=-1, error="undecodable: damaged")
    elsewhere = each._replace(first_offset=each.first_offset + move, last_offset=each.last_offset + move)
    changed = [[], [elsewhere], [each, elsewhere], [undecodable], [each, each]]
    rows[index : index + 1] = random.choice([others for others in changed if others != [each]])


@one_of(a_history("final"))
def stop_reader(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """A final reader ends before the sentinel."""
    del rows[random.randrange(len(rows)) :]


@one_of(a_row("producer", lambda each: each.f == "reserve" and each.first_sequence < each.last_sequence))
def shrink_reservation(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """Fewer sequences were reserved than were sent, or in two parts."""
    rows, index = target
    each = rows[index]
    middle = random.randrange(each.first_sequence, each.last_sequence)
    first = each._replace(last_sequence=middle)
    rest = each._replace(first_sequence=min(middle + random.choice([0, 1, 2]), each.last_sequence))
    rows[index : index + 1] = random.choice([[first], [rest, first], [first, rest], []])


@one_of(a_row("", lambda each: each.f in ("send", "sentinel", "poll")))
def change_times(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """What was sent or read happened at another time."""
    rows, index = target
    each = rows[index]
    moved = random.choice([-700, -150, -10, 1, 150, 700, 5000]) * 1_000_000
    changed = [each._replace(invoke_ns=each.invoke_ns + moved), each._replace(complete_ns=each.complete_ns + moved)]
    changed.append(each._replace(invoke_ns=each.invoke_ns + moved, complete_ns=each.complete_ns + moved))
    rows[index] = random.choice(changed)


@one_of(a_history("reader", "final"))
def change_session(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """From somewhere on a reader has another session, was moved, or had its polls brought together or taken apart."""
    index = random.choice([index for index, each in enumerate(rows) if each.f == "poll"])
    each = rows[index]
    offset = each.first_offset + random.choice([-2, 0, 0, 1])
    kind = random.choice(["assign", "seek", "op", "ops"])
    if kind == "op":
        rows[index:] = [other._replace(op=each.op + 1000) for other in rows[index:]]
    elif kind == "ops":
        rows[index:] = [other._replace(op=5000 + number) for number, other in enumerate(rows[index:])]
    else:
        session = each.session + (kind == "assign")
        rows[index:] = [other._replace(session=session) for other in rows[index:]]
        rows.insert(index, each._replace(f=kind, first_offset=offset, last_offset=offset, stream=-1))


@one_of(a_history("reader"))
def tell_watermarks(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """A reader is told high watermarks, and some of them go back."""
    for index, each in enumerate(rows):
        if each.f == "poll":
            back = random.choice([0, 0, 0, 2, 5])
            rows[index] = each._replace(high_watermark=max(each.last_offset + 1 + random.randrange(4) - back, -1))
    index = random.choice([index for index, each in enumerate(rows) if each.f == "poll"])
    told = rows[index]._replace(f="idle", count=3, stream=-1, first_offset=-1, last_offset=-1)
    rows.insert(index + 1, told._replace(high_watermark=told.high_watermark - 1))


@one_of(a_row("producer", lambda each: each.f == "send"))
def send_again(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """Legal: the client sends something again, or loses a connection."""
    rows, index = target
    each = rows[index]
    first = max(0, each.first_sequence + random.choice([-1, 0, 0, 1, 2]))
    at_ns = each.complete_ns + random.choice([-3, 0, 0, 3, 40]) * SECOND
    again = each._replace(
        f=random.choice(["retry", "retry", "disconnect"]), type="info", first_offset=-1, last_offset=-1,
        first_sequence=first, last_sequence=first + random.choice([0, 1, 2, 5]), invoke_ns=at_ns, complete_ns=at_ns,
        count=random.choice([0, 1, 3]), error="told",
    )  # fmt: skip
    rows.append(again)
    if random.random() < 0.5:
        story.settings = replace(story.settings, idempotence=False)


@one_of(a_partition(lambda place: any(batch.producer_id >= 0 and batch.values for batch in leader_log(place))))
def resend_under_a_raised_epoch(story: Story, random: Random, place: Partition) -> None:
    """A batch stands again under another identity; attempts failed before, or about then, and some were refused."""
    log = leader_log(place)
    first = random.choice([batch for batch in log if batch.producer_id >= 0 and batch.values and not batch.sentinel])
    copy = replace(
        first, base_offset=place.high_watermark, producer_id=first.producer_id + random.choice([0, 0, 0, 0, 1]),
        producer_epoch=max(0, first.producer_epoch + random.choice([1, 1, 1, 2, 0, -1])), base_sequence=0,
    )  # fmt: skip
    for batches in written_replicas(place):
        batches.append(copy)
    place.high_watermark = copy.next_offset
    place.log_end_offsets = {broker: max(end, copy.next_offset) for broker, end in place.log_end_offsets.items()}
    stream, sequence = copy.values[0]
    for name, rows in story.rows.items():
        own = [each for each in rows if each.f == "send" and (each.stream, each.first_sequence) == (stream, sequence)]
        if name.startswith("producer") and own:
            rows += [_failed(random, own[0], number) for number in range(random.randrange(4) + 1)]


def _failed(random: Random, sent: HistoryRow, number: int) -> HistoryRow:
    """An attempt of these values that failed about then; or of later ones, that were refused."""
    refused = number > 0 and random.random() < 0.7
    size = sent.last_sequence - sent.first_sequence + 1
    first = max(0, sent.first_sequence + (random.choice([size, size, size + 1, size + 2, 0, -size]) if refused else 0))
    error = random.choice(["Local: Broker transport failure", "Broker: Not leader for partition", "told"])
    if refused:
        error = "Broker: Broker received an out of order sequence number"
    at_ns = sent.complete_ns + random.choice([-1, 0, 0, 0, 0, 3]) * SECOND
    return sent._replace(
        f="retry", type="info", first_offset=-1, last_offset=-1, first_sequence=first,
        last_sequence=first + random.choice([size, size, 1, size + 1]) - 1, invoke_ns=sent.invoke_ns,
        complete_ns=max(at_ns, 0), count=random.choice([0, 1, size, size, size]), error=f"retry: {error}",
    )  # fmt: skip


def _told_offsets(story: Story) -> list[list[HistoryRow]]:
    return [rows for rows in story.rows.values() if any(each.f == "send" and each.first_offset >= 0 for each in rows)]


@one_of(_told_offsets)
def tell_no_offsets(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """acks=0: no acknowledgement has an offset."""
    rows[:] = [each._replace(first_offset=-1, last_offset=-1) if each.f == "send" else each for each in rows]
    story.settings = replace(story.settings, acks="0", idempotence=False)
