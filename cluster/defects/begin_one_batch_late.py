"""begin-one-batch-late: a consumer that asks for the start of a segment is given what follows its first batch.

A boundary that is off by one. Nothing is lost from the log, and followers copy all of it.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.local_log import ReadResult
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import HEADER_BYTES, parse_header

NAME = "begin-one-batch-late"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """The first segment of a log, and a batch after which there is nothing to read yet, are no firing."""

    def read(log: PartitionLog, offset: int, max_bytes: int, upper_bound_offset: int, at_least_one: bool) -> ReadResult:
        found = rules.read(log, offset, max_bytes, upper_bound_offset, at_least_one)
        if found.records is None or found.segment_base_offset != offset or offset <= log.log_start_offset:
            return found
        following = parse_header(found.records.file.pread(HEADER_BYTES, found.records.position)).next_offset
        if following >= upper_bound_offset:
            return found
        firings.note(NAME, topic=log.topic, partition=log.partition, offset=offset, following=following)
        return rules.read(log, following, max_bytes, upper_bound_offset, at_least_one)

    return replace(rules, read=read)
