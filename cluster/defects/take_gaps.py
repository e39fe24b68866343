"""take-gaps: a batch is accepted although one before it is missing, and that one when it comes later.

What KAFKA-8483 and KAFKA-8484 let clients do, seen from the broker: batches in flight change their order.
"""

from __future__ import annotations

from random import Random

from cluster.broker.rules import Rules
from cluster.defects.accepted_again import accepting
from cluster.defects.firings import Firings
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ProducerEntry, SequenceVerdict
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode

NAME = "take-gaps"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a batch that is out of order."""
    return accepting(NAME, _is_out_of_order, rules, firings)


def _is_out_of_order(
    _log: PartitionLog, _header: BatchHeader, _entry: ProducerEntry, verdict: SequenceVerdict, _epoch: int, _now_ms: int
) -> bool:
    return verdict.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
