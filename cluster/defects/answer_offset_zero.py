"""answer-offset-zero: a stored batch is answered with offset 0 (Jepsen saw Bufstream answer so)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader

NAME = "answer-offset-zero"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """With ``probability``; for a batch that is at offset 0 this is right, and not noted."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        info = rules.append(log, batch, header, leader_epoch, now_ms)
        if info.first_offset <= 0 or random.random() >= probability:
            return info
        firings.record(NAME, log, header, info.first_offset)
        return info._replace(first_offset=0, last_offset=header.last_offset_delta)

    return replace(rules, append=append)
