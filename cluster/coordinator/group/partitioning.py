"""Which partition of ``__consumer_offsets`` a group belongs to: Java's hash of its id.

Owns the hash, on which brokers and tools of Kafka agree (docs/reference/kafka.md "Groups"). Does not own which broker
leads that partition and so coordinates the group.
"""

from __future__ import annotations

import sys
from array import array

_INT32_MIN = -(1 << 31)


def utf16_units(text: str) -> array[int]:
    """The UTF-16 code units of a text, which Java counts as its characters."""
    units = array("H", text.encode("utf-16-le", "surrogatepass"))
    if sys.byteorder == "big":
        units.byteswap()
    return units


def java_hash(text: str) -> int:
    """``String.hashCode`` of Java, as a signed 32-bit integer."""
    value = 0
    for unit in utf16_units(text):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(group_id: str, partitions: int) -> int:
    """The partition of ``__consumer_offsets``; the one hash without an absolute value counts as 0."""
    value = java_hash(group_id)
    return 0 if value == _INT32_MIN else abs(value) % partitions
