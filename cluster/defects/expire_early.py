"""expire-early: a producer's batches are forgotten while it may still send them again.

As in KAFKA-5793 and Redpanda issue 22670, but sooner: producers expire after half a second. A retry that comes later is
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

NAME = "expire-early"
EXPIRATION_MS = 500


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a retry of a batch whose greatest timestamp is older than that."""
    return accepting(NAME, _has_expired, rules, firings)


def _has_expired(
    _log: PartitionLog, _header: BatchHeader, _entry: ProducerEntry, verdict: SequenceVerdict, _epoch: int, now_ms: int
) -> bool:
    return verdict.batch is not None and now_ms - verdict.batch.timestamp > EXPIRATION_MS
