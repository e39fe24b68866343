"""The checks of readers once more, slow and obvious."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from tests.verifier.oracle.elections import moved
from tests.verifier.oracle.model import Anomaly, Evidence


def held(evidence: Evidence) -> set[int]:
    """The offsets at which something stands, in the log or by what somebody was told."""
    found = {slot.offset for slot, _ in evidence.log()}
    for f in (("send", "sentinel"), ("poll",)):
        found |= {offset for _, offset, _ in evidence.claims(f, "ok") if offset is not None}
    return found


class Jump(NamedTuple):
    """A row, the offset that was to come, the row by which its reader had come there, and whether by the same poll."""

    row: dict[str, Any]
    expected: int
    before: dict[str, Any]
    inside: bool = False


def deliveries(evidence: Evidence) -> Iterator[Jump]:
    """Each delivered row behind a known position."""
    sessions = defaultdict(list)
    for row in evidence.rows:
        moves = row["f"] in ("assign", "seek") and row["first_offset"] >= 0
        is_poll = row["f"] == "poll" and row["type"] == "ok" and 0 <= row["first_offset"] <= row["last_offset"]
        if moves or is_poll:
            sessions[row["process"], row["session"]].append(row)
    for rows in sessions.values():
        expected, last_op, before = None, None, rows[0]
        for row in sorted(rows, key=lambda row: row["row"]):
            if row["f"] != "poll":
                expected, last_op, before = row["first_offset"], None, row
                continue
            if expected is not None:
                yield Jump(row, expected, before, last_op is not None and last_op == row["op"])
            expected, last_op = row["last_offset"] + 1, row["op"] if row["op"] >= 0 else None
            before = row


def assigned_further(evidence: Evidence) -> Iterator[Jump]:
    """Each assignment further on than its process had come."""
    reached: dict[str, tuple[int, dict[str, Any]]] = {}
    for row in sorted(evidence.rows, key=lambda row: row["row"]):
        begin, whose = row["first_offset"], row["process"]
        if row["f"] in ("assign", "seek") and begin >= 0:
            if row["f"] == "assign" and begin > reached.get(whose, (begin, row))[0]:
                yield Jump(row, *reached[whose])
            reached[whose] = begin, row
        elif row["f"] == "poll" and row["type"] == "ok" and 0 <= begin <= row["last_offset"]:
            reached[whose] = row["last_offset"] + 1, row


def _was_cut_off(evidence: Evidence, jump: Jump) -> bool:
    """Whether the value that the reader was handed last no longer stands where it was."""
    had = jump.before
    if had["f"] != "poll" or had["stream"] < 0:
        return False
    value, at = (had["stream"], had["last_sequence"]), jump.expected - 1
    return not any(slot.offset == at and slot.value == value for slot, _ in evidence.log())


def _anomaly(check: str, evidence: Evidence, jump: Jump, size: int) -> Anomaly:
    row = jump.row
    excuse = moved(evidence, jump.before["complete_ns"], row["complete_ns"]) if _was_cut_off(evidence, jump) else None
    value = (row["stream"], row["first_sequence"]) if row["stream"] >= 0 else (None, None)
    name = f"int-{check}" if jump.inside else check
    return Anomaly(name, None, evidence.final.partition, *value, row["first_offset"], size, excuse)


def poll_skip(evidence: Evidence) -> Iterator[Anomaly]:
    there = held(evidence)
    for jump in chain(deliveries(evidence), assigned_further(evidence)):
        passed = there & set(range(jump.expected, jump.row["first_offset"]))
        if evidence.is_isolated(jump.row):
            passed -= evidence.not_owed
        if passed:
            yield _anomaly("poll-skip", evidence, jump, len(passed))


def nonmonotonic_poll(evidence: Evidence) -> Iterator[Anomaly]:
    for jump in deliveries(evidence):
        if jump.row["first_offset"] < jump.expected:
            yield _anomaly("nonmonotonic-poll", evidence, jump, jump.expected - jump.row["first_offset"])


CHECKS = (poll_skip, nonmonotonic_poll)
