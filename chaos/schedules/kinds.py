"""What the generators of schedules know about a kind of fault: how long it lasts, and what is unavailable meanwhile.

Owns only the value. Each fault's class provides it (``chaos.faults.base``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: What a fault takes away: a broker, some links, ZooKeeper, a part of the load, or so much that no other fault may
#: overlap it (``everything``). ``traffic``: the fault bites only while traffic flows, so nothing may interrupt that.
Hits = Literal["broker", "link", "traffic", "zookeeper", "load", "everything"]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One kind of fault.

    ``duration_s`` has the bounds of its duration, and ``recovery_s`` is how long the cluster then needs to recover.
    ``loses``: a broker comes back without data that it had acknowledged, which other replicas must have.
    ``needs_sync``: the fault waits until every replica is in its ISR. ``once``: what it takes away does not come back,
    so that it is planned only once.
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
        """Whether a broker is unavailable, or lacks data, until the fault is over."""
        return self.hits == "broker" or self.loses
