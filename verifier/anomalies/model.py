"""What is known of an anomaly by its name: plain data, no Spark. Owns the shape; the anomalies are in the groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from verifier.doubts import Evidence

#: What clients were told, and what is stored.
CLIENTS_AND_LOG: frozenset[Evidence] = frozenset(("histories", "final", "segments"))
#: What is stored, regardless of what clients were told.
LOG_ALONE: frozenset[Evidence] = frozenset(("final", "segments"))
#: What is stored on one replica, beside what is stored on another: each may have deleted records at another moment.
REPLICAS: frozenset[Evidence] = LOG_ALONE | {"journals"}
#: What clients were told, beside what leaders noted of their ISRs, and who can have led.
IN_SYNC: frozenset[Evidence] = frozenset(("histories", "isrs", "excuses"))

#: What is stored, beside the span of the run's time.
LOG_AND_CLOCK: frozenset[Evidence] = LOG_ALONE | {"clock"}

#: What a check is about and not every run has; words that follow "the run has no".
Subject = Literal[
    "transactions",
    "bank",
    "consumer groups",
    "group with an output",
    "topics of coordinators",
    "idempotent producers",
    "acks=all",
    "followers",
    "end that no election may take back",
]


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One line for people, what a check may say about one of them (with the words for it), and possible consequences.

    ``needs`` is the evidence without which the check finds nothing; each anomaly states its own. ``asks_spark``: the
    check is a query over the tables (``verifier.checks``); the others are found in this process. ``about``: what a run
    must have for the check to have something to judge; None if every run has it.
    """

    name: str
    summary: str
    causes: Mapping[str, str] = field(default_factory=dict)
    brings: tuple[str, ...] = ()
    _: KW_ONLY
    needs: frozenset[Evidence]
    asks_spark: bool = True
    about: Subject | None = None
