"""Planted pairs for what excuses an anomaly: the event that does, and the nearest one that does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.support.settings import settings
from tests.support.stories import SECOND, SENTINEL_STREAM, Story, row
from tests.verifier.planted.changes import (
    anonymous,
    append_copy,
    change,
    copy_after_timeout,
    lose_acked,
    reverse_stream,
)
from tests.verifier.planted.model import Planted
from verifier.evidence.run_model import RunSettings

Expected = Mapping[tuple[str, str | None], Mapping[str, Any]]

#: A follower may be 1.5 s behind, a dead leader is noticed within 1 s.
QUICK = settings(replica_lag_time_max_ms=1000, session_timeout_ms=1000)
EARLY, UNACKNOWLEDGED = replace(QUICK, acks="1", idempotence=False), replace(QUICK, acks="0", idempotence=False)
REPEATING = settings(idempotence=False)
NEVER_USED = (("reserve", "invoke"), ("unsent", "fail"))
WEEK = 7 * 86_400 * SECOND

LOST = {"count": 3, "stream": 1, "sequence": 3, "offset": 6}
GAP = {**LOST, "count": 1, "size": 3}
ANOTHER = {"count": 3, "offset": 6}
AFTER = {("lost-write", None): {**LOST, "offset": None}, ("log-gap", "sequences"): {**GAP, "offset": None}}
LOSSES = {
    ("lost-write", None): LOST,
    ("inconsistent-offsets", "acknowledged"): ANOTHER,
    ("log-gap", "sequences"): GAP,
}
#: Named at the offsets from 9 on, at which other values were acknowledged, too.
FURTHER = {
    ("lost-write", None): {**LOST, "offset": 9},
    ("inconsistent-offsets", "acknowledged"): {"count": 3, "offset": 9},
    ("log-gap", "sequences"): {**GAP, "offset": 9},
}
COPIED = {"count": 3, "stream": 1, "sequence": 0, "offset": 0}
COPIES = {("duplicate", "unidentified"): COPIED, ("log-duplicate", "unidentified"): COPIED}
RESENT = {
    ("duplicate", "client-resend-after-error"): COPIED,
    ("log-duplicate", "client-resend-after-error"): COPIED,
}
LATE = {**COPIED, "offset": 6}
REORDERED = {("log-reorder", "values"): LATE, ("nonmonotonic-send", None): LATE}
#: In these stories each batch is sent when the one before is acknowledged, which no retry excuses.
OUT_OF_TIME: Expected = {("realtime-order", None): {"count": 3, "stream": 1, "sequence": 3, "offset": 0}}


def elect(story: Story, start_offset: int, *, seen: bool = True, at_ns: int = 13 * SECOND // 10) -> None:
    """All that stands at or above this offset was written in the next leader epoch, as the conductor saw."""

    def lead(batches: list[Any]) -> None:
        batches[:] = [replace(each, leader_epoch=2) if each.base_offset >= start_offset else each for each in batches]

    story.everywhere(0, lead)
    looks = [(0, None, 1), (at_ns + SECOND // 10, at_ns - SECOND // 10, 2)]
    story.leaders = [
        {"time_ns": time_ns, "before_ns": before_ns, "partition": 0, "leader": 2, "leader_epoch": epoch, "isr": [1, 2]}
        for time_ns, before_ns, epoch in looks[: 2 if seen else 1]
    ]


def election(start_offset: int = 6, asked: RunSettings = EARLY, **looks: Any) -> Callable[[Story], None]:
    """Values 3 to 5 of stream 1 were acknowledged at offsets 6 to 8 and are lost; others took their place."""

    def plant(story: Story) -> None:
        lose_acked(story)
        anonymous(story)
        story.settings = asked
        elect(story, start_offset, **looks)
        # most of what is reserved for sentinels is never used
        reserve, unsent = (row(f, kind, 0, SENTINEL_STREAM, 1, 999, -1) for f, kind in NEVER_USED)
        story.rows["sentinel"] += [reserve, unsent]

    return plant


def committed(high_watermark: int, *, late: bool = False) -> Callable[[Story], None]:
    """The same, and a live reader was told this high watermark before the election, or long after it."""

    def plant(story: Story) -> None:
        election()(story)
        story.rows["reader-1"] = [each._replace(high_watermark=-1) for each in story.rows["reader-1"]]
        at_ns = story.leaders[-1]["time_ns"] + SECOND if late else story.leaders[-1]["before_ns"]
        idle = row("idle", "ok", 0, -1, -1, -1, -1)
        story.rows["reader-1"].append(idle._replace(complete_ns=at_ns, invoke_ns=at_ns, high_watermark=high_watermark))

    return plant


def without_offsets(*, lost_from: int = 3, start_offset: int = 6) -> Callable[[Story], None]:
    """The same with acks=0: nobody was told an offset."""

    def plant(story: Story) -> None:
        election(start_offset, UNACKNOWLEDGED)(story)
        for process, rows in story.rows.items():
            story.rows[process] = [
                each._replace(first_offset=-1, last_offset=-1) if each.f == "send" else each for each in rows
            ]

    return plant


def acknowledged_long_after(story: Story) -> None:
    """The election had cut off what its leader had; this was acknowledged much later."""
    election()(story)
    change(story, "send", (1, 3), invoke_ns=WEEK, complete_ns=WEEK)


def acknowledged_under_a_fault(story: Story) -> None:
    """The old leader was cut off and knew of no successor: it acknowledged until it was healed."""
    acknowledged_long_after(story)
    story.faults = fault("isolate-broker", "broker 2, leader of t-0, 5 links", SECOND, WEEK)


def fault(name: str, target: str, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """A fault as the injector records it."""
    whole = {"fault": name, "target": target, "effective": True, "probe": {}}
    return [
        {**whole, "number": 0, "phase": "inject", "start_ns": start_ns, "end_ns": start_ns + 1},
        {**whole, "number": 0, "phase": "heal", "start_ns": end_ns - 1, "end_ns": end_ns},
    ]


def disconnect(stream: int, at_ns: int, connections: int = 1) -> Callable[[Story], None]:
    """acks=0, no election, and a client lost a connection."""

    def plant(story: Story) -> None:
        without_offsets()(story)
        elect(story, 10_000, seen=False)
        story.everywhere(0, lambda batches: _in_one_epoch(batches))
        lost = row("disconnect", "info", 0, stream, 3, 5, -1)._replace(invoke_ns=at_ns, complete_ns=at_ns)
        lost = lost._replace(count=connections)
        story.rows["producer-1"].append(lost)

    return plant


def _in_one_epoch(batches: list[Any]) -> None:
    batches[:] = [replace(each, leader_epoch=1) for each in batches]


def held_up(
    link: str, stream: int = 1, healed_ns: int = 10 * SECOND, direction: str = "requests"
) -> Callable[[Story], None]:
    """acks=0, the harness cut a link for long, and then a client lost a connection; broker 2 leads."""

    def plant(story: Story) -> None:
        disconnect(stream, 10 * SECOND)(story)
        story.faults = fault("cut-link", f"{link}, {direction} only, lossy", SECOND, healed_ns)

    return plant


def closed(at_ns: int) -> Callable[[Story], None]:
    """acks=0, no connection was lost, and the producer of the lost values was closed."""

    def plant(story: Story) -> None:
        disconnect(2, WEEK)(story)
        story.rows["producer-1"].append(
            row("unsent", "fail", 0, 1, 500, 509, -1)._replace(invoke_ns=at_ns, complete_ns=at_ns)
        )

    return plant


def further_up(story: Story) -> None:
    """Three records are not in the log: an offset three above the epoch's start was never taken in another log."""
    election()(story)
    change(story, "send", (1, 3), first_offset=9, last_offset=11)


def with_retry(
    damage: Callable[[Story], None], stream: int, first: int, last: int, records: int = 3
) -> Callable[[Story], None]:
    """A damage, and the client says that it sent these sequences again."""

    def plant(story: Story) -> None:
        damage(story)
        anonymous(story)
        story.settings = REPEATING
        again = row("retry", "info", 0, stream, first, last, -1)._replace(
            error="retry: NETWORK_EXCEPTION", count=records
        )
        story.rows["producer-1"].append(again)

    return plant


def after(error: str, *, acks: str = "1", client: str = "native", at_ns: int = SECOND) -> Callable[[Story], None]:
    """The first batch stands twice, and its client says that it sent it again after an attempt that ended so."""

    def plant(story: Story) -> None:
        with_retry(stored_again, 1, 0, 2)(story)
        story.settings = replace(REPEATING, acks=acks, client=client)
        told = story.rows["producer-1"]
        told[-1] = told[-1]._replace(error=f"retry: {error}", invoke_ns=at_ns, complete_ns=at_ns)

    return plant


def refused_and_late(story: Story) -> None:
    """What was refused leaves no copy, and comes later all the same."""
    with_retry(reverse_stream, 1, 0, 2)(story)
    story.settings = replace(REPEATING, acks="1", client="native")
    told = story.rows["producer-1"]
    told[-1] = told[-1]._replace(error="retry: NOT_LEADER_OR_FOLLOWER")


def timed_out_just_then(story: Story) -> None:
    """The delivery of another value of the stream timed out while the repeated ones were outstanding."""
    copy_after_timeout(story)
    change(story, "send", (1, 900), invoke_ns=SECOND, complete_ns=SECOND)


def stored_again(story: Story) -> None:
    append_copy(story, producer_id=-1)


def excused(found: Expected, excuse: str | None) -> Expected:
    """All of this, and this excuses it."""
    return {key: {**fields, "excuse": excuse} for key, fields in found.items()}


PLANTED: Mapping[str, Planted] = {
    "cut off by an election": Planted(election(), excused(LOSSES, "election")),
    "one offset below the epoch": Planted(election(9), excused(LOSSES, None), neighbor="cut off by an election"),
    "committed, as a reader was told before the election": Planted(
        committed(9), excused(LOSSES, None), neighbor="above what was committed"
    ),
    "above what was committed": Planted(committed(6), excused(LOSSES, "election")),
    "committed, as it was told after the election": Planted(committed(9, late=True), excused(LOSSES, "election")),
    "further up than a log can have reached": Planted(
        further_up, excused(FURTHER, None), neighbor="cut off by an election"
    ),
    "an epoch that nobody saw begin": Planted(
        election(seen=False), excused(LOSSES, None), neighbor="cut off by an election"
    ),
    "behind what stands in the epoch": Planted(election(0), excused(LOSSES, None), neighbor="cut off by an election"),
    "long after the election": Planted(
        acknowledged_long_after, excused(LOSSES, None), neighbor="by a leader that was cut off"
    ),
    "by a leader that was cut off": Planted(acknowledged_under_a_fault, excused(LOSSES, "election")),
    "sent without acknowledgement to who was replaced": Planted(without_offsets(), excused(AFTER, "election")),
    "sent without acknowledgement before others that stand": Planted(
        without_offsets(start_offset=15),
        excused(AFTER, None),
        neighbor="sent without acknowledgement to who was replaced",
    ),
    "sent over a connection that was lost": Planted(disconnect(1, 2 * SECOND), excused(AFTER, "disconnect")),
    "another stream lost its connection": Planted(
        disconnect(2, 2 * SECOND), excused(AFTER, None), neighbor="sent over a connection that was lost"
    ),
    "the connection that was lost had carried nothing": Planted(
        disconnect(1, 2 * SECOND, 0), excused(AFTER, None), neighbor="sent over a connection that was lost"
    ),
    "the connection was lost before": Planted(
        disconnect(1, SECOND), excused(AFTER, None), neighbor="sent over a connection that was lost"
    ),
    "the connection was lost later": Planted(
        disconnect(1, 10 * SECOND), excused(AFTER, None), neighbor="sent over a connection that was lost"
    ),
    "sent over a link that was cut until the connection was lost": Planted(
        held_up("producers-b2"), excused(AFTER, "disconnect")
    ),
    "the link was healed long before": Planted(
        held_up("producers-b2", healed_ns=2 * SECOND),
        excused(AFTER, None),
        neighbor="sent over a link that was cut until the connection was lost",
    ),
    "a link was cut and the connection held": Planted(
        held_up("producers-b2", stream=2),
        excused(AFTER, None),
        neighbor="sent over a link that was cut until the connection was lost",
    ),
    "sent when its producer was closed": Planted(closed(17 * SECOND // 10), excused(AFTER, "disconnect")),
    "sent well before its producer was closed": Planted(
        closed(2 * SECOND), excused(AFTER, None), neighbor="sent when its producer was closed"
    ),
    "a link to who does not lead was cut": Planted(
        held_up("producers-b3"),
        excused(AFTER, None),
        neighbor="sent over a link that was cut until the connection was lost",
    ),
    "only what brokers send was held up": Planted(
        held_up("producers-b2", direction="responses"),
        excused(AFTER, None),
        neighbor="sent over a link that was cut until the connection was lost",
    ),
    "a link between brokers was cut": Planted(
        held_up("b2-b1"),
        excused(AFTER, None),
        neighbor="sent over a link that was cut until the connection was lost",
    ),
    "repeated by a retry": Planted(with_retry(stored_again, 1, 0, 2), excused(COPIES, "retry")),
    "more were repeated than the retry had records": Planted(
        with_retry(stored_again, 1, 0, 5, records=2), excused(COPIES, None), neighbor="repeated by a retry"
    ),
    "its neighbors were retried": Planted(
        with_retry(stored_again, 1, 3, 5), excused(COPIES, None), neighbor="repeated by a retry"
    ),
    "another stream was retried": Planted(
        with_retry(stored_again, 2, 0, 2), excused(COPIES, None), neighbor="repeated by a retry"
    ),
    "repeated after an answer that was lost": Planted(after("NETWORK_EXCEPTION"), excused(COPIES, "retry")),
    "repeated after a timeout of the followers": Planted(
        after("REQUEST_TIMED_OUT", acks="all"), excused(COPIES, "retry")
    ),
    "repeated after too few followers had it": Planted(
        after("NOT_ENOUGH_REPLICAS_AFTER_APPEND", acks="all"), excused(COPIES, "retry")
    ),
    "repeated though too few followers were there": Planted(
        after("NOT_ENOUGH_REPLICAS", acks="all"),
        excused(COPIES, None),
        neighbor="repeated after too few followers had it",
    ),
    "repeated after its leader was replaced": Planted(
        after("NOT_LEADER_OR_FOLLOWER", acks="all"), excused(COPIES, "retry")
    ),
    "repeated after somebody who did not lead": Planted(
        after("NOT_LEADER_OR_FOLLOWER"),
        excused(COPIES, None),
        neighbor="repeated after its leader was replaced",
    ),
    "repeated after librdkafka says that too few were there": Planted(
        after("Broker: Not enough in-sync replicas", acks="all", client="confluent"), excused(COPIES, "retry")
    ),
    "retried when it had been acknowledged": Planted(
        after("NETWORK_EXCEPTION", at_ns=15 * SECOND),
        excused(COPIES, None),
        neighbor="repeated after an answer that was lost",
    ),
    "late because it was refused": Planted(refused_and_late, {**excused(REORDERED, "retry"), **OUT_OF_TIME}),
    "late because of a retry": Planted(
        with_retry(reverse_stream, 1, 0, 2), {**excused(REORDERED, "retry"), **OUT_OF_TIME}
    ),
    "late beside a retry": Planted(
        with_retry(reverse_stream, 1, 3, 5),
        {**excused(REORDERED, None), **OUT_OF_TIME},
        neighbor="late because of a retry",
    ),
    "sent again after a timeout just then": Planted(timed_out_just_then, excused(RESENT, "timeout")),
    "sent again long before a timeout": Planted(
        copy_after_timeout, excused(RESENT, None), neighbor="sent again after a timeout just then"
    ),
}
