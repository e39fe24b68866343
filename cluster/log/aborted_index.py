"""AbortedIndex: the aborted transactions of one segment, in memory and in its ``.txnindex`` (Kafka's TransactionIndex).

Owns the file, which is made when a transaction is aborted for the first time, and which entries a reader is told about.
Does not own the bytes of an entry (``aborted_transactions.py``) or when a transaction is aborted (``producers.py``).

The file is written with each entry and synced with the segment, so what is below the recovery point is whole. Above it
a start rebuilds the file from the batches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from posixpath import dirname

from cluster.log.aborted_transactions import (
    ABORTED_TRANSACTION_BYTES,
    AbortedTransaction,
    aborted_transaction_at,
    aborted_transactions_bytes,
    parse_aborted_transactions,
)
from cluster.seams.storage import File, Storage


class AbortedIndex:
    """Entries in the order of their markers. ``path`` is that of the file, if there is one."""

    __slots__ = ("_data", "_storage", "file", "path")

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self.path = path
        #: Open once it was written to, so that it is synced with the segment.
        self.file: File | None = None
        #: The bytes of the file.
        self._data = bytearray()

    def __repr__(self) -> str:
        return f"AbortedIndex({self.path}, {len(self)} transactions)"

    def __len__(self) -> int:
        return len(self._data) // ABORTED_TRANSACTION_BYTES

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return (aborted_transaction_at(self._data, number) for number in range(len(self)))

    @property
    def has_file(self) -> bool:
        return self.file is not None or bool(self._data)

    def to_bytes(self) -> bytes:
        return bytes(self._data)

    def read(self) -> bytes:
        """The file as it is stored; nothing if there is none. Raises ``OSError``."""
        try:
            return self._storage.read(self.path)
        except FileNotFoundError:
            return b""

    def load(self, data: bytes) -> None:
        """Take the entries of a file that was synced. Raises ``CheckpointError``."""
        parse_aborted_transactions(data)
        self._data = bytearray(data)

    def add(self, entry: AbortedTransaction) -> None:
        """Take an entry that a batch tells; ``store`` must follow."""
        self._data += aborted_transactions_bytes([entry])

    def store(self) -> None:
        """Make the file what the batches have told. Raises ``OSError``.

        Synced at once if it was anything else: the segment may count as synced already.
        """
        stored = self.read()
        if not (stored or self._data):
            return
        file = self._open()
        if stored != self._data:
            file.truncate(0)
            file.append(self._data)
            file.fsync()
            self._storage.sync_directory(dirname(self.path))

    def append(self, entries: Iterable[AbortedTransaction]) -> bool:
        """Write new entries; whether this made the file. Raises ``OSError``: then they are not taken."""
        data = aborted_transactions_bytes(entries)
        is_new = not self.has_file
        if data:
            file = self._open()
            if file.size_bytes > len(self._data):  # of a write that failed
                file.truncate(len(self._data))
            file.append(data)
            self._data += data
        return is_new and bool(data)

    def truncate(self, next_offset: int) -> None:
        """Forget transactions whose marker is at ``next_offset`` or above. Raises ``OSError``."""
        size = self._first_from(next_offset) * ABORTED_TRANSACTION_BYTES
        if size < len(self._data):
            self._open().truncate(size)
            del self._data[size:]

    def search(self, fetch_offset: int, upper_bound_offset: int) -> tuple[list[tuple[int, int]], bool]:
        """(producer id, first offset) of each transaction with records in the range; and whether those in later
        segments all begin above it."""
        found = []
        for number in range(self._first_from(fetch_offset), len(self)):
            entry = aborted_transaction_at(self._data, number)
            if entry.first_offset < upper_bound_offset:
                found.append((entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= upper_bound_offset:
                return found, True
        return found, False

    def close(self) -> None:
        if self.file is not None:
            self.file.close()

    def _first_from(self, offset: int) -> int:
        """The number of the first entry whose marker is at ``offset`` or above."""
        markers = range(len(self))
        return bisect_left(markers, offset, key=lambda number: aborted_transaction_at(self._data, number).last_offset)

    def _open(self) -> File:
        if self.file is None:
            self.file = self._storage.open(self.path, keep=True)
        return self.file
