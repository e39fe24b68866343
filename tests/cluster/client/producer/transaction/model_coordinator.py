"""A coordinator of one transactional id as anyone would write it down, with partitions that take what is in it.

Owns what the answers would be, and which writes were committed or aborted together. It keeps no log and has no pending
records: markers are *due* from EndTxn until ``write_markers``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnAnswer,
    TxnRequest,
)
from tests.cluster.client.producer.transaction.txn_bench import E

LAST_EPOCH = 4


@dataclass
class Open:
    """What is part of a transaction; ``writes`` are (partition or group, number of the producer's transaction)."""

    partitions: set = field(default_factory=set)
    groups: set = field(default_factory=set)
    writes: list = field(default_factory=list)


class ModelCoordinator:
    def __init__(self) -> None:
        self.producer_id, self.epoch, self.last_epoch = -1, -1, -1
        self.open: Open | None = None
        #: None while no markers are due and no transaction was ended.
        self.outcome: bool | None = None
        self.are_markers_due = False
        self.ended: list[tuple[bool, list]] = []

    def take(self, request: TxnRequest) -> TxnAnswer:
        if isinstance(request, FindTxnCoordinator):
            return TxnAnswer(node=1)
        if isinstance(request, InitTxnProducerId):
            return self._init(request.identity.producer_id, request.identity.producer_epoch)
        if isinstance(request, CommitTxnOffsets):
            code = self.write(request.identity, request.group.group_id, request.offsets)
            return TxnAnswer(partitions=dict.fromkeys(request.offsets, code))
        code = self._checked(request.identity)
        if code is E.NONE and isinstance(request, AddTxnPartitions):
            self._begin().partitions.update(request.topic_partitions)
        elif code is E.NONE and isinstance(request, AddTxnOffsets):
            self._begin().groups.add(request.group.group_id)
        elif isinstance(request, EndTransaction) and code in (E.NONE, E.CONCURRENT_TRANSACTIONS):
            code = self._end(request.commit)
        return TxnAnswer(code)

    def write(self, identity, where, write) -> E:
        """A batch for a partition, or offsets of a group, which its leader verifies first."""
        if (identity.producer_id, identity.producer_epoch) != (self.producer_id, self.epoch):
            return E.INVALID_PRODUCER_EPOCH
        if self.open is None or where not in self.open.partitions | self.open.groups:
            return E.INVALID_TXN_STATE
        self.open.writes.append(write)
        return E.NONE

    def fence(self) -> None:
        """Another producer comes, or the transaction is too old: what is open is aborted under the next epoch."""
        if self.are_markers_due:
            self.write_markers()
        if self.open is not None:
            self._finish(False)
            self.write_markers()
        self.epoch, self.last_epoch = self.epoch + 1, -1

    def write_markers(self) -> None:
        self.are_markers_due = False

    def _checked(self, identity) -> E:
        if identity.producer_id != self.producer_id:
            return E.INVALID_PRODUCER_ID_MAPPING
        if identity.producer_epoch != self.epoch:
            return E.PRODUCER_FENCED
        return E.CONCURRENT_TRANSACTIONS if self.are_markers_due else E.NONE

    def _begin(self) -> Open:
        if self.open is None:
            self.open = Open()
        return self.open

    def _end(self, commit) -> E:
        if self.open is not None:
            self._finish(commit)
            return E.NONE
        if self.outcome is not commit:
            return E.INVALID_TXN_STATE
        return E.CONCURRENT_TRANSACTIONS if self.are_markers_due else E.NONE

    def _finish(self, commit) -> None:
        self.ended.append((commit, self.open.writes))
        self.open, self.outcome, self.are_markers_due = None, commit, True

    def _init(self, producer_id, epoch) -> TxnAnswer:
        if producer_id not in (-1, self.producer_id):
            return TxnAnswer(E.PRODUCER_FENCED)
        if self.are_markers_due:
            return TxnAnswer(E.CONCURRENT_TRANSACTIONS)
        if self.open is not None:
            self.fence()
            return TxnAnswer(E.CONCURRENT_TRANSACTIONS)
        if epoch not in (-1, self.epoch, self.last_epoch):
            return TxnAnswer(E.PRODUCER_FENCED)
        if epoch in (-1, self.epoch):
            self.outcome = None
            self.last_epoch = self.epoch if epoch >= 0 else -1
            self.epoch += 1
            if self.producer_id < 0 or self.epoch > LAST_EPOCH:
                self.producer_id, self.epoch = self.producer_id + 1, 0
        return TxnAnswer(producer_id=self.producer_id, producer_epoch=self.epoch)
