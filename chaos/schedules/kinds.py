"""What a schedule must know of a kind of fault: how long it lasts, and what it takes away meanwhile. A value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: What a fault takes away: a broker, some links, traffic that must flow for it to bite (without a broker acks=all
#: waits), ZooKeeper, a part of the load, or so much that nothing may come beside it.
Hits = Literal["broker", "link", "traffic", "zookeeper", "load", "everything"]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """How long it lasts, how long the cluster needs afterwards, and what is away until then.

    ``loses``: a broker comes back without something that it had acknowledged, which other replicas must have.
    ``needs_sync``: it waits until every replica is in its ISR. ``once``: what it takes away does not come back.
    """

    name: str
    duration_s: tuple[float, float]
    recovery_s: float
    hits: Hits = "broker"
    loses: bool = False
    needs_sync: bool = False
    once: bool = False

    @property
    def takes_broker(self) -> bool:
        """Whether one broker is away, or without some of its data, until it is over."""
        return self.hits == "broker" or self.loses
