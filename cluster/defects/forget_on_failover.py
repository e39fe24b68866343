"""forget-on-failover: a new leader does not recognize what its predecessor stored.

Its producers' state is not rebuilt from snapshot and log. A batch whose answer was lost with the former leader is
stored again.
"""

from __future__ import annotations

from random import Random

from cluster.broker.rules import Rules
from cluster.defects.accepted_again import accepting
from cluster.defects.firings import Firings
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ProducerEntry, SequenceVerdict
from cluster.protocol.batch import BatchHeader

NAME = "forget-on-failover"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a retry of a batch from before the leader's epoch."""
    return accepting(NAME, _is_of_before, rules, firings)


def _is_of_before(
    log: PartitionLog, _header: BatchHeader, _entry: ProducerEntry, verdict: SequenceVerdict, epoch: int, _now_ms: int
) -> bool:
    latest = log.epochs.entries[-1:]
    if verdict.batch is None or not latest or latest[0].epoch != epoch:
        return False
    return verdict.batch.last_offset < latest[0].start_offset
