"""Which event excuses which value, once more: row by row and value by value, with figures of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.verifier.oracle.model import Anomaly, Evidence, Value, makes_sense

SECOND = 1_000_000_000


class Excuse(NamedTuple):
    """``epoch`` is an election's; None of any other event."""

    kind: str
    epoch: int | None = None


class Election(NamedTuple):
    epoch: int
    start: int
    end: int
    about: int
    since: int
    until: int
    logs: int  # that can have been cut off at its start


def told(evidence: Evidence) -> list[dict[str, Any]]:
    """What producers and live readers were told."""
    return [
        row for row in evidence.rows
        if row["type"] == "ok" and row["stream"] >= 0 and makes_sense(row)
        and (row["f"] == "send" or (row["f"] == "poll" and row["phase"] == "load"))
    ]  # fmt: skip


def first_in(evidence: Evidence, stream: int, epoch: int) -> int | None:
    found = [
        slot.value[1]
        for slot, b in evidence.log()
        if slot.value and b.leader_epoch >= epoch and slot.value[0] == stream
    ]
    return min(found, default=None)


def last_before(evidence: Evidence, stream: int, epoch: int) -> int | None:
    found = [
        slot.value[1] for slot, b in evidence.log() if slot.value and b.leader_epoch < epoch and slot.value[0] == stream
    ]
    return max(found, default=None)


class Span(NamedTuple):
    """From the injection to the end of the healing; the brokers that the target names, or whose producers' link.

    ``alive``: all whom it hit in any way and left alive.
    """

    begin: int
    end: int
    brokers: set[int]
    alive: set[int]


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
            dies = entry["fault"].split("-")[0] in ("kill", "rolling")
            yield Span(entry["start_ns"], healed[0] if healed else 2**62, brokers, set() if dies else brokers | peers)


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
        if any(entry.get("leader") in span.brokers for entry in leading(seen, span)):
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


def elections(evidence: Evidence) -> list[Election]:
    """Those that the conductor saw between two looks, and whose epoch has a batch in the final leader's log."""
    limit = evidence.limit(evidence.final.leader)
    batches = [batch for batch in evidence.leader.batches if batch.base_offset < limit]
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
        for row in sends:
            first = first_in(evidence, row["stream"], epoch)
            if first is not None and row["first_sequence"] >= first:
                acknowledged.append(row["complete_ns"])
        latest = min([looks[0]["time_ns"], *acknowledged])
        earliest = min(max([looks[0]["before_ns"], *sent]), latest)
        dead = evidence.run.settings.session_timeout_ms * 10**6
        behind = evidence.run.settings.replica_lag_time_max_ms * 3 // 2 * 10**6 + 3 * SECOND
        since, until = earliest - dead - behind, latest + 3 * SECOND
        for span in fault_spans(evidence):
            if span.begin <= latest + 3 * SECOND and span.end >= earliest - dead - 3 * SECOND:
                since = min(since, span.begin - behind)
                for entry in leading(epochs_seen(evidence), span):
                    unaware = entry.get("leader") in span.alive or (entry.get("leader") is None and span.alive)
                    if entry["leader_epoch"] < looks[0]["leader_epoch"] and unaware:
                        until = max(until, span.end + 3 * SECOND)
        below = max((batch.leader_epoch for batch in batches if batch.leader_epoch < epoch), default=0)
        found.append(Election(epoch, start, start + room, latest, since, until, max(epoch - below, 1)))
    return found


def cut_off(evidence: Evidence) -> Iterator[tuple[Value, int | None, Election]]:
    """Every value of a row that an election cut off, the offset that the row gives it, and the election.

    A log has one value at an offset: where more were acknowledged than there were logs, the election excuses none.
    """
    found = list(within_reach(evidence))
    first = {row: min(e.epoch for number, *_, e in found if number == row) for row in {each[0] for each in found}}
    rows = told(evidence)
    rivals: dict[tuple[int, int], set[Value]] = defaultdict(set)
    for number, value, offset, election in found:
        if rows[number]["f"] == "send" and offset is not None and first[number] == election.epoch:
            rivals[election.epoch, offset].add(value)
    for number, value, offset, election in found:
        placed = rows[number]["f"] == "send" and offset is not None
        if not placed or len(rivals[election.epoch, offset or 0]) <= election.logs:
            yield value, offset, election


def within_reach(evidence: Evidence) -> Iterator[tuple[int, Value, int | None, Election]]:
    """The same before that: which row, value, offset and election."""
    for election in elections(evidence):
        for number, row in enumerate(told(evidence)):
            if not election.since <= row["complete_ns"] <= election.until:
                continue
            stream = row["stream"]
            first, last = first_in(evidence, stream, election.epoch), last_before(evidence, stream, election.epoch)
            for step in range(row["last_sequence"] - row["first_sequence"] + 1):
                sequence = row["first_sequence"] + step
                offset = row["first_offset"] + step if row["first_offset"] >= 0 else None
                if first is not None and sequence >= first:
                    continue
                if (offset is None and (last is None or sequence > last)) or (
                    offset is not None and election.start <= offset < election.end
                ):
                    yield number, (stream, sequence), offset, election


def disconnected(evidence: Evidence) -> set[Value]:
    """Values without an offset that were under way when their own client lost a connection, or was closed."""
    found = set()
    for lost in evidence.rows:
        if lost["f"] not in ("disconnect", "unsent") or lost["complete_ns"] < 0:
            continue
        at = lost["complete_ns"]
        if lost["f"] == "unsent":
            since = at - SECOND // 2
        else:
            since = min([at - 2 * SECOND, *(b for b, e in holding_up(evidence) if b <= at <= e + 3 * SECOND)])
        for row in told(evidence):
            own = row["f"] == "send" and row["first_offset"] < 0 and row["stream"] == lost["stream"]
            if own and row["invoke_ns"] <= at and since <= row["complete_ns"] <= at + 2 * SECOND:
                found |= {(row["stream"], s) for s in range(row["first_sequence"], row["last_sequence"] + 1)}
    return found


def retries(evidence: Evidence) -> list[dict[str, Any]]:
    return [row for row in evidence.rows if row["f"] == "retry" and row["stream"] >= 0 and makes_sense(row)]


def retried(evidence: Evidence) -> set[Value]:
    return {
        (row["stream"], sequence)
        for row in retries(evidence)
        for sequence in range(row["first_sequence"], row["last_sequence"] + 1)
    }


def copies(evidence: Evidence, found: Anomaly) -> int:
    """How often a value must have been sent again: the offsets at which it stands or was read, less one."""
    value = (found.stream or 0, found.sequence or 0)
    offsets = {offset for offset, _ in evidence.copies().get(value, [])} | set(evidence.reads().get(value, []))
    return max(1, len(offsets) - 1) if found.check in ("duplicate", "log-duplicate") else 1


def within_attempts(evidence: Evidence, found: list[Anomaly]) -> list[Anomaly]:
    """Of one check: retries that overlap excuse no more copies than they had records together, or none."""
    refused: set[Value] = set()
    for stream in {row["stream"] for row in retries(evidence)}:
        bouts: list[list[int]] = []  # first, last, records
        for row in sorted(retries(evidence), key=lambda row: (row["first_sequence"], row["last_sequence"])):
            if row["stream"] == stream:
                if bouts and row["first_sequence"] <= bouts[-1][1]:
                    bouts[-1][1] = max(bouts[-1][1], row["last_sequence"])
                    bouts[-1][2] += max(row["count"], 0)
                else:
                    bouts.append([row["first_sequence"], row["last_sequence"], max(row["count"], 0)])
        for first, last, records in bouts:
            excused = [
                each for each in found
                if each.excuse == "retry" and each.stream == stream
                and each.sequence is not None and first <= each.sequence <= last
            ]  # fmt: skip
            if sum(copies(evidence, each) for each in excused) > records:
                refused |= {(stream, each.sequence) for each in excused if each.sequence is not None}
    return [
        each._replace(excuse=None) if each.excuse == "retry" and (each.stream, each.sequence) in refused else each
        for each in found
    ]


def timed_out(evidence: Evidence) -> set[Value]:
    """Values that were outstanding when a delivery of their stream timed out."""
    sends = [row for row in evidence.rows if row["f"] == "send" and row["stream"] >= 0 and makes_sense(row)]
    found = set()
    for timeout in sends:
        if timeout["type"] == "info" and (timeout["error"] or "").startswith("_MSG_TIMED_OUT"):
            for row in sends:
                near = row["invoke_ns"] <= timeout["complete_ns"] + SECOND
                near = near and row["complete_ns"] >= timeout["complete_ns"] - SECOND
                if row["stream"] == timeout["stream"] and near:
                    found |= {(row["stream"], s) for s in range(row["first_sequence"], row["last_sequence"] + 1)}
    return found


def _earliest(found: Iterable[Election]) -> Excuse:
    return Excuse("election", min((each.about, each.epoch) for each in found)[1])


def of_lost(evidence: Evidence, value: Value) -> Excuse | None:
    """All of its acknowledgements must be excused."""
    by_election = [(offset, election) for cut, offset, election in cut_off(evidence) if cut == value]
    claims = set(evidence.acks()[value])
    if claims and claims <= {offset for offset, _ in by_election}:
        return _earliest(election for _, election in by_election)
    by_connection: set[int | None] = {None} if value in disconnected(evidence) else set()
    if claims and claims <= {offset for offset, _ in by_election} | by_connection:
        return Excuse("disconnect")
    return None


def of_offset(evidence: Evidence, offset: int) -> Excuse | None:
    """All that contradicts the log there must be excused."""
    stands = {slot.value for slot, _ in evidence.log() if slot.offset == offset}
    claims = {value for value, offsets in evidence.acks().items() if offset in offsets}
    claims |= {value for value, offsets in evidence.reads().items() if offset in offsets}
    by_election = [(value, election) for value, at, election in cut_off(evidence) if at == offset]
    strays = claims - stands
    if strays and strays <= {value for value, _ in by_election}:
        return _earliest(election for _, election in by_election)
    return None


def of_repeated(evidence: Evidence, value: Value, cause: str | None) -> Excuse | None:
    """Sent again; or of ``vanished`` copies, cut off."""
    if cause == "vanished":
        by_election = [(offset, election) for cut, offset, election in cut_off(evidence) if cut == value]
        strays = set(evidence.reads()[value]) - {offset for offset, _ in evidence.copies().get(value, [])}
        if strays and strays <= {offset for offset, _ in by_election}:
            return _earliest(election for _, election in by_election)
    if cause == "client-resend-after-error" and value in timed_out(evidence):
        return Excuse("timeout")
    if value in retried(evidence):
        return Excuse("retry")
    return Excuse("timeout") if value in timed_out(evidence) else None


def of_partition(evidence: Evidence, check: str) -> str | None:
    """What readers were handed and what headers say: excused as a whole, by an election that was seen, or a retry."""
    settings = evidence.run.settings
    seen = epochs_seen(evidence)
    if settings.unclean_leader_election and check in UNDER_UNCLEAN and any(e["before_ns"] is not None for e in seen):
        return "election"
    forgetful = settings.unknown_producer != "gapless" and settings.retries > 0
    if forgetful and check in UNDER_FORGETFUL and any(row["f"] == "retry" for row in evidence.rows):
        return "retry"
    return None


UNDER_UNCLEAN = (
    "poll-skip", "int-poll-skip", "nonmonotonic-poll", "int-nonmonotonic-poll", "watermark-regression", "sequence-gap",
)  # fmt: skip
UNDER_FORGETFUL = ("sequence-gap", "sequence-duplicate")
