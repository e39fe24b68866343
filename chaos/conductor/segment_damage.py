"""Flips a bit in the segments of one replica, and checks whether the damage is detected. Every function blocks.

Owns these two. Does not decide when damage is done (``chaos.faults.bit_flip``). Finds batches with the verifier's
reader, which shares no code with the cluster.
"""

from __future__ import annotations

import os
from random import Random

from chaos.faults.machine import FlippedBit
from cluster.client import Consumer
from cluster.client.consumer.results import ConsumerError, CorruptRecord
from cluster.seams.storage import Storage
from verifier.segments.walk import HEADER_BYTES, check_crcs, headers, open_segment, walk

_POLL_S = 3.0


def flip_bit(storage: Storage, directory: str, random: Random) -> FlippedBit | None:
    """Flip one bit in the records of a random batch in a closed segment; None if there is no closed segment.

    Chooses among the older half of the closed segments, which live readers have already passed.
    """
    closed = _segments(storage, directory)[:-1]
    if not closed:
        return None
    name = random.choice(closed[: max(1, len(closed) // 2)])
    path = os.path.join(directory, name)
    data = open_segment(path)
    found = walk(data)
    index = random.randrange(found.positions.size)
    start, size = int(found.positions[index]), int(found.sizes[index])
    position = random.randrange(start + HEADER_BYTES, start + size)
    offset = int(headers(data, found.positions[index : index + 1])["base_offset"][0])
    file = storage.open(path, create=False)
    try:
        (before,) = file.pread(1, position)
        file.pwrite(bytes((before ^ 1 << random.randrange(8),)), position)
        file.fsync()
    finally:
        file.close()
    return FlippedBit(name, position, offset)


def bad_batches(storage: Storage, directory: str) -> int:
    """How many batches in the segments of ``directory`` do not match their own checksum."""
    bad = 0
    for name in _segments(storage, directory):
        data = open_segment(os.path.join(directory, name))
        found = walk(data)
        if found.positions.size:
            fields = headers(data, found.positions)
            bad += int((~check_crcs(data, found.positions, found.sizes, fields["crc"])).sum())
    return bad


def reads_damage(address: str, topic: str, partition: int, offset: int) -> bool:
    """Whether a consumer that connects to ``address`` finds that the record at this offset is damaged."""
    consumer = Consumer({"bootstrap.servers": address, "client.id": "gapless-probe", "max.poll.records": 1})
    try:
        consumer.assign([(topic, partition)])
        consumer.seek((topic, partition), offset)
        consumer.poll(_POLL_S)
    except CorruptRecord:
        return True
    except ConsumerError:
        return False
    finally:
        consumer.close()
    return False


def _segments(storage: Storage, directory: str) -> list[str]:
    return [name for name in storage.listdir(directory) if name.endswith(".log")]
