"""Which partitions of ``__transaction_state`` this broker coordinates, in which epoch, and what is known in each.

Owns loading, serving and leaving, and the error codes of a request that comes at the wrong time. The coordinator epoch
of a partition is its leader epoch: what was begun in one is never completed in another. Does not own a transaction's
state (``state.py``), how records become one (``loading.py``), nor whether there is room for more (``txn_quota.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from cluster.coordinator.partitioning import partition_for
from cluster.coordinator.transaction.state import TransactionMetadata
from cluster.coordinator.transaction.txn_quota import Taken
from cluster.protocol.errors import ErrorCode


class ServedPartition:
    """A partition whose records are all known. ``transactions`` are by transactional id, to be changed by ``put`` and
    ``remove`` alone; ``taken`` is what they take. ``unavailable`` are ids whose record cannot be read."""

    __slots__ = ("_transactions", "coordinator_epoch", "taken", "unavailable")

    def __init__(
        self, coordinator_epoch: int, transactions: dict[str, TransactionMetadata], unavailable: Set[str] = frozenset()
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.unavailable = unavailable
        self._transactions = transactions
        self.taken = Taken()
        for metadata in transactions.values():
            self.taken.change(None, metadata)

    def __repr__(self) -> str:
        return f"ServedPartition(epoch {self.coordinator_epoch}, {len(self.transactions)} transactional ids)"

    @property
    def transactions(self) -> Mapping[str, TransactionMetadata]:
        return self._transactions

    def all(self) -> list[TransactionMetadata]:
        """All that is known at this moment, for any thread."""
        return list(self._transactions.values())

    def put(self, metadata: TransactionMetadata) -> None:
        """Take what is known now."""
        self.taken.change(self._transactions.get(metadata.transactional_id), metadata)
        self._transactions[metadata.transactional_id] = metadata

    def remove(self, transactional_id: str) -> None:
        self.taken.change(self._transactions.pop(transactional_id), None)


class OwnedPartitions:
    """The partitions that this broker leads: ``served``, or ``loading`` (by partition, in which epoch)."""

    def __init__(self, partition_count: int) -> None:
        self.partition_count = partition_count
        self.served: dict[int, ServedPartition] = {}
        self.loading: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"OwnedPartitions({self.served}, loading {self.loading})"

    def taken(self) -> list[Taken]:
        """What the ids of each partition take that is served."""
        return [each.taken for each in self.served.values()]

    def all_ids(self) -> list[tuple[int, str]]:
        """(partition, transactional id) of all that is served now."""
        return [(partition, each) for partition, served in self.served.items() for each in served.transactions]

    def partition_of(self, transactional_id: str) -> int:
        return partition_for(transactional_id, self.partition_count)

    def find(self, partition: int) -> ServedPartition | ErrorCode:
        """The partition if it is served, or what to tell a client."""
        if partition in self.loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self.served.get(partition, ErrorCode.NOT_COORDINATOR)

    def find_of(self, transactional_id: str) -> ServedPartition | ErrorCode:
        """The partition of an id if the id is served, or what to tell a client."""
        found = self.find(self.partition_of(transactional_id))
        if isinstance(found, ServedPartition) and transactional_id in found.unavailable:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return found

    def find_in_epoch(self, partition: int, coordinator_epoch: int) -> ServedPartition | ErrorCode:
        """The partition if it is served in that very epoch, else what to tell a client that was served in it."""
        found = self.find(partition)
        if isinstance(found, ServedPartition) and found.coordinator_epoch != coordinator_epoch:
            return ErrorCode.NOT_COORDINATOR
        return found

    def begin_loading(self, partition: int, coordinator_epoch: int) -> bool:
        """Forget what is known of the partition and await its records. False for an epoch that is not a new one."""
        if coordinator_epoch <= self._epoch(partition):
            return False
        self.served.pop(partition, None)
        self.loading[partition] = coordinator_epoch
        return True

    def finish_loading(
        self,
        partition: int,
        coordinator_epoch: int,
        transactions: dict[str, TransactionMetadata],
        unavailable: Set[str],
    ) -> ServedPartition | None:
        """Serve the partition, if it is still to be loaded in that epoch; else None, and the load was for nothing."""
        if self.loading.get(partition) != coordinator_epoch:
            return None
        del self.loading[partition]
        self.served[partition] = ServedPartition(coordinator_epoch, transactions, unavailable)
        return self.served[partition]

    def leave(self, partition: int, coordinator_epoch: int | None) -> bool:
        """Forget the partition, unless it was entered in a later epoch than that. None: in whatever epoch."""
        if coordinator_epoch is not None and coordinator_epoch < self._epoch(partition):
            return False
        was_served = self.served.pop(partition, None) is not None
        return self.loading.pop(partition, None) is not None or was_served

    def _epoch(self, partition: int) -> int:
        served = self.served.get(partition)
        return self.loading.get(partition, -1) if served is None else served.coordinator_epoch
