"""How much the transactional ids of a broker take together, and whether one of them may take more.

Owns what is counted, in ids and in bytes, and that no client host takes all of it: an id counts for the host whose
client made it, and the last of the room is for hosts that have little, and for ids that are known. Does not own the
ids (``ownership.py``), nor what is forgotten (``expiry.py``). Pure.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cluster.coordinator.transaction.state import TransactionMetadata
from cluster.protocol.errors import ErrorCode

#: About what a transactional id takes in memory, besides its text, and each partition of its transaction.
_ID_BYTES = 1000
_PARTITION_BYTES = 150
#: Sixteenths of the bytes: up to here they are for new ids, from here to the next for those that are known; the rest is
#: for hosts of which all ids together take no more than the last one says. Of the number of ids the first two are one.
FOR_NEW_IDS, FOR_KNOWN_IDS, OF_SMALL_HOST = 12, 14, 1
#: A known id may have as many partitions in any case: together they take no more than as many for each id.
ALWAYS_PARTITIONS = 8
FULL = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@dataclass(frozen=True, slots=True)
class TransactionQuota:
    """What one broker keeps at most: transactional ids, bytes of these with the partitions of their transactions, and
    partitions of one transaction. What is read from the log is kept in any case."""

    most_ids: int = sys.maxsize
    most_bytes: int = sys.maxsize
    most_partitions: int = sys.maxsize


class Taken:
    """What some ids take: ``ids`` and about as many ``size_bytes``, by client host."""

    __slots__ = ("ids", "size_bytes")

    def __init__(self) -> None:
        self.ids: Counter[str] = Counter()
        self.size_bytes: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"Taken({self.ids.total()} ids, {self.size_bytes.total()} bytes)"

    def change(self, before: TransactionMetadata | None, after: TransactionMetadata | None) -> None:
        """An id comes, goes, or is another one than before."""
        for metadata, sign in ((before, -1), (after, 1)):
            if metadata is not None:
                _add(self.ids, metadata.client_host, sign)
                _add(self.size_bytes, metadata.client_host, sign * metadata_bytes(metadata))


def _add(of_hosts: Counter[str], host: str, number: int) -> None:
    of_hosts[host] += number
    if not of_hosts[host]:
        del of_hosts[host]


def metadata_bytes(metadata: TransactionMetadata) -> int:
    """About what one id takes in memory."""
    return _ID_BYTES + len(metadata.transactional_id) + partition_count(metadata) * _PARTITION_BYTES


def partition_count(metadata: TransactionMetadata) -> int:
    """The partitions of a transaction. A pending transition shares them."""
    pending = 0 if metadata.pending is None else len(metadata.pending.topic_partitions)
    return max(len(metadata.topic_partitions), pending)


def check_room(
    room: TransactionQuota, taken: Iterable[Taken], before: TransactionMetadata | None, after: TransactionMetadata
) -> ErrorCode:
    """Whether an id may become ``after``; one that does not grow always may, and one that is known a little. What is
    refused for lack of room may be tried again, but a transaction that names too much is to be aborted."""
    grown = metadata_bytes(after) - (0 if before is None else metadata_bytes(before))
    if before is not None and grown <= 0:
        return ErrorCode.NONE
    if partition_count(after) > room.most_partitions:
        return ErrorCode.OPERATION_NOT_ATTEMPTED
    if before is not None and partition_count(after) <= ALWAYS_PARTITIONS:
        return ErrorCode.NONE
    taken = [*taken]
    host, sixteenths = after.client_host, FOR_NEW_IDS if before is None else FOR_KNOWN_IDS
    if before is None and not _has_room([each.ids for each in taken], host, 1, room.most_ids, FOR_KNOWN_IDS):
        return FULL
    has_room = _has_room([each.size_bytes for each in taken], host, grown, room.most_bytes, sixteenths)
    return ErrorCode.NONE if has_room else FULL


def crowds(room: TransactionQuota, taken: Iterable[Taken]) -> frozenset[str]:
    """The hosts that have more than a little, of ids or of bytes."""
    of_ids, of_bytes = Counter[str](), Counter[str]()
    for each in taken:
        of_ids.update(each.ids)
        of_bytes.update(each.size_bytes)
    many = {host for host, count in of_ids.items() if count > _little(room.most_ids)}
    return frozenset(many | {host for host, size in of_bytes.items() if size > _little(room.most_bytes)})


def _has_room(of_hosts: list[Counter[str]], host: str, more: int, most: int, sixteenths: int) -> bool:
    """``sixteenths``: how far up the room is for hosts that have more than a little."""
    if not host or sum(each[host] for each in of_hosts) + more <= _little(most):
        sixteenths = 16
    return sum(each.total() for each in of_hosts) + more <= most * sixteenths // 16


def _little(most: int) -> int:
    return max(1, most * OF_SMALL_HOST // 16)
