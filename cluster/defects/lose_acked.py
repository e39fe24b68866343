"""lose-acked: acknowledge a batch without storing it (Jepsen saw a healthy Bufstream lose writes).

The batch is answered with the offset it would have had, the producer's state advances as if it were stored, and no
offset is used: the next batch takes its place. No one notices until someone counts.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import VerdictKind
from cluster.protocol.batch import BatchHeader

NAME = "lose-acked"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """Lose an acceptable batch with ``probability``; all others are handled correctly."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        if random.random() >= probability or not _would_be_accepted(rules, log, header):
            return rules.append(log, batch, header, leader_epoch, now_ms)
        offset = log.log_end_offset
        firings.record(NAME, log, header, offset)
        log.producers.update(header, offset)
        # Acknowledged as soon as what stands before it is.
        return AppendInfo(
            first_offset=offset,
            last_offset=offset + header.last_offset_delta,
            log_append_time_ms=-1,
            log_start_offset=log.log_start_offset,
            must_commit_offset=offset - 1,
        )

    return replace(rules, append=append)


def _would_be_accepted(rules: Rules, log: PartitionLog, header: BatchHeader) -> bool:
    if header.producer_id < 0:
        return True
    entry = log.producers.get(header.producer_id)
    verdict = rules.check_sequence(entry, header, log.log_start_offset, log.config.unknown_producer)
    return verdict.kind is VerdictKind.ACCEPT
