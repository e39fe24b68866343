"""The broker's own coordinator behind the face of ``ModelCoordinator``: records are stored at once, markers on demand.

Owns the carrying out of its decisions, and which writes ended together. The id begins with an epoch that is nearly used
up.
"""

from __future__ import annotations

from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnAnswer,
    TxnRequest,
)
from cluster.coordinator.transaction.decisions import AppendRecord, SendMarkers, TxnDecision
from cluster.coordinator.transaction.state import ProducerIdAndEpoch
from tests.cluster.client.producer.transaction.model_coordinator import Open
from tests.cluster.client.producer.transaction.txn_bench import ID, TIMEOUT_MS, E
from tests.cluster.coordinator.transaction.situations import NOW, Bench, S, metadata_in

OFFSETS_PARTITIONS = 1
OFFSETS_OF_GROUP = ("__consumer_offsets", 0)


class BrokerCoordinator:
    def __init__(self) -> None:
        self.bench = Bench(metadata_in(S.EMPTY, producer_epoch=32_762))
        self.writes: list = []
        self.due: list[SendMarkers] = []
        self.ended: list[tuple[bool, list]] = []

    @property
    def known(self):
        return self.bench.known[ID]

    @property
    def producer_id(self) -> int:
        return self.known.producer_id

    @property
    def epoch(self) -> int:
        return self.known.producer_epoch

    @property
    def open(self) -> Open | None:
        if self.known.state is not S.ONGOING:
            return None
        return Open(set(self.known.topic_partitions), set(), self.writes)

    def take(self, request: TxnRequest) -> TxnAnswer:
        if isinstance(request, FindTxnCoordinator):
            return TxnAnswer(node=1)
        producer = request.identity[1:]
        coordinator = self.bench.coordinator
        if isinstance(request, CommitTxnOffsets):
            code = self.write(request.identity, OFFSETS_OF_GROUP, request.offsets)
            return TxnAnswer(partitions=dict.fromkeys(request.offsets, code))
        if isinstance(request, InitTxnProducerId):
            return self.run(self.bench.init(ProducerIdAndEpoch(*producer) if request.is_epoch_bump else None))
        if isinstance(request, AddTxnPartitions):
            return self.run(coordinator.add_partitions(ID, *producer, frozenset(request.topic_partitions), NOW))
        if isinstance(request, AddTxnOffsets):
            return self.run(coordinator.add_offsets(ID, *producer, request.group.group_id, OFFSETS_PARTITIONS, NOW))
        return self.run(coordinator.end_txn(ID, *producer, NOW, commit=request.commit))

    def write(self, identity, where, write) -> E:
        if (identity.producer_id, identity.producer_epoch) != (self.producer_id, self.epoch):
            return E.INVALID_PRODUCER_EPOCH
        if self.open is None or where not in self.open.partitions:
            return E.INVALID_TXN_STATE
        self.writes.append(write)
        return E.NONE

    def fence(self) -> None:
        """The transaction is too old, or another producer comes."""
        self.write_markers()
        if self.known.state is S.ONGOING:
            late_ms = NOW + 2 * TIMEOUT_MS
            self.run(self.bench.coordinator.abort_timed_out(self.bench.coordinator.owned.all_ids(), late_ms))
        else:
            self.run(self.bench.init())

    def write_markers(self) -> None:
        while self.due:
            markers = self.due.pop().markers
            answers = dict.fromkeys(markers.topic_partitions, E.NONE)
            self.run(self.bench.coordinator.markers_answered(markers, answers))

    def run(self, decision: TxnDecision) -> TxnAnswer:
        """Its records are stored; the answer, from the decision or from the first record."""
        answer = decision.answer
        for effect in decision.effects:
            if isinstance(effect, AppendRecord):
                appended = self.bench.coordinator.appended(effect, E.NONE, NOW)
                answer = answer or appended.answer
                self.run(TxnDecision(effects=appended.effects))
            elif isinstance(effect, SendMarkers):
                self.ended.append((effect.markers.commit, self.writes))
                self.writes = []
                self.due.append(effect)
        if answer is None:
            return TxnAnswer()
        return TxnAnswer(answer.error_code, -1, answer.producer_id, answer.producer_epoch)
