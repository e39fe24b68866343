"""refuse-batches: refuse a good batch with an error that asks to try again, and store nothing of it.

No promise is broken by it: a broker may refuse. Reordering needs it: one batch is refused while the next, already under
way, is taken, and then the first is tried again. A lost connection never shows that, for all that was under way comes
again in its order.
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
    """Refuse a batch with ``probability``; every other one goes the right way."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        if random.random() >= probability:
            return rules.append(log, batch, header, leader_epoch, now_ms)
        firings.record(NAME, log, header, log.log_end_offset)
        raise LogError(ErrorCode.NOT_ENOUGH_REPLICAS, f"refused by the defect {NAME}")

    return replace(rules, append=append)
