"""forget-sequences: no duplicate detection at all (Redpanda issue 3039).

Every batch of a producer is accepted, so a retry whose first answer was lost is appended again. A batch that the
correct check would accept is not a firing.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ACCEPTED, ProducerEntry, SequenceVerdict, VerdictKind
from cluster.protocol.batch import BatchHeader

NAME = "forget-sequences"


def accept(
    _entry: ProducerEntry | None, _header: BatchHeader, _log_start_offset: int, _unknown: str
) -> SequenceVerdict:
    """A sequence check that accepts everything."""
    return ACCEPTED


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """Accept what should be a duplicate or an error. A probability below 1 makes no sense here: state is lost or it is
    not (``catalogue`` refuses it)."""
    right_check = rules.check_sequence

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        if header.producer_id >= 0:
            entry = log.producers.get(header.producer_id)
            verdict = right_check(entry, header, log.log_start_offset, log.config.unknown_producer)
            if verdict.kind is not VerdictKind.ACCEPT:
                firings.record(NAME, log, header, log.log_end_offset)
        return rules.append(log, batch, header, leader_epoch, now_ms)

    return replace(rules, check_sequence=accept, append=append)
