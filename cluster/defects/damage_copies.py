"""damage-copies: a follower stores damaged batches, under a checksum that it computes itself (KAFKA-8722).

This is what bad memory or a bad link causes if what was received is not checked: on the follower, the batch seems
intact, but its content differs from the leader's.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from crc32c import crc32c

from cluster.broker.rules import Rules
from cluster.defects.altered import with_other_records
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import CRC_AT, CRC_FROM, BatchHeader, crc_ok, iter_batches
from cluster.protocol.records import Record

NAME = "damage-copies"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a batch in which a byte of a value is changed, with ``probability``, or that was damaged already."""

    def damaged(records: list[Record]) -> list[Record] | None:
        having = [number for number, record in enumerate(records) if record.value]
        if not having:
            return None
        number = random.choice(having)
        value = bytearray(records[number].value or b"")
        value[random.randrange(len(value))] ^= 1 << random.randrange(8)
        return [*records[:number], records[number]._replace(value=bytes(value)), *records[number + 1 :]]

    def other(batch: memoryview, header: BatchHeader) -> bytearray | None:
        if not crc_ok(batch, 0, header.size_bytes):
            return _sealed(batch)
        return with_other_records(batch, header, damaged) if random.random() < probability else None

    def follow(log: PartitionLog, records: memoryview) -> AppendInfo | None:
        # What was received belongs to the connection, and may be needed again: it stays as it is.
        stored, copied_to = bytearray(), 0
        for position, header in iter_batches(records):
            end = position + header.size_bytes
            batch = other(records[position:end], header)
            if batch is not None:
                firings.record(NAME, log, header, header.base_offset)
                stored += records[copied_to:position]
                stored += batch
                copied_to = end
        if not copied_to:
            return rules.follow(log, records)
        stored += records[copied_to:]
        return rules.follow(log, memoryview(stored))

    return replace(rules, follow=follow)


def _sealed(batch: memoryview) -> bytearray:
    sealed = bytearray(batch)
    sealed[CRC_AT:CRC_FROM] = crc32c(sealed[CRC_FROM:]).to_bytes(4)
    return sealed
