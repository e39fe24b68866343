"""Which partition of an internal topic a key belongs to: Java's hash of the transactional id, or of the group id.

Owns the hash: Java's ``String.hashCode`` and Kafka's ``Utils.abs``, on which brokers and tools of Kafka agree
(docs/reference/kafka.md "Coordinator of a key"). Does not own which broker leads that partition and so coordinates.
"""

from __future__ import annotations

import sys
from array import array

_SIGN_BIT = 0x80000000
_WORD = 0xFFFFFFFF


def utf16_units(text: str) -> array[int]:
    """The UTF-16 code units of a text, which Java counts as its characters."""
    units = array("H", text.encode("utf-16-le", "surrogatepass"))
    if sys.byteorder == "big":
        units.byteswap()
    return units


def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, a signed int of 32 bits that wraps."""
    value = 0
    for unit in utf16_units(text):
        value = (31 * value + unit) & _WORD
    return (value ^ _SIGN_BIT) - _SIGN_BIT


def partition_for(key: str, partition_count: int) -> int:
    """The partition of ``key`` in a topic of ``partition_count`` partitions. ``Utils.abs`` makes -2^31 zero."""
    hashed = java_hash(key)
    return (0 if hashed == -_SIGN_BIT else abs(hashed)) % partition_count
