"""Topology: what is simulated, drawn from the seed: the topic, the disks, the writers, how much goes wrong.

Owns the draws and their bounds. Everything else draws from a generator of its own, derived from the seed by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from cluster.seams.randomness import derive

TOPIC = "t"
#: The share of the seeds whose topics allow unclean elections.
UNCLEAN = 0.2


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

    def __str__(self) -> str:
        settings = " ".join(f"{key}={value}" for key, value in sorted(self.properties.items()))
        return (
            f"seed {self.seed}: {self.brokers} brokers, {self.partitions} partitions, {self.writers} writers, "
            f"codec {self.codec}, {self.steps} steps, {settings}"
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
    return Topology(
        seed=seed,
        brokers=random.choice([3, 3, 3, 3, 4]),
        partitions=random.choice([1, 1, 2]),
        writers=random.choice([1, 2, 2, 3]),
        codec=random.choice([0, 0, 0, 1, 2, 3, 4]),
        is_synced=is_synced,
        is_unclean=is_unclean,
        steps=random.choice([3, 5, 8]),
        properties=properties,
    )
