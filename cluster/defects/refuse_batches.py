"""refuse-batches: refuse a valid batch with a retriable error, and store nothing of it.

This breaks no promise: a broker may refuse a batch. It makes reordering possible: one batch is refused while the next
one in flight is accepted, and then the first is retried. A lost connection never shows that, since everything in flight
is sent again in order.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.errors import LogError
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode

NAME = "refuse-batches"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """Refuse a batch with ``probability``; all others are handled correctly."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        if random.random() >= probability:
            return rules.append(log, batch, header, leader_epoch, now_ms)
        firings.record(NAME, log, header, log.log_end_offset)
        raise LogError(ErrorCode.NOT_ENOUGH_REPLICAS, f"refused by the defect {NAME}")

    return replace(rules, append=append)
