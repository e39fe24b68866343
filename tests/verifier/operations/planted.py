"""For every anomaly of operation histories one that has it, and its nearest legal neighbor, which does not.

The notation is that of JSON lines; ``histories.op`` makes an invocation and its completion of an operation. Histories
hold one send and one poll that are beyond doubt (key 0), so that nothing is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.verifier.operations.histories import Line, numbered, op
from verifier.operations.options import JudgeOptions


@dataclass(frozen=True)
class Pair:
    """``wrong`` has the anomaly ``count`` times (and what ``besides`` names), ``legal`` has nothing."""

    wrong: list[Line]
    legal: list[Line]
    count: int = 1
    besides: frozenset[str] = frozenset()
    options: JudgeOptions = field(default_factory=JudgeOptions)


def send(key: Any, offset: int | None, value: Any) -> list[Any]:
    return ["send", key, [offset, value]]


def poll(**keys: list[tuple[int | None, Any]]) -> list[Any]:
    """``poll(k1=[(0, 7)])``: what was read, by key ``k1`` as 1."""
    return ["poll", {int(key[1:]): [list(pair) for pair in pairs] for key, pairs in keys.items()}]


def history(*operations: list[Line]) -> list[Line]:
    """These operations one after the other, behind one send and one poll of key 0."""
    base = [op(90, "send", [send(0, 0, 1)]), op(91, "poll", [poll(k0=[(0, 1)])])]
    return numbered([line for each in [*base, *operations] for line in each])


def together(*operations: list[Line]) -> list[Line]:
    """Operations that are all invoked before any of them completes."""
    return [each[0] for each in operations] + [line for each in operations for line in each[1:]]


def _sent(*values: int, process: int = 0) -> list[Line]:
    """Each value by an operation of its own, at offsets from 0."""
    return [line for at, value in enumerate(values) for line in op(process, "send", [send(1, at, value)])]


_WW = JudgeOptions(ww_deps=True)
_READ_ALL = op(5, "poll", [poll(k1=[(0, 7), (1, 8), (2, 9)])])
_SUBSCRIBED = JudgeOptions(sub_via=frozenset({"assign"}))

PAIRS: dict[str, Pair] = {
    "phantom": Pair(
        history(op(1, "poll", [poll(k1=[(0, 7)])])),
        history(op(0, "send", [["send", 1, 7]], "info"), op(1, "poll", [poll(k1=[(0, 7)])])),
    ),
    "G1a": Pair(
        history(op(0, "send", [["send", 1, 7]], "fail"), op(1, "poll", [poll(k1=[(0, 7)])])),
        history(op(0, "send", [["send", 1, 7]], "fail"), op(1, "poll", [poll(k1=[(0, 7)])], "info")),
    ),
    "lost-write": Pair(
        history(_sent(7, 8), op(1, "poll", [poll(k1=[(1, 8)])])),
        history(
            op(0, "send", [["send", 1, 7]], "info"), op(2, "send", [send(1, 1, 8)]), op(1, "poll", [poll(k1=[(1, 8)])])
        ),
        besides=frozenset({"unseen"}),
    ),
    "inconsistent-offsets": Pair(
        history(
            op(0, "send", [send(1, 0, 7)]), op(2, "send", [send(1, None, 8)]), op(1, "poll", [poll(k1=[(0, 8)])]),
            op(3, "poll", [poll(k1=[(None, 7)])]),
        ),
        history(
            op(0, "send", [send(1, 0, 7)], "info"), op(2, "send", [send(1, None, 8)]),
            op(1, "poll", [poll(k1=[(0, 8)])]),
        ),
    ),
    "duplicate": Pair(
        history(op(0, "send", [send(1, 0, 7)]), op(1, "poll", [poll(k1=[(0, 7)])]), op(2, "poll", [poll(k1=[(3, 7)])])),
        history(op(0, "send", [send(1, 0, 7)]), op(1, "poll", [poll(k1=[(0, 7)])]), op(2, "poll", [poll(k1=[(0, 7)])])),
    ),
    "precommitted-read": Pair(
        history(op(0, "txn", [send(1, 0, 7), poll(k1=[(0, 7)])])),
        history(op(0, "send", [send(1, 0, 7)]), op(0, "poll", [poll(k1=[(0, 7)])])),
    ),
    "nonmonotonic-send": Pair(
        history(
            op(0, "send", [send(1, 1, 8)]), op(0, "send", [send(1, 0, 7)]), op(1, "poll", [poll(k1=[(0, 7), (1, 8)])])
        ),
        history(
            op(0, "send", [send(1, 1, 8)]), op(2, "send", [send(1, 0, 7)]), op(1, "poll", [poll(k1=[(0, 7), (1, 8)])])
        ),
    ),
    "int-nonmonotonic-send": Pair(
        history(op(0, "send", [send(1, 1, 8), send(1, 0, 7)]), op(1, "poll", [poll(k1=[(0, 7), (1, 8)])])),
        history(op(0, "send", [send(1, 0, 8), send(2, 0, 7)]), op(1, "poll", [poll(k1=[(0, 8)], k2=[(0, 7)])])),
    ),
    "int-send-skip": Pair(
        history(op(0, "send", [send(1, 0, 7), send(1, 2, 9)]), op(2, "send", [send(1, 1, 8)]), _READ_ALL),
        # an offset alone is no value: markers of transactions take them
        history(
            op(0, "send", [send(1, 0, 7), send(1, 2, 9)]), op(5, "poll", [poll(k1=[(0, 7), (2, 9)])])
        ),
    ),
    "poll-skip": Pair(
        history(
            _sent(7, 8, 9), _READ_ALL, op(1, "assign", [1]), op(1, "poll", [poll(k1=[(0, 7)])]),
            op(1, "poll", [poll(k1=[(2, 9)])]),
        ),
        history(
            _sent(7, 8, 9), _READ_ALL, op(1, "poll", [poll(k1=[(0, 7)])]), op(1, "assign", [2]), op(1, "assign", [1]),
            op(1, "poll", [poll(k1=[(2, 9)])]),
        ),
    ),
    "nonmonotonic-poll": Pair(
        history(
            _sent(7, 8), op(1, "poll", [poll(k1=[(0, 7), (1, 8)])]), op(1, "assign", [1]),
            op(1, "poll", [poll(k1=[(1, 8)])]),
        ),
        history(
            _sent(7, 8), op(1, "poll", [poll(k1=[(0, 7), (1, 8)])]),
            op(1, "assign", [1], **{"seek-to-beginning?": True}), op(1, "poll", [poll(k1=[(0, 7)])]),
        ),
    ),
    "int-poll-skip": Pair(
        history(_sent(7, 8, 9), _READ_ALL, op(1, "poll", [poll(k1=[(0, 7), (2, 9)])])),
        history(
            _sent(7, 8, 9), _READ_ALL,
            op(1, "poll", [poll(k1=[(0, 7), (2, 9)])], **{"rebalance-log": [{"keys": [1]}]}),
        ),
    ),
    "int-nonmonotonic-poll": Pair(
        history(_sent(7, 8), op(1, "poll", [poll(k1=[(1, 8), (0, 7)])])),
        history(_sent(7, 8), op(1, "poll", [poll(k1=[(0, 7), (1, 8)])])),
    ),
    "G1c": Pair(
        history(
            together(
                op(0, "txn", [send(1, 0, 7), poll(k2=[(0, 8)])]), op(1, "txn", [send(2, 0, 8), poll(k1=[(0, 7)])])
            )
        ),
        history(
            together(op(0, "txn", [send(1, 0, 7), poll(k2=[(0, 8)])]), op(1, "txn", [send(2, 0, 8), poll()])),
            op(2, "poll", [poll(k1=[(0, 7)])]),
        ),
    ),
    "G1c-process": Pair(
        history(op(0, "poll", [poll(k1=[(0, 7)])]), op(0, "send", [send(1, 0, 7)])),
        history(op(0, "send", [send(1, 0, 7)]), op(0, "poll", [poll(k1=[(0, 7)])])),
    ),
    "G1c-realtime": Pair(
        history(op(0, "poll", [poll(k1=[(0, 7)])]), op(1, "send", [send(1, 0, 7)])),
        history(together(op(0, "poll", [poll(k1=[(0, 7)])]), op(1, "send", [send(1, 0, 7)]))),
    ),
    "G0": Pair(
        history(
            together(op(0, "send", [send(1, 0, 7), send(2, 1, 17)]), op(1, "send", [send(1, 1, 8), send(2, 0, 18)])),
            op(2, "poll", [poll(k1=[(0, 7), (1, 8)], k2=[(0, 18), (1, 17)])]),
        ),
        history(
            together(op(0, "send", [send(1, 0, 7), send(2, 0, 17)]), op(1, "send", [send(1, 1, 8), send(2, 1, 18)])),
            op(2, "poll", [poll(k1=[(0, 7), (1, 8)], k2=[(0, 17), (1, 18)])]),
        ),
        options=_WW,
    ),
    "G0-process": Pair(
        history(
            op(0, "send", [send(1, 1, 8), send(2, 0, 1)]), op(0, "send", [send(1, 0, 7)]),
            op(2, "poll", [poll(k1=[(0, 7), (1, 8)], k2=[(0, 1)])]),
        ),
        history(
            op(0, "send", [send(1, 0, 8), send(2, 0, 1)]), op(0, "send", [send(1, 1, 7)]),
            op(2, "poll", [poll(k1=[(0, 8), (1, 7)], k2=[(0, 1)])]),
        ),
        besides=frozenset({"nonmonotonic-send"}),
        options=_WW,
    ),
    "G0-realtime": Pair(
        history(
            op(0, "send", [send(1, 1, 8)]), op(1, "send", [send(1, 0, 7)]), op(2, "poll", [poll(k1=[(0, 7), (1, 8)])])
        ),
        history(
            together(op(0, "send", [send(1, 1, 8)]), op(1, "send", [send(1, 0, 7)])),
            op(2, "poll", [poll(k1=[(0, 7), (1, 8)])]),
        ),
        options=_WW,
    ),
    "unseen": Pair(
        history(op(0, "send", [send(1, 0, 7)])),
        history(op(0, "send", [send(1, 0, 7)], "info")),
    ),
}  # fmt: skip
