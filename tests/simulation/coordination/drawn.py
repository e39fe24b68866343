"""Drawn: which seeds have transactional programs and groups, how many, and the brokers' settings for them.

Owns that draw, from a generator of its own: what else a seed is does not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from cluster.seams.randomness import derive

#: The share of the seeds that have them. Not those in which an unclean election may take away anything at all.
SHARE = 0.25
#: The topic that transactional programs write to, and the one that what was consumed from it is copied to.
INPUT, OUTPUT = "x", "y"
#: Nothing takes anything away from these, whatever the brokers' own settings are.
TOPIC_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "unclean.leader.election.enable": "false",
}


@dataclass(frozen=True)
class Drawn:
    """``writers`` are transactional ids that write, ``late`` those of which a record comes late, ``members`` those of a
    group that reads, ``copiers`` those of another group that copies, each with its transactional id; ``partitions``
    those of the topic that is written to.
    """

    writers: int
    late: int
    members: int
    copiers: int
    partitions: int
    properties: dict[str, str]

    def __str__(self) -> str:
        settings = " ".join(f"{key}={value}" for key, value in sorted(self.properties.items()))
        return (
            f"{self.writers} transactional, {self.late} late, {self.members} members, {self.copiers} copiers, "
            f"{self.partitions} partitions, {settings}"
        )


def drawn(seed: int, *, is_unclean: bool) -> Drawn | None:
    """The same for the same seed; None if it has none of them."""
    random = derive(seed, "coordination")
    if random.random() >= SHARE or is_unclean:
        return None
    members, copiers = random.choice(((0, 0), (2, 0), (3, 0), (0, 2), (2, 2)))
    return Drawn(
        writers=random.choice((1, 2)),
        late=random.choice((0, 0, 1)),
        members=members,
        copiers=copiers,
        partitions=random.choice((2, 3)),
        properties={
            "transaction.state.log.num.partitions": str(random.choice((1, 2))),
            "transaction.state.log.segment.bytes": str(random.choice((1000, 4000, 1_000_000))),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(random.choice((100, 500))),
            "offsets.topic.num.partitions": str(random.choice((1, 2))),
            "offsets.retention.check.interval.ms": str(random.choice((500, 2000))),
            "offsets.commit.timeout.ms": str(random.choice((1000, 5000))),
            "group.min.session.timeout.ms": "500",
            "group.initial.rebalance.delay.ms": str(random.choice((0, 300))),
        },
    )
