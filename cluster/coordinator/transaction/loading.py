"""The records of one partition of ``__transaction_state``, replayed: the last one of each id counts.

Owns the table that a new coordinator begins with. Does not own reading the log, nor the layouts (``records.py``).
"""

from __future__ import annotations

from cluster.coordinator.transaction.records import UnknownKeyVersion, decode_key, decode_value
from cluster.coordinator.transaction.state import TransactionMetadata
from cluster.protocol.primitives import Buffer


class TransactionTable:
    """``take`` every record in the order of the log, up to its end; ``transactions`` is what it says."""

    def __init__(self) -> None:
        self.transactions: dict[str, TransactionMetadata] = {}
        #: Records whose key is of a version that this code does not know.
        self.passed_over = 0

    def __repr__(self) -> str:
        return f"TransactionTable({len(self.transactions)} transactional ids, {self.passed_over} records passed over)"

    def take(self, key: Buffer | None, value: Buffer | None) -> None:
        """One record. Raises ``CorruptTransactionRecord``; then the partition must not be served from this table.

        Kafka logs such a record and serves what it has read before it. A decision may be in what it has not read.
        """
        try:
            transactional_id = decode_key(key)
        except UnknownKeyVersion:
            self.passed_over += 1
            return
        if value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = decode_value(transactional_id, value)
