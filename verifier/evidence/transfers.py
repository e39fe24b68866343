"""The transfers of a bank: which values are the two sides of one, and how much is transferred. Pure.

An account is a stream. Streams ``2n`` and ``2n + 1`` are one producer's; its transfer ``k`` is sequence ``k`` of both,
in one transaction: a debit of the first, which may be of less than nothing, and a credit to the second.
"""

from __future__ import annotations

import zlib

#: What is transferred at most, in either direction.
MOST = 100


def other_side(stream: int) -> int:
    """The account at the other end of a stream's transfers."""
    return stream ^ 1


def amount(run_id: int, stream: int, sequence: int) -> int:
    """What a value adds to its account: as much as the other side takes away, from -100 to 100 and never 0."""
    drawn = zlib.crc32(b"%d/%d/%d" % (run_id, stream >> 1, sequence)) % (2 * MOST)
    debit = drawn - MOST if drawn < MOST else drawn - MOST + 1
    return debit if stream & 1 else -debit


def transfer_key(run_id: int, stream: int, sequence: int) -> bytes:
    """The key of such a value, for people: ``account 3: +17``."""
    return b"account %d: %+d" % (stream, amount(run_id, stream, sequence))
