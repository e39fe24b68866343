"""The file in which a log notes, at each roll, all that it knows of its producers.

Owns the bytes of ``%020d.producers``, a file of ours beside Kafka's snapshot of the same offset (whose loader passes
over names it does not know). A snapshot has only the newest batch of each producer; with this the next start goes on
with the last five, and with what is known of the sequences before, without reading the batches below.

It carries the leader epoch of the record before its offset. An offset and its epoch name one record in all replicas'
logs forever, so a file that a power loss brought back, of records that were cut off since, is found out.

version int16, CRC-32C of what follows it, leader epoch int32, producers int32; then int64s, for each producer: id,
epoch, 1 if complete + 2 if wrapped, last timestamp, batches, and of each batch its five numbers. All big-endian. A roll
waits for it, so what is most of it is made in one go.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable
from itertools import chain

from crc32c import crc32c

from cluster.log.errors import CheckpointError
from cluster.log.sequence import BatchMetadata, ProducerEntry

_VERSION = 1
_HEAD = struct.Struct(">hIii")
#: The checksum covers everything after itself.
_CRC_FROM = 6
_FIELDS = len(BatchMetadata._fields)


def histories_bytes(leader_epoch: int, entries: Iterable[ProducerEntry]) -> bytes:
    """The file. ``leader_epoch`` is -1 if there is none."""
    numbers, count = array("q"), 0
    for producer_id, producer_epoch, batches, complete, last_timestamp, wrapped in entries:
        numbers.extend((producer_id, producer_epoch, complete + 2 * wrapped, last_timestamp, len(batches)))
        numbers.extend(chain.from_iterable(batches))
        count += 1
    if sys.byteorder == "little":
        numbers.byteswap()
    data = bytearray(_HEAD.pack(_VERSION, 0, leader_epoch, count) + numbers.tobytes())
    struct.pack_into(">I", data, 2, crc32c(memoryview(data)[_CRC_FROM:]))
    return bytes(data)


def parse_histories(data: bytes) -> tuple[int, list[ProducerEntry]]:
    """(leader epoch, entries). Raises ``CheckpointError``."""
    if len(data) < _HEAD.size:
        raise CheckpointError(f"producers' histories of {len(data)} bytes")
    version, crc, leader_epoch, count = _HEAD.unpack_from(data)
    if version != _VERSION or crc32c(data[_CRC_FROM:]) != crc:
        raise CheckpointError(f"producers' histories of version {version} whose checksum does not hold, or not known")
    numbers = array("q", data[_HEAD.size :])
    if sys.byteorder == "little":
        numbers.byteswap()
    entries = []
    at = 0
    for _ in range(count):
        producer_id, producer_epoch, flags, last_timestamp, known = numbers[at : at + 5]
        at += 5
        end = at + known * _FIELDS
        batches = tuple(BatchMetadata(*numbers[start : start + _FIELDS]) for start in range(at, end, _FIELDS))
        entries.append(
            ProducerEntry(producer_id, producer_epoch, batches, bool(flags & 1), last_timestamp, bool(flags & 2))
        )
        at = end
    return leader_epoch, entries
