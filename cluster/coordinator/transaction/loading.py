"""The records of one partition of ``__transaction_state``, replayed: the last one of each id counts.

Owns the table that a new coordinator begins with. Does not own reading the log, nor the layouts (``records.py``).
"""

from __future__ import annotations

from cluster.coordinator.transaction.records import (
    CorruptTransactionRecord,
    UnknownKeyVersion,
    decode_key,
    decode_value,
)
from cluster.coordinator.transaction.state import TransactionMetadata
from cluster.coordinator.unreadable import UnreadableRecords
from cluster.protocol.primitives import Buffer


class TransactionTable:
    """``take`` every record in the order of the log, up to its end; ``transactions`` is what it says. ``unavailable``
    are the ids whose last record cannot be read: a decision may be in it, so nothing is known of them.
    """

    def __init__(self) -> None:
        self.transactions: dict[str, TransactionMetadata] = {}
        self.unavailable: set[str] = set()
        self.unreadable = UnreadableRecords()
        #: Records whose key is of a version that this code does not know.
        self.passed_over = 0

    def __repr__(self) -> str:
        return f"TransactionTable({len(self.transactions)} transactional ids, {self.passed_over} records passed over)"

    def take(self, offset: int, key: Buffer | None, value: Buffer | None) -> None:
        """One record. One that cannot be read concerns its own id alone, or none if that is in the key.

        Kafka logs such a record and serves what it has read before it: what comes after is lost for all ids.
        """
        try:
            transactional_id = decode_key(key)
        except UnknownKeyVersion:
            self.passed_over += 1
            return
        except CorruptTransactionRecord as error:
            self.unreadable.note(offset, str(error))
            return
        self.transactions.pop(transactional_id, None)
        self.unavailable.discard(transactional_id)
        if value is None:
            return
        try:
            self.transactions[transactional_id] = decode_value(transactional_id, value)
        except CorruptTransactionRecord as error:
            self.unreadable.note(offset, str(error))
            self.unavailable.add(transactional_id)
