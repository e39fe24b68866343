"""The anomalies of operation histories: name, definition, summary and minimal example of each. Plain data.

Does not own the checks that find them (``verifier.operations.checks``). The definitions are those of Jepsen's kafka
workload (``jepsen.tests.kafka``; docs/reference/anomalies-and-bugs.md "Jepsen's names"). A definition that differs says
so. An "index" is a position in a key's log, counted without gaps (``verifier.operations.versions``).
``docs/anomalies.md`` is generated from this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from verifier.facts import explained


@dataclass(frozen=True, slots=True)
class OperationAnomaly:
    """One anomaly. ``brings`` has the anomalies that it may cause in the same keys; reports group them under it."""

    name: str
    summary: str
    definition: str
    example: str
    brings: tuple[str, ...] = ()
    causes: Mapping[str, str] = field(default_factory=dict)


_CYCLE = "a cycle of operations, each before the next"

#: In the order of reports.
ANOMALIES: tuple[OperationAnomaly, ...] = (
    OperationAnomaly(
        "phantom",
        "a value was read that no operation sent",
        "A poll returned a value that no operation of the history sent to that key. Jepsen's checker raises an "
        "exception here.",
        "poll {1 [[0 7]]}, and no operation sends 7 to key 1",
    ),
    OperationAnomaly(
        "G1a",
        "an aborted value was read",
        "An ok operation polled a value whose only writer completed with fail. Each read counts.",
        "send 1 7 -> fail; poll {1 [[0 7]]} -> ok",
    ),
    OperationAnomaly(
        "lost-write",
        "a value that was written is missing before one that was read",
        "The value's operation is ok, or it is info and some of its values were read. An ok operation read another "
        "value whose first index is at or after the last index of this one. No ok operation read this one.",
        "send 1 7 -> [0 7], send 1 8 -> [1 8]; ok operations poll 8 and never 7",
        brings=("unseen", "poll-skip", "int-poll-skip"),
    ),
    OperationAnomaly(
        "inconsistent-offsets",
        "one offset holds different values",
        "Sends that must have happened, and all polls, place two or more values at one offset of a key.",
        "send 1 7 -> [0 7]; poll {1 [[0 8]]}",
    ),
    OperationAnomaly(
        "duplicate",
        "one value is at two offsets",
        "Sends that must have happened, and all polls, place one value at two or more offsets of its key.",
        "poll {1 [[0 7] [3 7]]}",
        brings=("nonmonotonic-poll", "int-nonmonotonic-poll", "nonmonotonic-send", "int-nonmonotonic-send"),
    ),
    OperationAnomaly(
        "precommitted-read",
        "an operation read its own send",
        "One operation sends a value and polls it, although consumers must not see what is not committed yet. Each "
        "pair of operation and key counts.",
        "txn [[send 1 7] [poll {1 [[0 7]]}]]",
    ),
    OperationAnomaly(
        "nonmonotonic-send",
        "the log holds a process's sends in another order",
        "Among the ok and info operations of one process that send to a key, the first value of one is at or before "
        "the last value of the previous one. Jepsen's checker forgets sends at an assign or subscribe; this one does "
        "not.",
        "process 0: send 1 7 -> [5 7], then send 1 8 -> [4 8]",
    ),
    OperationAnomaly(
        "int-nonmonotonic-send",
        "the log holds an operation's sends in another order",
        "Within one operation, the second of two successive sends to a key is at or before the first.",
        "txn [[send 1 [5 7]] [send 1 [4 8]]]",
    ),
    OperationAnomaly(
        "int-send-skip",
        "the log holds other operations' values between an operation's sends",
        "Within one operation, the second of two successive sends to a key is more than one index further.",
        "txn [[send 1 [0 7]] [send 1 [2 8]]], and offset 1 holds 9",
    ),
    OperationAnomaly(
        "poll-skip",
        "a process's polls skipped values",
        "Among the operations of one process that poll a key, the first value of one is more than one index after the "
        "last value of the previous ok one. An assign or subscribe (ok or info) that does not list the key, or an "
        "assign that seeks to the beginning, restarts the comparison. (Jepsen's checker continues after such a seek.)",
        "process 0: poll {1 [[0 7]]}, then poll {1 [[2 9]]}, and offset 1 holds 8",
    ),
    OperationAnomaly(
        "nonmonotonic-poll",
        "a process's polls went back",
        "As poll-skip, but the first value of one is at or before the last value of the previous ok one.",
        "process 0: poll {1 [[0 7] [1 8]]}, then poll {1 [[0 7]]}",
    ),
    OperationAnomaly(
        "int-poll-skip",
        "one operation's polls skipped values",
        "Within one operation, the second of two successive values of a key is more than one index further. Keys in "
        "the operation's rebalance log are exempt.",
        "poll {1 [[0 7] [2 9]]}, and offset 1 holds 8",
    ),
    OperationAnomaly(
        "int-nonmonotonic-poll",
        "one operation's polls went back",
        "As int-poll-skip, but the second value is at or before the first.",
        "poll {1 [[1 8] [0 7]]}",
    ),
    OperationAnomaly(
        "G1c",
        f"{_CYCLE} by reads",
        "A strongly connected component of ww and wr edges that has at least one wr edge. wr: one operation read what "
        "another sent. ww (only with --ww-deps): one sent the value right before the other's in the log. Each "
        "component counts.",
        "T1: send 1 7, poll {2 [[0 8]]}; T2: send 2 8, poll {1 [[0 7]]}",
    ),
    OperationAnomaly(
        "G1c-process",
        f"{_CYCLE} by reads and process order",
        "A component of ww, wr and process edges that contains no G0, G1c or G0-process. process: one process did one "
        "operation, then the other.",
        "process 0: poll {1 [[0 7]]}, then send 1 7",
    ),
    OperationAnomaly(
        "G1c-realtime",
        f"{_CYCLE} by reads and real time",
        "A component of ww, wr and realtime edges that contains none of the other cycles. realtime: one operation "
        "ended before the other began.",
        "poll {1 [[0 7]]} by process 0 ends; then process 1 begins to send 7",
    ),
    OperationAnomaly(
        "G0",
        f"{_CYCLE} by writes",
        "A component of ww edges. Only with --ww-deps.",
        "T1: send 1 [0 7], send 2 [1 8]; T2: send 1 [1 9], send 2 [0 6]",
    ),
    OperationAnomaly(
        "G0-process",
        f"{_CYCLE} by writes and process order",
        "A component of ww and process edges that contains no G0. Only with --ww-deps.",
        "process 0: send 1 [1 7], then send 1 [0 8]",
    ),
    OperationAnomaly(
        "G0-realtime",
        f"{_CYCLE} by writes and real time",
        "A component of ww and realtime edges that contains no G0 or G0-process. Only with --ww-deps.",
        "process 0: send 1 [1 7] ends; then process 1 begins send 1 [0 8]",
    ),
    OperationAnomaly(
        "unseen",
        "an acknowledged value was never read",
        "The value's operation is ok, and no ok operation polled it. Such a history cannot show whether the value is "
        "lost or only late.",
        "send 1 7 -> [0 7], and no operation polls 7",
    ),
)

BY_NAME: Mapping[str, OperationAnomaly] = {anomaly.name: anomaly for anomaly in ANOMALIES}
NAMES: tuple[str, ...] = tuple(BY_NAME)


def group(keys: Mapping[str, frozenset[int]]) -> dict[str, str]:
    """Consequence -> the anomaly that explains it. Every key with the consequence also has the cause."""
    return explained(((anomaly.name, anomaly.brings) for anomaly in ANOMALIES), keys)
