"""Every anomaly of operation histories by name: its definition, a line for people, and a minimal example. Plain data.

The definitions are those of Jepsen's kafka workload, which this project reads histories of; where one differs, it says
so. "Index" is a position in a key's log without its gaps (``verifier.operations.versions``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OperationAnomaly:
    """``brings``: what it may bring about in the same keys; that is then grouped under it."""

    name: str
    summary: str
    definition: str
    example: str
    brings: tuple[str, ...] = ()
    causes: Mapping[str, str] = field(default_factory=dict)


_CYCLE = "operations that each come before the next, in a circle"

#: In the order in which a report leads with them.
ANOMALIES: tuple[OperationAnomaly, ...] = (
    OperationAnomaly(
        "phantom",
        "a value was read that no operation sent",
        "Any poll returned a value that no operation of the history sent to that key. (Jepsen's checker raises here.)",
        "poll {1 [[0 7]]}, and nothing sends 7 to 1",
    ),
    OperationAnomaly(
        "G1a",
        "an aborted value was read",
        "An ok operation polled a value whose only writer completed with fail. Counted by read.",
        "send 1 7 -> fail; poll {1 [[0 7]]} -> ok",
    ),
    OperationAnomaly(
        "lost-write",
        "a value that was written is missing before one that was read",
        "The value's operation is ok, or info and something of it was read; an ok operation read a value whose first "
        "index is at or behind the last index of this one; no ok operation read this one.",
        "send 1 7 -> [0 7], send 1 8 -> [1 8]; ok operations poll 8 and never 7",
        brings=("unseen", "poll-skip", "int-poll-skip"),
    ),
    OperationAnomaly(
        "inconsistent-offsets",
        "one offset holds different values",
        "Sends that must have happened and all polls put two or more values at one offset of a key.",
        "send 1 7 -> [0 7]; poll {1 [[0 8]]}",
    ),
    OperationAnomaly(
        "duplicate",
        "one value stands at two offsets",
        "Sends that must have happened and all polls put one value at two or more offsets of its key.",
        "poll {1 [[0 7] [3 7]]}",
        brings=("nonmonotonic-poll", "int-nonmonotonic-poll", "nonmonotonic-send", "int-nonmonotonic-send"),
    ),
    OperationAnomaly(
        "precommitted-read",
        "an operation read what it had sent itself",
        "One operation sends a value and polls it. Consumers must not be handed what is not committed yet. Counted by "
        "operation and key.",
        "txn [[send 1 7] [poll {1 [[0 7]]}]]",
    ),
    OperationAnomaly(
        "nonmonotonic-send",
        "a process's sends stand in the log in another order",
        "Of one process, ok and info operations that send to a key: the first value of one stands at or before the "
        "last value of the one before it. (Jepsen's checker forgets sends at an assign or subscribe; this one does "
        "not.)",
        "process 0: send 1 7 -> [5 7], then send 1 8 -> [4 8]",
    ),
    OperationAnomaly(
        "int-nonmonotonic-send",
        "an operation's sends stand in the log in another order",
        "Within one operation, of two successive sends to a key the second stands at or before the first.",
        "txn [[send 1 [5 7]] [send 1 [4 8]]]",
    ),
    OperationAnomaly(
        "int-send-skip",
        "foreign values stand between an operation's sends",
        "Within one operation, of two successive sends to a key the second stands more than one index further.",
        "txn [[send 1 [0 7]] [send 1 [2 8]]], and 9 stands at 1",
    ),
    OperationAnomaly(
        "poll-skip",
        "a process's polls passed over values",
        "Of one process, operations that poll a key: the first value of one stands more than one index behind the last "
        "value of the last ok one. Forgotten for keys that an assign or subscribe (ok or info) does not list, and at "
        "an assign that seeks to the beginning (Jepsen's checker goes on there).",
        "process 0: poll {1 [[0 7]]}, then poll {1 [[2 9]]}, and 8 stands at 1",
    ),
    OperationAnomaly(
        "nonmonotonic-poll",
        "a process's polls went back",
        "As poll-skip, with the first value of one at or before the last value of the last ok one.",
        "process 0: poll {1 [[0 7] [1 8]]}, then poll {1 [[0 7]]}",
    ),
    OperationAnomaly(
        "int-poll-skip",
        "one operation's polls passed over values",
        "Within one operation, of two successive values of a key the second stands more than one index further. Keys "
        "of its rebalance log are exempt.",
        "poll {1 [[0 7] [2 9]]}, and 8 stands at 1",
    ),
    OperationAnomaly(
        "int-nonmonotonic-poll",
        "one operation's polls went back",
        "As int-poll-skip, with the second value at or before the first.",
        "poll {1 [[1 8] [0 7]]}",
    ),
    OperationAnomaly(
        "G1c",
        f"{_CYCLE} of reads from each other",
        "A strongly connected component of ww and wr edges that has a wr edge. wr: one operation read what another "
        "sent. ww (only with --ww-deps): one sent the value right before the other's in the log. Counted by component.",
        "T1: send 1 7, poll {2 [[0 8]]}; T2: send 2 8, poll {1 [[0 7]]}",
    ),
    OperationAnomaly(
        "G1c-process",
        f"{_CYCLE} of reads and the order of a process",
        "A component of ww, wr and process edges, in which there is none of G0, G1c and G0-process. process: one "
        "process did one operation, then the other.",
        "process 0: poll {1 [[0 7]]}, then send 1 7",
    ),
    OperationAnomaly(
        "G1c-realtime",
        f"{_CYCLE} of reads and real time",
        "A component of ww, wr and realtime edges, in which there is none of a lesser kind. realtime: one operation "
        "ended before the other began.",
        "poll {1 [[0 7]]} by process 0 ends; then process 1 begins to send 7",
    ),
    OperationAnomaly(
        "G0",
        f"{_CYCLE} of writes",
        "A component of ww edges. Only with --ww-deps.",
        "T1: send 1 [0 7], send 2 [1 8]; T2: send 1 [1 9], send 2 [0 6]",
    ),
    OperationAnomaly(
        "G0-process",
        f"{_CYCLE} of writes and the order of a process",
        "A component of ww and process edges without a G0. Only with --ww-deps.",
        "process 0: send 1 [1 7], then send 1 [0 8]",
    ),
    OperationAnomaly(
        "G0-realtime",
        f"{_CYCLE} of writes and real time",
        "A component of ww and realtime edges without a G0 or G0-process. Only with --ww-deps.",
        "process 0: send 1 [1 7] ends; then process 1 begins send 1 [0 8]",
    ),
    OperationAnomaly(
        "unseen",
        "an acknowledged value was never read",
        "The value's operation is ok, and no ok operation polled it. Whether it is lost or only late, such a history "
        "cannot tell.",
        "send 1 7 -> [0 7], and nothing polls 7",
    ),
)

BY_NAME: Mapping[str, OperationAnomaly] = {anomaly.name: anomaly for anomaly in ANOMALIES}
NAMES: tuple[str, ...] = tuple(BY_NAME)


def group(keys: Mapping[str, frozenset[int]]) -> dict[str, str]:
    """Which anomaly explains which: consequence -> cause, where every key with the consequence has the cause."""
    explained: dict[str, str] = {}
    for anomaly in ANOMALIES:
        if not keys.get(anomaly.name) or anomaly.name in explained:
            continue
        for consequence in anomaly.brings:
            found = keys.get(consequence)
            if found and consequence not in explained and found <= keys[anomaly.name]:
                explained[consequence] = anomaly.name
    return explained
