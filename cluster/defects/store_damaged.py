"""store-damaged: a follower does not check what it is sent, and stores it under a checksum of its own (KAFKA-8722).

A damaged batch of the leader is an intact one on the follower, with other content.
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

NAME = "store-damaged"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a batch with a wrong checksum."""

    def follow(log: PartitionLog, records: memoryview) -> AppendInfo | None:
        for position, header in [*iter_batches(records)]:
            end = position + header.size_bytes
            if crc_ok(records, position, header.size_bytes):
                continue
            firings.record(NAME, log, header, header.base_offset)
            records = memoryview(bytearray(records))
            records[position + CRC_AT : position + CRC_FROM] = crc32c(records[position + CRC_FROM : end]).to_bytes(4)
        return rules.follow(log, records)

    return replace(rules, follow=follow)
