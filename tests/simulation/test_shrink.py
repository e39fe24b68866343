"""Shrinking: a failure is left with the moves that it needs, and what is printed runs exactly that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.broker.rules import Rules
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ProducerEntry, Verdict
from cluster.protocol.batch import BatchHeader
from tests.simulation.case import Case
from tests.simulation.removals import Removal, forget_on_failover
from tests.simulation.shrink import kind, kind_of_failure, shrink
from tests.simulation.story import Outcome, tell

#: A seed of 40 moves that shows the bug below, and the leader epoch from which on there is one.
PLANTED, BUGGY_EPOCH = Case(4, steps=40), 3


def forgets_from_the_third_epoch_on(rules: Rules) -> Rules:
    """A new leader knows no producer of before, but only from leader epoch 3 on: an election, or a member of the ISR
    that leaves, makes one more.
    """
    without = forget_on_failover(rules)
    is_buggy = False

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        nonlocal is_buggy
        is_buggy = leader_epoch >= BUGGY_EPOCH
        return (without if is_buggy else rules).append(log, batch, header, leader_epoch, now_ms)

    def check(entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown: str) -> Verdict:
        return (without if is_buggy else rules).check_sequence(entry, header, log_start_offset, unknown)

    return replace(rules, append=append, check_sequence=check)


def planted(case: Case) -> Outcome:
    return tell(case.seed, Removal(forgets_from_the_third_epoch_on), steps=case.steps, kept=case.moves)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_three_moves_of_forty_are_found() -> None:
    """A bug that needs three moves among 40 ends at four or fewer, each of which is needed."""
    outcome = planted(PLANTED)
    assert len(outcome.moves) == 40
    shrunk = shrink(PLANTED, outcome, lambda number, case, is_same: None, run=planted)
    assert 3 <= len(shrunk.outcome.moves) <= 4
    assert shrunk.is_minimal
    assert kind_of_failure(outcome.findings) in map(kind, shrunk.outcome.findings)
