"""The options for judging operations, and the anomalies that each option allows. Pure.

Owns the options (those of Jepsen's checker) and the reasons that reports show. Anomalies that are not listed here are
forbidden. Does not own the checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verifier.operations.model import SUBSCRIBE, OperationHistory

METHODS = ("assign", "subscribe")


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """Options of one judgment.

    ``sub_via``: how consumers got their partitions, from ``METHODS``; None: the history itself shows it. ``ww_deps``:
    the sender of a value precedes the sender of the next value in the log. ``transactions``: an operation is all or
    nothing; otherwise, each micro-operation is independent.
    """

    sub_via: frozenset[str] | None = None
    ww_deps: bool = False
    transactions: bool = True

    def methods(self, history: OperationHistory) -> frozenset[str]:
        """How consumers got their partitions."""
        if self.sub_via is not None:
            return self.sub_via
        return frozenset({"subscribe"} if (history.f == SUBSCRIBE).any() else {"assign"})

    def to_json(self) -> dict[str, object]:
        """Plain data, for ``verdict.json``."""
        return {
            "sub_via": None if self.sub_via is None else sorted(self.sub_via),
            "ww_deps": self.ww_deps,
            "txn": self.transactions,
        }


def parse_methods(text: str) -> frozenset[str]:
    """The methods in a comma-separated text such as ``assign,subscribe``. Raises ``ValueError``."""
    methods = frozenset(part.strip() for part in text.split(",") if part.strip())
    unknown = sorted(methods - set(METHODS))
    if unknown or not methods:
        raise ValueError(f"--sub-via takes {', '.join(METHODS)}, separated by commas, not {text!r}")
    return methods


def allowances(options: JudgeOptions, history: OperationHistory) -> Mapping[str, str]:
    """Check -> the reason why its findings are allowed."""
    allowed = {"int-send-skip": "transactions may write concurrently: other values may lie between their own"}
    for name in ("G0", "G0-process", "G0-realtime"):
        allowed[name] = "writes are not isolated from each other in Kafka's transactions"
    if "subscribe" in options.methods(history):
        reason = "consumers subscribed: a rebalance moves partitions, so reading continues elsewhere or repeats"
        allowed |= {"poll-skip": reason, "nonmonotonic-poll": reason}
    if options.ww_deps:
        for name in ("G1c", "G1c-process", "G1c-realtime"):
            allowed[name] = "--ww-deps: with writes that are not isolated, cycles of writes and reads are normal"
    if not options.transactions:
        allowed["precommitted-read"] = "--no-txn: what was sent can be read at once"
    return allowed
