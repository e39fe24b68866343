"""Which event excuses which value, once more: row by row and value by value, with figures of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.verifier.oracle.elections import (
    SECOND,
    Election,
    cut_off,
    doubtful_retries,
    epochs_seen,
    holding_up,
    retried,
    retries,
    told,
)
from tests.verifier.oracle.model import Anomaly, Evidence, Value, makes_sense
from tests.verifier.oracle.resent import in_doubt, sent_under_a_raised_epoch


class Excuse(NamedTuple):
    """``epoch`` is an election's; None of any other event."""

    kind: str
    epoch: int | None = None


class Loss(NamedTuple):
    """Connections that a client lost, or closed, and from when on their stream may have suffered."""

    at: int
    since: int
    stream: int
    connections: int


def losses(evidence: Evidence) -> Iterator[Loss]:
    for lost in evidence.rows:
        at = lost["complete_ns"]
        if at >= 0 and lost["f"] == "unsent":
            yield Loss(at, at - SECOND // 2, lost["stream"], 1)
        elif at >= 0 and lost["f"] == "disconnect":
            since = min([at - 2 * SECOND, *(b for b, e in holding_up(evidence) if b <= at <= e + 3 * SECOND)])
            yield Loss(at, since, lost["stream"], max(lost["count"], 0))


def disconnected(evidence: Evidence) -> dict[Value, Loss]:
    """Values without an offset that were under way when their own client lost a connection; the first that it lost."""
    found: dict[Value, Loss] = {}
    for lost in sorted(losses(evidence)):
        for row in told(evidence):
            own = row["f"] == "send" and row["first_offset"] < 0 and row["stream"] == lost.stream
            if own and row["invoke_ns"] <= lost.at and lost.since <= row["complete_ns"] <= lost.at + 2 * SECOND:
                for sequence in range(row["first_sequence"], row["last_sequence"] + 1):
                    found.setdefault((row["stream"], sequence), lost)
    return found


def more_than_lost(evidence: Evidence, lost: Iterable[Value]) -> set[Value]:
    """Of values that connections excuse, those in more stretches than connections were lost about that time."""
    excused, refused = disconnected(evidence), set()
    stands = evidence.copies()
    for stream in {value[0] for value in excused}:
        bouts: list[list[Loss]] = []
        for loss in sorted((each for each in losses(evidence) if each.stream == stream), key=lambda each: each.since):
            if bouts and loss.since <= max(each.at for each in bouts[-1]) + 2 * SECOND:
                bouts[-1].append(loss)
            else:
                bouts.append([loss])
        for bout in bouts:
            values = {value for value in lost if value[0] == stream and excused.get(value) in bout}
            ends = {max((s for other, s in stands if other == stream and s < value[1]), default=-1) for value in values}
            if len(ends) > sum(loss.connections for loss in bout):
                refused |= values
    return refused


def copies(evidence: Evidence, found: Anomaly) -> int:
    """How often a value must have been sent again: the offsets at which it stands or was read, less one."""
    value = (found.stream or 0, found.sequence or 0)
    offsets = {offset for offset, _ in evidence.copies().get(value, [])} | set(evidence.reads().get(value, []))
    return max(1, len(offsets) - 1) if found.check in ("duplicate", "log-duplicate") else 1


def retries_of(evidence: Evidence, check: str) -> list[dict[str, Any]]:
    """The retries that count for a check: what stored nothing left no copy."""
    return doubtful_retries(evidence) if check in ("duplicate", "log-duplicate") else retries(evidence)


def within_attempts(evidence: Evidence, found: list[Anomaly]) -> list[Anomaly]:
    """Of one check: retries that overlap excuse no more copies than they had records together, or none.

    Lost connections take no more stretches with them than there were connections, or excuse none.
    """
    lost = [
        (each.stream or 0, each.sequence or 0)
        for each in found
        if each.check == "lost-write" and each.excuse == "disconnect"
    ]
    too_many = more_than_lost(evidence, lost)
    found = [
        each._replace(excuse=None) if each.check == "lost-write" and (each.stream, each.sequence) in too_many else each
        for each in found
    ]
    overdue = more_than_arrive(evidence, found)
    found = [
        each._replace(excuse=None) if each.excuse == "unanswered" and (each.stream, each.sequence) in overdue else each
        for each in found
    ]
    found = within_records(evidence, found, "retry", retries_of(evidence, found[0].check) if found else [])
    return within_records(evidence, found, "refusal", in_doubt(evidence))


def within_records(evidence: Evidence, found: list[Anomaly], excuse: str, again: list[dict[str, Any]]) -> list[Anomaly]:
    """Of one check: attempts that overlap excuse no more copies than they had records together, or none."""
    refused: set[Value] = set()
    for stream in {row["stream"] for row in again}:
        bouts: list[list[int]] = []  # first, last, records
        for row in sorted(again, key=lambda row: (row["first_sequence"], row["last_sequence"])):
            if row["stream"] == stream:
                if bouts and row["first_sequence"] <= bouts[-1][1]:
                    bouts[-1][1] = max(bouts[-1][1], row["last_sequence"])
                    bouts[-1][2] += max(row["count"], 0)
                else:
                    bouts.append([row["first_sequence"], row["last_sequence"], max(row["count"], 0)])
        for first, last, records in bouts:
            excused = [
                each for each in found
                if each.excuse == excuse and each.stream == stream
                and each.sequence is not None and first <= each.sequence <= last
            ]  # fmt: skip
            if sum(copies(evidence, each) for each in excused) > records:
                refused |= {(stream, each.sequence) for each in excused if each.sequence is not None}
    return [
        each._replace(excuse=None) if each.excuse == excuse and (each.stream, each.sequence) in refused else each
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


class GivenUp(NamedTuple):
    """A send that its client gave up, and the connections that it lost meanwhile: (time, range, how many)."""

    begin: int
    end: int
    stream: int
    values: range
    lost: frozenset[tuple[int, int, int, int]]


def given_up(evidence: Evidence) -> list[GivenUp]:
    """What may arrive late without idempotence: its client lost a connection then, and never learned its outcome."""
    settings = evidence.run.settings
    sends = [row for row in evidence.rows if row["f"] == "send" and row["stream"] >= 0 and makes_sense(row)]
    found = []
    for row in sends if not settings.idempotence else ():
        first, last, end = row["first_sequence"], row["last_sequence"], row["complete_ns"]
        if row["type"] != "info" or (settings.client == "native" and was_answered(row["error"] or "")):
            continue
        lost = {
            (each["complete_ns"], each["first_sequence"], each["last_sequence"], each["count"])
            for each in evidence.rows
            if each["f"] == "disconnect" and each["stream"] == row["stream"] and each["count"] > 0
            and row["invoke_ns"] <= each["complete_ns"] <= end + 2 * SECOND
            and (each["complete_ns"] > end or (each["first_sequence"] <= last and each["last_sequence"] >= first))
        }  # fmt: skip
        overtaken = [
            each for each in sends
            if each["type"] == "ok" and each["stream"] == row["stream"]
            and each["first_sequence"] > row["first_sequence"] and each["complete_ns"] < row["complete_ns"]
        ]  # fmt: skip
        if lost and not overtaken:
            span = row["invoke_ns"], end + 2 * SECOND
            found.append(GivenUp(*span, row["stream"], range(first, last + 1), frozenset(lost)))
    return found


def was_answered(error: str) -> bool:
    """The client's only attempt ended with what a broker said."""
    name = error.split(":")[0]
    code = name.replace("_", "").isalnum() and name.isupper()
    return code and name not in ("REQUEST_TIMED_OUT", "NETWORK_EXCEPTION") and " failed after 1 attempt(s)" in error


def may_be_late(evidence: Evidence, value: Value) -> bool:
    """Given up, and its only request can have gone to who led where it stands."""
    sends = [each for each in given_up(evidence) if each.stream == value[0] and value[1] in each.values]
    for send in sends:
        for _, batch in evidence.copies().get(value, []):
            if had_led(evidence, batch.leader_epoch, send.end - 2 * SECOND):
                return True
    return False


def had_led(evidence: Evidence, epoch: int, until: int) -> bool:
    """Whether the leader of this epoch had led by then, as the conductor saw; other clients may send twice."""
    settings, seen = evidence.run.settings, epochs_seen(evidence)
    leader = next((entry.get("leader") for entry in seen if entry["leader_epoch"] == epoch), None)
    if settings.client != "native" or settings.retries > 0 or leader is None:
        return True
    led = [
        entry["before_ns"] or 0 for entry in seen
        if entry["leader_epoch"] <= epoch and entry.get("leader") in (leader, None)
    ]  # fmt: skip
    return min(led) <= until


def came_back(evidence: Evidence, value: Value) -> bool:
    """Acknowledged, sent to a leader that was replaced, and taken when that leader led again."""
    settings = evidence.run.settings
    several = settings.max_in_flight > 1 or settings.client == "confluent"
    if settings.idempotence or settings.acks == "0" or not several:
        return False
    seen = epochs_seen(evidence)
    spans = [
        (entry["leader"], entry["leader_epoch"], entry["before_ns"] or 0, after["time_ns"] if after else 2**62)
        for entry, after in zip(seen, [*seen[1:], None], strict=True)
        if (entry.get("leader") or -1) >= 0
    ]
    stands = {batch.leader_epoch for _, batch in evidence.copies().get(value, [])}
    rows = [
        row for row in evidence.rows
        if row["f"] == "send" and row["type"] == "ok" and row["stream"] == value[0] and makes_sense(row)
        and row["first_sequence"] <= value[1] <= row["last_sequence"]
    ]  # fmt: skip
    for index, (leader, epoch, _, _) in enumerate(spans):
        gaps = [number for number in range(index) if spans[number][0] != leader]
        former = [until for who, _, _, until in spans[: max(gaps)] if who == leader] if gaps else []
        if epoch in stands and former:
            back = spans[max(gaps) + 1][2]
            if any(row["invoke_ns"] <= max(former) and row["complete_ns"] >= back for row in rows):
                return True
    return False


def more_than_arrive(evidence: Evidence, found: list[Anomaly]) -> set[Value]:
    """Of what is late because it was given up, what takes more connections than were lost about that time."""
    late = [each for each in found if each.excuse == "unanswered"]
    refused = set()
    for stream in {each.stream or 0 for each in late}:
        bouts: list[list[GivenUp]] = []
        for send in sorted((e for e in given_up(evidence) if e.stream == stream), key=lambda each: each[:2]):
            if bouts and send.begin <= max(each.end for each in bouts[-1]):
                bouts[-1].append(send)
            else:
                bouts.append([send])
        for bout in bouts:
            sequences = {sequence for send in bout for sequence in send.values}
            own = sorted(
                (each.sequence or 0, each.offset or 0)
                for each in late if each.stream == stream and each.sequence in sequences
            )  # fmt: skip
            ends: list[int] = []  # of the parts that are in order
            for _, offset in own:
                below = max((end for end in ends if end < offset), default=None)
                ends = [*(end for end in ends if end != below), offset]
            if len(ends) > sum(count for *_, count in frozenset().union(*(send.lost for send in bout))):
                refused |= {(stream, sequence) for sequence, _ in own}
    return refused


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


def of_repeated(evidence: Evidence, value: Value, check: str, cause: str | None) -> Excuse | None:
    """Sent again, or given up and late; or of ``vanished`` copies, cut off."""
    if cause == "vanished":
        by_election = [(offset, election) for cut, offset, election in cut_off(evidence) if cut == value]
        strays = set(evidence.reads()[value]) - {offset for offset, _ in evidence.copies().get(value, [])}
        if strays and strays <= {offset for offset, _ in by_election}:
            return _earliest(election for _, election in by_election)
    if cause == "client-resend-after-error" and value in timed_out(evidence):
        return Excuse("timeout")
    if cause == "client-resend-after-error" and sent_under_a_raised_epoch(evidence, value):
        return Excuse("refusal")
    if check in ("nonmonotonic-send", "log-reorder") and may_be_late(evidence, value):
        return Excuse("unanswered")
    if value in retried(evidence, retries_of(evidence, check)):
        return Excuse("retry")
    if value in timed_out(evidence):
        return Excuse("timeout")
    late = check in ("nonmonotonic-send", "log-reorder") and came_back(evidence, value)
    return Excuse("returned") if late else None


def of_headers(evidence: Evidence, check: str) -> str | None:
    """A broker that has forgotten a producer, and any retry into the partition."""
    settings = evidence.run.settings
    forgetful = settings.unknown_producer != "gapless" and settings.retries > 0
    again = any(row["f"] == "retry" for row in evidence.rows)
    return "retry" if forgetful and again and check in ("sequence-gap", "sequence-duplicate") else None
