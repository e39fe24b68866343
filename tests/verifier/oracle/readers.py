"""The checks of readers once more, slow and obvious."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tests.verifier.oracle.model import Anomaly, Evidence


def held(evidence: Evidence) -> set[int]:
    """The offsets at which something stands, in the log or by what somebody was told."""
    found = {slot.offset for slot, _ in evidence.log()}
    for f in (("send", "sentinel"), ("poll",)):
        found |= {offset for _, offset, _ in evidence.claims(f, "ok") if offset is not None}
    return found


def deliveries(evidence: Evidence) -> Iterator[tuple[dict[str, Any], int, bool]]:
    """Each delivered row behind a known position, the offset that was to come, and whether it is of the same poll."""
    sessions = defaultdict(list)
    for row in evidence.rows:
        moves = row["f"] in ("assign", "seek") and row["first_offset"] >= 0
        is_poll = row["f"] == "poll" and row["type"] == "ok" and 0 <= row["first_offset"] <= row["last_offset"]
        if moves or is_poll:
            sessions[row["process"], row["session"]].append(row)
    for rows in sessions.values():
        expected, last_op = None, None
        for row in sorted(rows, key=lambda row: row["row"]):
            if row["f"] != "poll":
                expected, last_op = row["first_offset"], None
                continue
            if expected is not None:
                yield row, expected, last_op is not None and last_op == row["op"]
            expected, last_op = row["last_offset"] + 1, row["op"] if row["op"] >= 0 else None


def assigned_further(evidence: Evidence) -> Iterator[tuple[dict[str, Any], int]]:
    """Each assignment further on than its process had come, and the offset that was to come."""
    reached: dict[str, int] = {}
    for row in sorted(evidence.rows, key=lambda row: row["row"]):
        begin, whose = row["first_offset"], row["process"]
        if row["f"] in ("assign", "seek") and begin >= 0:
            if row["f"] == "assign" and begin > reached.get(whose, begin):
                yield row, reached[whose]
            reached[whose] = begin
        elif row["f"] == "poll" and row["type"] == "ok" and 0 <= begin <= row["last_offset"]:
            reached[whose] = row["last_offset"] + 1


def _anomaly(check: str, inside: bool, evidence: Evidence, row: dict[str, Any], size: int) -> Anomaly:
    value = (row["stream"], row["first_sequence"]) if row["stream"] >= 0 else (None, None)
    name = f"int-{check}" if inside else check
    return Anomaly(name, None, evidence.final.partition, *value, row["first_offset"], size)


def poll_skip(evidence: Evidence) -> Iterator[Anomaly]:
    there = held(evidence)
    for row, expected, inside in deliveries(evidence):
        passed = there & set(range(expected, row["first_offset"]))
        if passed:
            yield _anomaly("poll-skip", inside, evidence, row, len(passed))
    for row, expected in assigned_further(evidence):
        if passed := there & set(range(expected, row["first_offset"])):
            yield _anomaly("poll-skip", False, evidence, row, len(passed))


def nonmonotonic_poll(evidence: Evidence) -> Iterator[Anomaly]:
    for row, expected, inside in deliveries(evidence):
        if row["first_offset"] < expected:
            yield _anomaly("nonmonotonic-poll", inside, evidence, row, expected - row["first_offset"])


CHECKS = (poll_skip, nonmonotonic_poll)
