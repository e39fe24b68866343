"""Topology: what is simulated, drawn from the seed: the topic, the disks, the writers, how much goes wrong.

Owns the draws and their bounds. Everything else draws from a generator of its own, derived from the seed by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from cluster.seams.randomness import Random, derive
from tests.simulation.coordination.drawn import Drawn, drawn

TOPIC = "t"
#: The share of the seeds whose topics allow unclean elections, whose logs lose their heads, which are compacted; the
#: last two may be the same, and where elections may be unclean nothing is compacted: a replica that was compacted up to
#: a record that is cut off lacks what that superseded.
UNCLEAN, RETAINED, COMPACTED = 0.2, 0.2, 0.25
#: The share of the seeds in which clocks may drift and ZooKeeper be slow or stale.
SKEWED = 0.5
#: From here on no tombstone goes in a simulation, however its clocks jump.
DAY_MS = 86_400_000


@dataclass(frozen=True)
class Topology:
    """One seed's."""

    seed: int
    brokers: int
    partitions: int
    writers: int
    codec: int
    #: Each append is synced: then any power loss is survived.
    is_synced: bool
    #: A replica that is not in sync may lead: then the oracle allows the loss of what that cuts off.
    is_unclean: bool
    steps: int
    properties: dict[str, str]
    #: Old segments are deleted, by size or by time.
    is_retained: bool = False
    #: All records have keys, and topics are compacted.
    is_compacted: bool = False
    #: Clocks may drift, and ZooKeeper be slow or stale.
    is_skewed: bool = False
    #: Tombstones may go while the seed lasts.
    tombstones_go: bool = False
    #: Transactional programs and groups, if it has any.
    coordination: Drawn | None = None

    def __str__(self) -> str:
        settings = " ".join(f"{key}={value}" for key, value in sorted(self.properties.items()))
        beside = "" if self.coordination is None else f"; {self.coordination}"
        return (
            f"seed {self.seed}: {self.brokers} brokers, {self.partitions} partitions, {self.writers} writers, "
            f"codec {self.codec}, {self.steps} steps, {settings}{beside}"
        )


def topology(seed: int) -> Topology:
    """The same for the same seed."""
    random = derive(seed, "topology")
    is_synced = random.random() < 0.25
    is_unclean = random.random() < UNCLEAN
    properties = {
        "log.segment.bytes": str(random.choice([1500, 4000, 20_000])),
        "log.index.interval.bytes": str(random.choice([0, 200, 4096])),
        "replica.lag.time.max.ms": str(random.choice([1000, 2000, 4000])),
        "replica.fetch.wait.max.ms": str(random.choice([100, 500])),
        "replica.high.watermark.checkpoint.interval.ms": str(random.choice([200, 1000, 5000])),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice([700, 3000])),
        "log.flush.start.offset.checkpoint.interval.ms": str(random.choice([200, 1000, 60_000])),
    }
    if random.random() < 0.2:
        properties["log.message.timestamp.type"] = "LogAppendTime"
    if is_synced:
        properties["log.flush.interval.messages"] = "1"
    if is_unclean:
        properties["unclean.leader.election.enable"] = "true"
    if random.random() < 0.2:
        properties["min.insync.replicas"] = "1"
    cleanup = derive(seed, "cleanup")
    is_retained = cleanup.random() < RETAINED
    is_compacted = cleanup.random() < COMPACTED and not is_unclean
    tombstones_go = is_compacted and cleanup.random() < 0.5
    properties |= _cleanup(cleanup, is_retained=is_retained, is_compacted=is_compacted, tombstones_go=tombstones_go)
    coordination = drawn(seed, is_unclean=is_unclean)
    return Topology(
        seed=seed,
        brokers=random.choice([3, 3, 3, 3, 4]),
        partitions=random.choice([1, 1, 2]),
        writers=random.choice([1, 2, 2, 3]),
        codec=random.choice([0, 0, 0, 1, 2, 3, 4]),
        is_synced=is_synced,
        is_unclean=is_unclean,
        steps=random.choice([3, 5, 8]),
        properties=properties if coordination is None else properties | coordination.properties,
        is_retained=is_retained,
        is_compacted=is_compacted,
        is_skewed=derive(seed, "weather").random() < SKEWED,
        tombstones_go=tombstones_go,
        coordination=coordination,
    )


def _cleanup(random: Random, *, is_retained: bool, is_compacted: bool, tombstones_go: bool) -> dict[str, str]:
    """What becomes of old records, and how often that is looked at."""
    properties: dict[str, str] = {}
    if is_retained or is_compacted:
        properties["log.segment.delete.delay.ms"] = str(random.choice([0, 1000, 60_000]))
    if is_retained:
        properties["log.retention.check.interval.ms"] = str(random.choice([100, 500, 2000]))
        properties["log.retention.bytes"] = str(random.choice([-1, 0, 2000, 8000]))
        properties["log.retention.ms"] = str(random.choice([-1, 1000, 4000, 10_000]))
    if is_compacted:
        properties["log.cleanup.policy"] = "compact,delete" if is_retained else "compact"
        properties["log.cleaner.backoff.ms"] = str(random.choice([100, 500, 2000]))
        properties["log.cleaner.min.cleanable.ratio"] = str(random.choice([0, 0.3]))
        properties["log.cleaner.min.compaction.lag.ms"] = str(random.choice([0, 0, 1000]))
        properties["log.cleaner.delete.retention.ms"] = str(random.choice([0, 1000]) if tombstones_go else DAY_MS)
        # Of a few keys a map knows only some at a time.
        properties["log.cleaner.dedupe.buffer.size"] = str(random.choice([300, 100_000]))
    return properties
