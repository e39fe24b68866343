"""shift-duplicates: a batch that was stored before is answered with an offset that is not its own.

Redpanda issue 5355.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader

NAME = "shift-duplicates"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """Each answer to a retry whose original is remembered is one too high."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        info = rules.append(log, batch, header, leader_epoch, now_ms)
        if not info.duplicate or info.first_offset < 0:
            return info
        firings.record(NAME, log, header, info.first_offset)
        return info._replace(first_offset=info.first_offset + 1, last_offset=info.last_offset + 1)

    return replace(rules, append=append)
