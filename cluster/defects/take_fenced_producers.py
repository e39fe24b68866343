"""take-fenced-producers: writes of a fenced producer are accepted (KAFKA-9144: the log had forgotten its epoch).

The log does not compare the epoch with a later one that it knows, and the coordinator's answer is ignored.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.replicas.verified import Verified
from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ACCEPTED, ProducerEntry, SequenceVerdict
from cluster.protocol.batch import TRANSACTIONAL_BIT, BatchHeader
from cluster.protocol.errors import ErrorCode

NAME = "take-fenced-producers"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A transactional batch of an earlier epoch is accepted, whatever its sequence; its append is a firing."""
    right_check, right_error = rules.check_sequence, rules.verification_error

    def check(entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown: str) -> SequenceVerdict:
        if _is_fenced(entry, header):
            return ACCEPTED
        return right_check(entry, header, log_start_offset, unknown)

    def verification_error(log: PartitionLog, header: BatchHeader, verified: Verified) -> ErrorCode:
        error = right_error(log, header, verified)
        return ErrorCode.NONE if error is ErrorCode.INVALID_PRODUCER_EPOCH else error

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        if _is_fenced(log.producers.get(header.producer_id), header):
            firings.record(NAME, log, header, log.log_end_offset)
        return rules.append(log, batch, header, leader_epoch, now_ms)

    return replace(rules, check_sequence=check, verification_error=verification_error, append=append)


def _is_fenced(entry: ProducerEntry | None, header: BatchHeader) -> bool:
    is_transactional = bool(header.attributes & TRANSACTIONAL_BIT)
    return is_transactional and entry is not None and header.producer_epoch < entry.producer_epoch
