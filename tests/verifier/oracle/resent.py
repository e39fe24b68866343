"""What librdkafka sends again under a raised epoch, once more: value by value."""

from __future__ import annotations

from typing import Any

from tests.verifier.oracle.elections import OUT_OF_ORDER, SECOND, retries
from tests.verifier.oracle.model import Evidence, Value, makes_sense

#: What librdkafka says of an attempt that may have been carried out.
IN_DOUBT = (
    "Local: Broker transport failure", "Local: Timed out", "Broker: Broker disconnected before response received",
    "Broker: Request timed out", "Broker: Not leader for partition",
    "Broker: Message(s) written to insufficient number of in-sync replicas",
)  # fmt: skip


def in_doubt(evidence: Evidence) -> list[dict[str, Any]]:
    """The attempts of librdkafka that may have been carried out."""
    return [row for row in retries(evidence) if (row["error"] or "").removeprefix("retry: ") in IN_DOUBT]


def sent_under_a_raised_epoch(evidence: Evidence, value: Value) -> bool:
    """Stored by an attempt that seemed to fail, and again after a later batch was refused, as it had to be."""
    copies = sorted(evidence.copies().get(value, []), key=lambda copy: copy[0])
    if len(copies) != 2:
        return False
    first, second = (batch.producer for _, batch in copies)
    if first[0] != second[0] or first[1] >= second[1]:
        return False
    own = [
        row for row in evidence.rows
        if row["stream"] == value[0] and makes_sense(row) and row["first_sequence"] <= value[1] <= row["last_sequence"]
    ]  # fmt: skip
    doubts = [row["complete_ns"] for row in own if row in in_doubt(evidence)]
    for row in retries(evidence):
        before = evidence.copies().get((value[0], row["first_sequence"] - 1), [])
        above = row["stream"] == value[0] and row["first_sequence"] > value[1]
        rightly = not any(batch.producer == first for _, batch in before)
        if row["error"] == f"retry: {OUT_OF_ORDER}" and above and rightly:
            at = row["complete_ns"]
            outstanding = any(
                send["f"] == "send" and send["op"] < 0
                and send["invoke_ns"] <= at + SECOND and send["complete_ns"] >= at - SECOND
                for send in own
            )  # fmt: skip
            if outstanding and min(doubts, default=at + 1) <= at:
                return True
    return False
