"""The named swarms: which faults and settings may be drawn for a run. Owns the data; draws nothing (``swarm`` does).

Each seed draws only a part of its swarm: some kinds of faults often and others never, many at once or one after the
other, with its own settings. Runs that always have a little of everything never have much of one thing, and most bugs
need much of two or three things.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chaos.schedules.outages import Limits

#: The drawn configuration keys of producers, each with its possible values.
_PRODUCERS: Mapping[str, tuple[str, ...]] = {
    "batch.size": ("1024", "16384", "131072", "1000000"),
    "linger.ms": ("0", "5", "50", "200"),
    "max.in.flight.requests.per.connection": ("1", "2", "5"),
    "compression.type": ("none", "none", "gzip", "snappy", "lz4", "zstd"),
}
#: The same for the topic: segments that fill up every few seconds, or never.
_TOPIC: Mapping[str, tuple[str, ...]] = {"segment.bytes": ("131072", "1048576", "16777216", "1073741824")}


#: Faults that kill processes for good, so that a second one in a run would find nothing to kill.
_FOR_GOOD = frozenset(("kill-producers", "kill-readers"))


@dataclass(frozen=True, slots=True)
class Swarm:
    """What a seed may draw.

    ``kinds`` names the faults, except those in ``without``; empty means the whole catalogue. Those in ``always`` are in
    every run. The drawn limit on overlapping faults is at least ``least_at_once``. ``base`` is the profile that the
    swarm extends. A value that is several times in a list is drawn that much more often.
    """

    name: str
    summary: str
    limits: Limits
    kinds: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()
    always: tuple[str, ...] = ()
    least_at_once: int = 1
    acks: tuple[str, ...] = ("all",)
    producers: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _PRODUCERS)
    topic: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _TOPIC)
    base: str = "chaos"

    def has(self, kind: str) -> bool:
        """Whether this kind of fault may be drawn."""
        return kind not in self.without and (not self.kinds or kind in self.kinds)


SWARMS: Mapping[str, Swarm] = {
    each.name: each
    for each in (
        Swarm(
            "survivable",
            "any faults that leave a majority: at most one broker is away at a time; a run must be valid",
            Limits(down=1, at_once=2),
            without=frozenset(("kill-all", "kill-majority", "restart-storm", "double-failover", *_FOR_GOOD)),
            always=("kill-leader",),
            acks=("all", "all", "all", "1"),
        ),
        Swarm(
            "harsh",
            "any faults, several brokers away at once: the cluster may be unavailable, and must not be wrong",
            Limits(down=3, at_once=4),
            without=_FOR_GOOD,
            always=("kill-leader",),
        ),
        Swarm(
            "historic",
            "what the historic bugs needed: double failovers, disks that are wiped or lose what was not synced, within "
            "the replication factor, all brokers dead at once; a run must be valid",
            Limits(down=2, at_once=3, beside_losses=True),
            kinds=(
                *("kill-leader", "kill-follower", "kill-controller", "pause-leader", "cut-link", "isolate-broker"),
                *("double-failover", "kill-and-wipe", "kill-majority", "kill-all", "restart-storm"),
                *("drop-response", "restart-zookeeper", "power-loss", "truncate-tail", "lose-checkpoint", "slow-disk"),
            ),
            always=("double-failover", "kill-and-wipe", "power-loss"),
            least_at_once=2,
        ),
    )
}
