"""remember-one-batch: of each producer only the last batch is recognized (Redpanda issues 3038 and 3077).

A retry of an older one is stored again. With five requests in flight, four of them are not recognized.
"""

from __future__ import annotations

from random import Random

from cluster.broker.rules import Rules
from cluster.defects.accepted_again import accepting
from cluster.defects.firings import Firings
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ProducerEntry, SequenceVerdict
from cluster.protocol.batch import BatchHeader

NAME = "remember-one-batch"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a retry of an older batch that is remembered."""
    return accepting(NAME, _is_older, rules, firings)


def _is_older(
    _log: PartitionLog, _header: BatchHeader, entry: ProducerEntry, verdict: SequenceVerdict, _epoch: int, _now_ms: int
) -> bool:
    return verdict.batch is not None and verdict.batch != entry.batches[-1]
