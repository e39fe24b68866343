"""Which partition of an internal topic a key belongs to, and so which broker is its coordinator.

Owns the hash: Java's ``String.hashCode`` and Kafka's ``Utils.abs`` (docs/reference/kafka.md "Coordinator of a key").
The leader of that partition coordinates the transactional id, or the group.
"""

from __future__ import annotations

import struct

_SIGN_BIT = 0x80000000
_WORD = 0xFFFFFFFF


def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, a signed int of 32 bits that wraps."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & _WORD
    return (value ^ _SIGN_BIT) - _SIGN_BIT


def partition_for(key: str, partition_count: int) -> int:
    """The partition of ``key`` in a topic of ``partition_count`` partitions. ``Utils.abs`` makes -2^31 zero."""
    hashed = java_hash(key)
    return (0 if hashed == -_SIGN_BIT else abs(hashed)) % partition_count
