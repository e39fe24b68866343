"""name-no-aborted: Fetch responses do not list aborted transactions (KAFKA-9807), so readers return their records."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.local_log import ReadResult
from cluster.log.partition_log import PartitionLog

NAME = "name-no-aborted"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a fetch whose response should have listed aborted transactions."""
    right = rules.aborted_transactions

    def aborted_transactions(
        log: PartitionLog, fetch_offset: int, found: ReadResult, upper_bound_offset: int
    ) -> list[tuple[int, int]]:
        left_out = right(log, fetch_offset, found, upper_bound_offset)
        if left_out:
            firings.note(
                NAME, topic=log.topic, partition=log.partition, offset=fetch_offset, transactions=len(left_out)
            )
        return []

    return replace(rules, aborted_transactions=aborted_transactions)
