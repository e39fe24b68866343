"""one-is-enough: leaders do not ask for ``min.insync.replicas`` (KAFKA-1555).

Nothing is wrong until the only replica that has a record is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.defects.leaderships import note_leadership
from cluster.replication.leader import LeaderState

NAME = "one-is-enough"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a watermark that moves although too few are in sync: what is below it is acknowledged."""
    return with_one(NAME, rules, firings)


def with_one(name: str, rules: Rules, firings: Firings) -> Rules:
    """The same under the name of another defect, which this one is part of."""

    class Careless(LeaderState):
        __slots__ = ("wanted",)
        wanted: int

        def configure(self, min_insync_replicas: int) -> None:
            self.wanted = min(min_insync_replicas, len(self.followers) + 1)
            self.min_insync_replicas = 1

        def advance(self, log_end_offset: int, now_ms: int) -> bool:
            moved = super().advance(log_end_offset, now_ms)
            if moved and len(self.isr.committed) < self.wanted:
                note_leadership(name, self, self.high_watermark, firings)
            return moved

    return replace(rules, lead=_configured(Careless))


def _configured(make: Callable[..., LeaderState]) -> Callable[..., LeaderState]:
    """The leadership, which takes its setting as if that was new."""

    def lead(**facts: object) -> LeaderState:
        leader = make(**facts)
        leader.configure(leader.min_insync_replicas)
        return leader

    return lead
