"""repeat-batches: store a batch twice, one copy after the other.

A calibration of the verifier: the copies have the same producer, epoch and sequence, and no client has sent it again.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader

NAME = "repeat-batches"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """The producer is told of the first copy."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        info = rules.append(log, batch, header, leader_epoch, now_ms)
        if info.duplicate or random.random() >= probability:
            return info
        firings.record(NAME, log, header, log.log_end_offset)
        # By a header without a producer there is nothing to recognize it by; the bytes have it.
        anonymous = header._replace(producer_id=-1, producer_epoch=-1, base_sequence=-1)
        rules.append(log, memoryview(bytearray(batch)), anonymous, leader_epoch, now_ms)
        return info

    return replace(rules, append=append)
