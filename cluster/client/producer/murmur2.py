"""murmur2 as Kafka's Java client computes it: the hash that every client of a topic must agree on.

Owns the hash (Kafka's Utils.murmur2). Does not own what is made of it.
"""

from __future__ import annotations

import struct

_SEED = 0x9747B28C
_M = 0x5BD1E995
_UINT32 = 0xFFFFFFFF
#: By count: little-endian words of four bytes. Longer data is taken in turns.
_WORDS = [struct.Struct(f"<{count}I") for count in range(65)]


def murmur2(data: bytes) -> int:
    """The hash of ``data`` as a signed 32-bit integer."""
    length = len(data)
    value = _SEED ^ length
    position, end = 0, length & ~3
    while position < end:
        words = _WORDS[min(64, (end - position) >> 2)]
        for word in words.unpack_from(data, position):
            word = word * _M & _UINT32
            value = (value * _M ^ (word ^ word >> 24) * _M) & _UINT32
        position += words.size
    if length & 3:
        value = (value ^ int.from_bytes(data[end:], "little")) * _M & _UINT32
    value = (value ^ value >> 13) * _M & _UINT32
    value ^= value >> 15
    return value - (1 << 32) if value & 0x80000000 else value
