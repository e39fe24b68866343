"""forget-after-an-error: store a batch, answer with an error, and do not remember it (KAFKA-14034, KAFKA-5494).

What a sequence that is reset in a moment of trouble leads to, on the broker's side: the producer sends the batch again,
and it is stored again.
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

NAME = "forget-after-an-error"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """With ``probability``, of batches that carry a sequence and belong to no transaction."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        before = log.producers.get(header.producer_id)
        info = rules.append(log, batch, header, leader_epoch, now_ms)
        # The first batch of a producer is remembered: without it nothing else would be accepted.
        is_known = before is not None and before.producer_epoch == header.producer_epoch
        if before is None or not is_known or info.duplicate or header.is_transactional:
            return info
        if random.random() >= probability:
            return info
        firings.record(NAME, log, header, info.first_offset)
        log.producers.put(before)
        raise LogError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, f"answered so by the defect {NAME}")

    return replace(rules, append=append)
