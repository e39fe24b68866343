"""The batches of a log file, by their frames alone; what their records say belongs to the readers of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import crc32c

HEADER = 61


class Frame(NamedTuple):
    """The header of one batch, and all its bytes; ``sound`` if they have its checksum."""

    base: int
    last: int
    leader_epoch: int
    attributes: int
    producer_id: int
    producer_epoch: int
    count: int
    data: bytes
    sound: bool

    @property
    def whole(self) -> bool:
        """Whether compaction took nothing from it."""
        return self.count == self.last - self.base + 1 and not self.attributes & 0x40


def frames_in(path: Path) -> Iterator[Frame]:
    """Up to the first frame that cannot be one, or is cut off."""
    data, at = path.read_bytes(), 0
    while at + HEADER <= len(data):
        base, length, leader_epoch, _, crc = struct.unpack_from(">qiibI", data, at)
        batch = data[at : at + 12 + length]
        if length < HEADER - 12 or len(batch) < 12 + length:
            return
        attributes, delta = struct.unpack_from(">hi", batch, 21)
        producer_id, producer_epoch, _, count = struct.unpack_from(">qhii", batch, 43)
        sound = crc32c.crc32c(batch[21:]) == crc
        yield Frame(base, base + delta, leader_epoch, attributes, producer_id, producer_epoch, count, batch, sound)
        at += len(batch)
