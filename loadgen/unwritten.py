"""Says whether a load wrote anything and, if not, the likely cause, from the errors of its producers. Pure.

The texts of errors have the form ``NAME: text``, with Kafka's name or one of librdkafka, which begins with an
underscore. Prints nothing (``loadgen.users.exit_status``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_NAME = re.compile(r"\b_?[A-Z][A-Z0-9_]{4,}(?=: )")

#: Names of errors and their cause, beginning with unambiguous ones. A client that reaches no broker finally reports a
#: timeout for everything.
_CAUSES: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}),
        "the topic, or a partition of it, is missing",
    ),
    (
        frozenset({"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "_AUTHENTICATION"}),
        "the brokers do not allow it",
    ),
    (
        frozenset({"MESSAGE_TOO_LARGE", "MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"}),
        "records are larger than the topic allows",
    ),
    (
        frozenset({"NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"}),
        "fewer replicas are in sync than min.insync.replicas requires",
    ),
    (
        frozenset({"_ALL_BROKERS_DOWN", "_TRANSPORT", "_RESOLVE", "NETWORK_EXCEPTION", "BROKER_NOT_AVAILABLE"}),
        "brokers are not reachable at their advertised addresses",
    ),
)


class WrittenState(NamedTuple):
    """Whether a process wrote anything and, if not, the known cause."""

    has_written: bool
    cause: str | None = None

    @property
    def kind(self) -> tuple[bool, str]:
        """The part whose change is worth a new report, without the client's text, which changes all the time."""
        return self.has_written, (self.cause or "").partition(":")[0]

    @classmethod
    def together(cls, processes: Iterable[WrittenState]) -> WrittenState:
        """The combined state of several processes: it is enough if one wrote, and if one knows a cause."""
        told = list(processes)
        if any(each.has_written for each in told):
            return cls(True)
        return cls(False, next((each.cause for each in told if each.cause), None))


def name_of(error: str) -> str:
    """The name in an error's text; empty if it has none."""
    found = _NAME.search(error)
    return "" if found is None else found[0]


def likely_cause(errors: Mapping[str, str]) -> str | None:
    """The likely cause in one clause, with the client's text in brackets; None if no error shows one.

    ``errors`` are the last text of each name.
    """
    for names, cause in _CAUSES:
        for name, text in errors.items():
            if name in names:
                return f"{cause} ({text})"
    named = [text for name, text in errors.items() if name]
    return f"the producers were told {named[-1]}" if named else None
