"""What elections the conductor saw, and what each cut off or moved, once more: row by row and value by value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.verifier.oracle.model import Batch, Evidence, Value, makes_sense

SECOND = 1_000_000_000


class Election(NamedTuple):
    epoch: int
    start: int
    end: int
    about: int
    since: int
    until: int
    logs: int  # that can have been cut off at its start
    reach: int  # from here on, if not from its start
    before: int  # it had not begun then


def told(evidence: Evidence) -> list[dict[str, Any]]:
    """What producers and live readers were told."""
    return [
        row for row in evidence.rows
        if row["type"] == "ok" and row["stream"] >= 0 and makes_sense(row)
        and (row["f"] == "send" or (row["f"] == "poll" and row["phase"] == "load"))
    ]  # fmt: skip


def retries(evidence: Evidence) -> list[dict[str, Any]]:
    return [row for row in evidence.rows if row["f"] == "retry" and row["stream"] >= 0 and makes_sense(row)]


#: A leader says so before it appends anything; and the same where it does not wait for others.
REFUSED = {
    "MESSAGE_TOO_LARGE", "INVALID_TOPIC_EXCEPTION", "RECORD_LIST_TOO_LARGE", "INVALID_REQUIRED_ACKS",
    "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "INVALID_TIMESTAMP", "INVALID_REQUEST", "UNSUPPORTED_FOR_MESSAGE_FORMAT", "UNSUPPORTED_VERSION",
    "POLICY_VIOLATION", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED",
    "UNKNOWN_PRODUCER_ID", "UNSUPPORTED_COMPRESSION_TYPE", "INVALID_RECORD",
    "NOT_ENOUGH_REPLICAS", "CORRUPT_MESSAGE", "THROTTLING_QUOTA_EXCEEDED",
}  # fmt: skip
#: librdkafka's word for it; its others leave it open.
OUT_OF_ORDER = "Broker: Broker received an out of order sequence number"
REFUSED_WITHOUT_WAITING = {"NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"}


def doubtful_retries(evidence: Evidence) -> list[dict[str, Any]]:
    """Those whose failed attempt may have stored its records."""
    settings, found = evidence.run.settings, []
    for row in retries(evidence):
        name = (row["error"] or "").removeprefix("retry: ")
        refused = name in REFUSED or (settings.acks != "all" and name in REFUSED_WITHOUT_WAITING)
        if settings.client == "confluent":
            refused = name == OUT_OF_ORDER
        if not refused:
            found.append(row)
    return found


def retried(evidence: Evidence, rows: list[dict[str, Any]]) -> set[Value]:
    """What these rows name and was outstanding then."""
    sends = [row for row in evidence.rows if row["f"] == "send" and makes_sense(row)]
    found = set()
    for row in rows:
        over = {
            sequence
            for send in sends
            if send["stream"] == row["stream"] and send["complete_ns"] < row["complete_ns"]
            for sequence in range(send["first_sequence"], send["last_sequence"] + 1)
        }
        named = set(range(row["first_sequence"], row["last_sequence"] + 1))
        found |= {(row["stream"], sequence) for sequence in named - over}
    return found


def first_in(evidence: Evidence, stream: int, epoch: int, without: frozenset[Value] = frozenset()) -> int | None:
    """The first sequence of a stream that stands in this epoch or a later one."""
    found = [
        slot.value[1]
        for slot, b in evidence.log()
        if slot.value and b.leader_epoch >= epoch and slot.value[0] == stream and slot.value not in without
    ]
    return min(found, default=None)


def first_for(evidence: Evidence, stream: int, epoch: int, invoke_ns: int) -> int | None:
    """The same for what was handed over then: what was sent again later than that may have come behind it."""
    again = out_of_turn(evidence)
    first, in_turn = first_in(evidence, stream, epoch), first_in(evidence, stream, epoch, frozenset(again))
    late = [
        again[slot.value]
        for slot, b in evidence.log()
        if slot.value in again and b.leader_epoch >= epoch and slot.value[0] == stream
        and (in_turn is None or slot.value[1] < in_turn)
    ]  # fmt: skip
    return in_turn if invoke_ns <= max(late, default=-1) else first


def out_of_turn(evidence: Evidence) -> dict[Value, int]:
    """What was sent again where that may come behind what is sent later; and when, the last time of all that touch."""
    settings = evidence.run.settings
    librdkafka = settings.client == "confluent"
    if settings.idempotence or not (settings.retries > 0 or librdkafka):
        reorders = settings.unknown_producer != "gapless" and settings.retries > 0
    else:
        reorders = settings.max_in_flight > 1 or librdkafka
    found: dict[Value, int] = {}
    for stream in {row["stream"] for row in retries(evidence)} if reorders else ():
        stretches: list[list[int]] = []  # first, last, time
        for row in sorted(retries(evidence), key=lambda row: (row["first_sequence"], row["last_sequence"])):
            first, last, time = row["first_sequence"], row["last_sequence"], row["complete_ns"]
            if row["stream"] == stream and stretches and first <= stretches[-1][1] + 1:
                stretches[-1] = [stretches[-1][0], max(last, stretches[-1][1]), max(time, stretches[-1][2])]
            elif row["stream"] == stream:
                stretches.append([first, last, time])
        for first, last, time in stretches:
            found |= {(stream, sequence): time for sequence in range(first, last + 1)}
    return found


def last_before(evidence: Evidence, stream: int, epoch: int) -> int | None:
    found = [
        slot.value[1] for slot, b in evidence.log() if slot.value and b.leader_epoch < epoch and slot.value[0] == stream
    ]
    return max(found, default=None)


class Span(NamedTuple):
    """From the injection to the end of the healing; the brokers that the target names, or whose producers' link.

    ``alive``: all whom it hit in any way and left alive; ``holds``: whether it can hold back what producers send.
    """

    begin: int
    end: int
    brokers: set[int]
    alive: set[int]
    holds: bool


def fault_spans(evidence: Evidence) -> Iterator[Span]:
    for index, entry in enumerate(evidence.faults):
        if entry["phase"] == "inject":
            healed = [
                later["end_ns"] for later in evidence.faults[index:]
                if later["phase"] == "heal" and later["number"] == entry["number"]
            ]  # fmt: skip
            words = entry["target"].replace(",", "").split()
            brokers = {int(word.removeprefix("producers-b")) for word in words if word.startswith("producers-b")}
            listed = False  # one broker, or several
            for word in words:
                if listed and word.isdecimal():
                    brokers.add(int(word))
                listed = word in ("broker", "brokers") or (listed and word.isdecimal())
            ends = {end for word in words for end in word.split("-") if word.startswith("b") and "-" in word}
            peers = {int(end[1:]) for end in ends if end.startswith("b") and end[1:].isdecimal()}
            dies = entry["fault"].split("-")[0] in ("kill", "rolling") or entry["fault"] == "elect-unclean"
            holds = not dies and entry["fault"] not in ("reset", "drop-response") and "responses" not in entry["target"]
            alive: set[int] = set() if dies else brokers | peers
            yield Span(entry["start_ns"], healed[0] if healed else 2**62, brokers, alive, holds)


def epochs_seen(evidence: Evidence) -> list[dict[str, Any]]:
    """What the conductor saw of this partition, without what is no new epoch."""
    seen: list[dict[str, Any]] = []
    for entry in evidence.leaders:
        place = (entry.get("topic", evidence.final.topic), entry["partition"])
        mine = place == (evidence.final.topic, evidence.final.partition)
        if mine and (not seen or entry["leader_epoch"] > seen[-1]["leader_epoch"]):
            seen.append(entry)
    return seen


def holding_up(evidence: Evidence) -> Iterator[tuple[int, int]]:
    """Faults that stood between producers and who led the partition meanwhile."""
    seen = epochs_seen(evidence)
    for span in fault_spans(evidence):
        if span.holds and any(entry.get("leader") in span.brokers for entry in leading(seen, span)):
            yield span.begin, span.end


def leading(seen: list[dict[str, Any]], span: Span) -> Iterator[dict[str, Any]]:
    """The epochs that may have lasted while a fault stood."""
    for index, entry in enumerate(seen):
        led_from, led_to = entry["before_ns"] or 0, seen[index + 1]["time_ns"] if index + 1 < len(seen) else 2**62
        if span.begin <= led_to and span.end >= led_from:
            yield entry


def left_over(evidence: Evidence) -> int:
    """Attempts to send a record that left none in the final log."""
    attempts = 0
    for row in evidence.rows:
        if row["f"] == "retry":
            attempts += max(row["count"], 0)
        elif makes_sense(row) and row["f"] in ("reserve", "sentinel", "unsent"):
            size = row["last_sequence"] - row["first_sequence"] + 1
            if row["f"] == "sentinel":
                attempts += size
            elif row["stream"] < 2**31:
                attempts += size if row["f"] == "reserve" else -size
    return max(0, attempts - sum(slot.value is not None for slot, _ in evidence.log()))


def in_log(evidence: Evidence) -> list[Batch]:
    limit = evidence.limit(evidence.final.leader)
    return [batch for batch in evidence.leader.batches if batch.base_offset < limit]


def elections(evidence: Evidence) -> list[Election]:
    """Those that the conductor saw between two looks, and whose epoch has a batch in the final leader's log."""
    batches = in_log(evidence)
    sends = [row for row in told(evidence) if row["f"] == "send"]
    room = left_over(evidence)
    found = []
    for epoch in sorted({batch.leader_epoch for batch in batches}):
        start = min(batch.base_offset for batch in batches if batch.leader_epoch >= epoch)
        looks = [e for e in epochs_seen(evidence) if e["leader_epoch"] >= epoch]
        if not looks or looks[0]["before_ns"] is None:
            continue
        sent = [row["invoke_ns"] for row in sends if 0 <= row["first_offset"] < start]
        acknowledged = []
        again = frozenset(out_of_turn(evidence))
        for row in sends:
            first = first_in(evidence, row["stream"], epoch, again)
            below = 0 <= row["first_offset"] < start
            if first is not None and row["first_sequence"] >= first and not below:
                acknowledged.append(row["complete_ns"])
        if min(acknowledged, default=2**62) < looks[0]["before_ns"] - 3 * SECOND:
            acknowledged = []  # the looks are contradicted, and none is moved
        latest = min([looks[0]["time_ns"], *acknowledged])
        earliest = min(max([looks[0]["before_ns"], *sent]), latest)
        below = max((batch.leader_epoch for batch in batches if batch.leader_epoch < epoch), default=0)
        gone = next((e["before_ns"] for e in epochs_seen(evidence) if e["leader_epoch"] > below), None)
        if not evidence.may_lose(latest, earliest if gone is None else min(gone, earliest)):
            continue
        since, until = near(evidence, looks[0]["leader_epoch"], earliest, latest)
        until = min(until, evidence.orders_over + 3 * SECOND)
        found.append(Election(epoch, start, start + room, latest, since, until, max(epoch - below, 1), start, earliest))
        if epoch - below > 1 and gone is not None:  # of an epoch between them nothing is left
            standing = any(batch.leader_epoch == below for batch in batches)
            reach = min(batch.base_offset for batch in batches if batch.leader_epoch >= below) if standing else 0
            found.append(
                Election(epoch, start, start, latest, gone - 3 * SECOND, until, epoch - below - 1, reach, gone)
            )
    return found


def near(evidence: Evidence, epoch: int, earliest: int, latest: int) -> tuple[int, int]:
    """From when until when an election that took place between these times can have cut something off."""
    dead = evidence.run.settings.session_timeout_ms * 10**6
    behind = evidence.run.settings.replica_lag_time_max_ms * 3 // 2 * 10**6 + 3 * SECOND
    since, until = earliest - dead - behind, latest + 3 * SECOND
    for span in fault_spans(evidence):
        if span.begin <= latest + 3 * SECOND and span.end >= earliest - dead - 3 * SECOND:
            since = min(since, span.begin - behind)
            for entry in leading(epochs_seen(evidence), span):
                unaware = entry.get("leader") in span.alive or (entry.get("leader") is None and span.alive)
                if entry["leader_epoch"] < epoch and unaware:
                    until = max(until, span.end + 3 * SECOND)
    return since, until


def moved(evidence: Evidence, before_ns: int, at_ns: int, above: int | None = None) -> str | None:
    """Whether an unclean election can have moved whoever had come there then, and goes on elsewhere now.

    ``above``: a watermark, which must have come above what was cut off.
    """
    for look in epochs_seen(evidence) if evidence.run.may_elect_uncleanly else []:
        if look["before_ns"] is None or not evidence.may_lose(look["time_ns"], min(look["before_ns"], look["time_ns"])):
            continue
        stands = [batch for batch in in_log(evidence) if batch.leader_epoch <= look["leader_epoch"]]
        newest = max((batch.leader_epoch for batch in stands), default=0)
        later = [batch.base_offset for batch in in_log(evidence) if batch.leader_epoch >= newest]
        start = min(later) if stands else 0
        times = min(look["before_ns"], look["time_ns"]), look["time_ns"]
        since, until = near(evidence, look["leader_epoch"], *times)
        if before_ns <= until and at_ns >= since and (above is None or above > start):
            return "election"
    return None


def cut_off(evidence: Evidence) -> Iterator[tuple[Value, int | None, Election]]:
    """Every value of a row that an election cut off, the offset that the row gives it, and the election.

    A log has one value at an offset: where more were acknowledged than there were logs, the election excuses none. What
    stands there was not cut off.
    """
    found = list(within_reach(evidence))
    first = {row: min(e.epoch for number, *_, e in found if number == row) for row in {each[0] for each in found}}
    rows = told(evidence)
    rivals: dict[tuple[int, int], set[Value]] = defaultdict(set)
    stands: dict[int, set[Value]] = defaultdict(set)
    for slot, _ in evidence.log():
        if slot.value is not None:
            stands[slot.offset].add(slot.value)
    for number, value, offset, election in found:
        placed = rows[number]["f"] == "send" and offset is not None and first[number] == election.epoch
        if placed and value not in stands.get(offset or 0, set()):
            rivals[election.epoch, offset or 0].add(value)
    for number, value, offset, election in found:
        placed = rows[number]["f"] == "send" and offset is not None
        if not placed or len(rivals[election.epoch, offset or 0]) <= election.logs:
            yield value, offset, election


def committed(evidence: Evidence, election: Election) -> int:
    """Below what no clean election cuts off: the highest watermark that a reader was told before it."""
    told_of = [
        row["high_watermark"] for row in evidence.rows
        if row["f"] in ("poll", "idle") and row["type"] == "ok" and row["complete_ns"] <= election.before
    ]  # fmt: skip
    is_unclean = evidence.run.settings.unclean_leader_election or bool(evidence.orders)
    return 0 if is_unclean else max(told_of, default=0)


def within_reach(evidence: Evidence) -> Iterator[tuple[int, Value, int | None, Election]]:
    """The same before that: which row, value, offset and election."""
    for election in elections(evidence):
        for number, row in enumerate(told(evidence)):
            if not election.since <= row["complete_ns"] <= election.until:
                continue
            stream = row["stream"]
            first = first_for(evidence, stream, election.epoch, row["invoke_ns"])
            last = last_before(evidence, stream, election.epoch)
            for step in range(row["last_sequence"] - row["first_sequence"] + 1):
                sequence = row["first_sequence"] + step
                offset = row["first_offset"] + step if row["first_offset"] >= 0 else None
                if first is not None and sequence >= first:
                    continue
                if (offset is None and (last is None or sequence > last)) or (
                    offset is not None and max(election.reach, committed(evidence, election)) <= offset < election.end
                ):
                    yield number, (stream, sequence), offset, election
