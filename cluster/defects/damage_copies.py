"""damage-copies: a follower stores damaged batches, under a checksum that it computes itself (KAFKA-8722).

What comes of bad memory or a bad link where no one checks what was received: a batch of the leader is intact on the
follower, too, but with other content.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from crc32c import crc32c

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import CRC_AT, CRC_FROM, crc_ok, iter_batches

NAME = "damage-copies"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a batch whose last byte is changed, with ``probability``, or that was damaged already."""

    def follow(log: PartitionLog, records: memoryview) -> AppendInfo | None:
        for position, header in [*iter_batches(records)]:
            end = position + header.size_bytes
            is_intact = crc_ok(records, position, header.size_bytes)
            if is_intact and random.random() >= probability:
                continue
            firings.record(NAME, log, header, header.base_offset)
            # What was received belongs to the connection, and may be needed again.
            records = memoryview(bytearray(records))
            if is_intact:
                records[end - 1] ^= 1
            records[position + CRC_AT : position + CRC_FROM] = crc32c(records[position + CRC_FROM : end]).to_bytes(4)
        return rules.follow(log, records)

    return replace(rules, follow=follow)
