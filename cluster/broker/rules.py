"""Rules: the decision functions of a broker in one frozen value, taken at start-up.

Owns the bundle alone. A defect of ``cluster.defects`` wraps one of these by ``dataclasses.replace``; the correct code
has no other hook (design section 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cluster.controller.rules import ControlRules
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import CheckSequence, check_sequence
from cluster.protocol.batch import BatchHeader

#: (log, batch, its header, leader epoch, wall clock in ms) -> AppendInfo; raises LogError.
LeaderAppend = Callable[[PartitionLog, memoryview, BatchHeader, int, int], AppendInfo]


def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
    """Append one valid batch of a client as the leader."""
    return log.append_as_leader(batch, header, leader_epoch, now_ms)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a broker decides by. The defaults are the correct rules."""

    check_sequence: CheckSequence = check_sequence
    append: LeaderAppend = append
    control: ControlRules = field(default_factory=ControlRules)
