"""How defects alter the records of a batch: the checksum is right, the content is not.

Owns which batches can be altered, and how a batch is reassembled. Does not own what a defect does to records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import VerdictKind
from cluster.protocol.batch import BatchHeader, parse_header
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.records import Record, decode_records
from cluster.protocol.rewriting import rebuild_batch

#: The records of a batch -> those that are stored instead, None if it is stored as it is.
AlterRecords = Callable[[list[Record]], list[Record] | None]


def altering(
    name: str, alter: AlterRecords, rules: Rules, probability: float, random: Random, firings: Firings
) -> Rules:
    """The rules by which a leader stores an acceptable batch, with ``probability``, with other records."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        altered = None
        if random.random() < probability and log.verdict_on(header).kind is VerdictKind.ACCEPT:
            altered = with_other_records(batch, header, alter)
        if altered is None:
            return rules.append(log, batch, header, leader_epoch, now_ms)
        firings.record(name, log, header, log.log_end_offset)
        return rules.append(log, memoryview(altered), parse_header(altered), leader_epoch, now_ms)

    return replace(rules, append=append)


def with_other_records(batch: memoryview, header: BatchHeader, alter: AlterRecords) -> bytearray | None:
    """The batch as it is stored instead; None if it is stored as it is, or nothing can be read of it."""
    try:
        records = alter(decode_records(batch))
    except CorruptBatch:
        return None
    return None if records is None else bytearray(rebuild_batch(header, records, None))
