"""take-what-comes-late: a batch is accepted that belongs to no open transaction (KAFKA-14402, before KIP-890).

The coordinator is asked, but its answer is ignored. A record that arrives after the marker of its transaction opens
another one, which no one will end.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.replicas.verified import Verified
from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode

NAME = "take-what-comes-late"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """Only batches that are refused for good are accepted: if the coordinator cannot be reached, nothing is known about
    the batch."""
    right = rules.verification_error

    def verification_error(log: PartitionLog, header: BatchHeader, verified: Verified) -> ErrorCode:
        error = right(log, header, verified)
        if error is not ErrorCode.INVALID_TXN_STATE:
            return error
        firings.record(NAME, log, header, log.log_end_offset)
        return ErrorCode.NONE

    return replace(rules, verification_error=verification_error)
