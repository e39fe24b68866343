"""The transaction coordinator of one broker: an event becomes a ``TxnDecision`` and changes its state.

Owns which partitions it serves, and what begins a transition: a request of a client, or time (Kafka's
TransactionCoordinator and TransactionStateManager; docs/reference/kafka.md "Transaction coordinator"). Does not own how
a transition continues once its effects are reported (``reports``). Pure: it knows no log, socket or clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

from cluster.coordinator.partitioning import partition_for
from cluster.coordinator.transaction import reports
from cluster.coordinator.transaction import request_decisions as requests
from cluster.coordinator.transaction.decisions import (
    AppendRecord,
    DropMarkers,
    TransactionAnswer,
    TransactionMarkers,
    TxnDecision,
    refusal,
)
from cluster.coordinator.transaction.effects import DONE, begin_append, begin_completion
from cluster.coordinator.transaction.expiry import expire_if_idle, make_room
from cluster.coordinator.transaction.ownership import OwnedPartitions
from cluster.coordinator.transaction.request_decisions import TakeProducerId
from cluster.coordinator.transaction.rules import CORRECT, TransactionRules
from cluster.coordinator.transaction.state import (
    NO_PRODUCER_EPOCH,
    ProducerIdAndEpoch,
    TransactionMetadata,
    TransactionState,
    used_from,
)
from cluster.coordinator.transaction.txn_quota import TransactionQuota, check_room, crowds
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

UNLIMITED = TransactionQuota()
CONSUMER_OFFSETS = "__consumer_offsets"

#: The former transaction is being aborted: the client asks again.
_ASK_AGAIN = TransactionAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)


class TransactionCoordinator:
    """``partition_count``: of ``__transaction_state``; the times: the keys of these names."""

    def __init__(
        self,
        partition_count: int,
        max_timeout_ms: int,
        id_expiration_ms: int,
        room: TransactionQuota = UNLIMITED,
        rules: TransactionRules = CORRECT,
    ) -> None:
        self.owned = OwnedPartitions(partition_count)
        self._room = room
        self._rules = rules
        self._max_timeout_ms = max_timeout_ms
        self._id_expiration_ms = id_expiration_ms

    def __repr__(self) -> str:
        return f"TransactionCoordinator({self.owned})"

    # Leadership of the partitions of __transaction_state.

    def elected(self, partition: int, coordinator_epoch: int) -> TxnDecision:
        """This broker leads the partition now. Its records are to be read, then ``loaded`` called."""
        is_new = self.owned.begin_loading(partition, coordinator_epoch)
        return TxnDecision(effects=(DropMarkers(partition),) if is_new else ())

    def loaded(
        self,
        partition: int,
        coordinator_epoch: int,
        transactions: Mapping[str, TransactionMetadata],
        now_ms: int,
        unavailable: Set[str] = frozenset(),
    ) -> TxnDecision:
        """Serve the partition, but for ids of which nothing is known. Transactions whose outcome is decided continue
        with their markers."""
        served = self.owned.finish_loading(partition, coordinator_epoch, dict(transactions), unavailable)
        if served is None:
            return TxnDecision()
        prepared = self._rules.unfinished(served.transactions.values())
        return TxnDecision(effects=tuple(begin_completion(partition, served, each, now_ms) for each in prepared))

    def resigned(self, partition: int, coordinator_epoch: int | None) -> TxnDecision:
        """Another broker leads the partition, in that epoch; None where this broker lost its replica."""
        was_owned = self.owned.leave(partition, coordinator_epoch)
        return TxnDecision(effects=(DropMarkers(partition),) if was_owned else ())

    # Requests of clients.

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        take_producer_id: TakeProducerId,
        now_ms: int,
        client_host: str = "",
    ) -> TxnDecision:
        """InitProducerId with a transactional id; without one any broker answers, and no coordinator is needed."""
        if not transactional_id:
            return refusal(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._max_timeout_ms:
            return refusal(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        partition = self.owned.partition_of(transactional_id)
        served = self.owned.find_of(transactional_id)
        if isinstance(served, ErrorCode):
            return refusal(served)
        metadata = served.transactions.get(transactional_id)
        if metadata is None:
            producer_id = take_producer_id()
            if producer_id is None:
                return refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            metadata = TransactionMetadata(
                transactional_id, producer_id, NO_PRODUCER_EPOCH, timeout_ms, now_ms, client_host=client_host
            )
            if no_room := check_room(self._room, self.owned.taken(), None, metadata):
                return refusal(no_room)
        metadata = used_from(metadata, client_host)
        decided = requests.init_producer_id(metadata, timeout_ms, expected, take_producer_id, now_ms)
        if isinstance(decided, ErrorCode):
            return refusal(decided)
        transit = decided.pending
        if transit is not None and transit.state is TransactionState.EMPTY:
            answer = TransactionAnswer(ErrorCode.NONE, transit.producer_id, transit.producer_epoch)
        else:
            answer = _ASK_AGAIN
        return self._rules.changed(partition, served, decided, answer)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic_partitions: Set[TopicPartition],
        now_ms: int,
        client_host: str = "",
    ) -> TxnDecision:
        """AddPartitionsToTxn, once all partitions are known to exist and the client may write to them."""
        return self._request(
            transactional_id,
            lambda known: requests.add_partitions(known, producer_id, producer_epoch, topic_partitions, now_ms),
            client_host,
        )

    def add_offsets(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        group_id: str,
        offsets_partition_count: int,
        now_ms: int,
        client_host: str = "",
    ) -> TxnDecision:
        """AddOffsetsToTxn: the partition in which the group's offsets are stored is one more of the transaction."""
        added = (CONSUMER_OFFSETS, partition_for(group_id, offsets_partition_count))
        return self.add_partitions(
            transactional_id, producer_id, producer_epoch, frozenset({added}), now_ms, client_host
        )

    def end_txn(
        self, transactional_id: str, producer_id: int, producer_epoch: int, now_ms: int, *, commit: bool
    ) -> TxnDecision:
        """EndTxn. The answer is due when the decision is in the log, before its markers are."""
        return self._request(
            transactional_id,
            lambda known: self._rules.end_txn(known, producer_id, producer_epoch, now_ms, commit=commit),
        )

    def _request(
        self,
        transactional_id: str,
        decide: Callable[[TransactionMetadata | None], TransactionMetadata | ErrorCode],
        client_host: str = "",
    ) -> TxnDecision:
        if not transactional_id:
            return refusal(ErrorCode.INVALID_REQUEST)
        partition = self.owned.partition_of(transactional_id)
        served = self.owned.find_of(transactional_id)
        if isinstance(served, ErrorCode):
            return refusal(served)
        before = served.transactions.get(transactional_id)
        decided = decide(None if before is None else used_from(before, client_host))
        if isinstance(decided, ErrorCode):
            return refusal(decided)
        if no_room := check_room(self._room, self.owned.taken(), before, decided):
            return refusal(no_room)
        return self._rules.changed(partition, served, decided, DONE)

    # Time.

    def abort_timed_out(self, ids: Iterable[tuple[int, str]], now_ms: int) -> TxnDecision:
        """Begin to abort the transactions that are open too long. ``ids``: some of ``owned.all_ids``, as they were."""
        return self._due(ids, lambda metadata: self._rules.abort_if_timed_out(metadata, now_ms))

    def expire_idle(self, ids: Iterable[tuple[int, str]], now_ms: int, idle_ms: int | None = None) -> TxnDecision:
        """Begin to forget the ids that have been without a transaction for ``idle_ms``; None: for the time after which
        they are to be forgotten in any case."""
        least_ms = self._id_expiration_ms if idle_ms is None else idle_ms
        return self._due(ids, lambda metadata: expire_if_idle(metadata, least_ms, now_ms))

    def make_room(
        self, ids: Iterable[tuple[int, str]], now_ms: int, idle_ms: int, hosts: Set[str], *, only_unused: bool
    ) -> TxnDecision:
        """The same for ids that make room for others of ``hosts``. If all of these are crowds, which have more than a
        little, only ids of crowds do. ``only_unused``: those that never had a transaction."""
        of_crowds = crowds(self._room, self.owned.taken())
        of_hosts = of_crowds if hosts <= of_crowds else None
        return self._due(ids, lambda metadata: make_room(metadata, idle_ms, now_ms, of_hosts, only_unused=only_unused))

    def _due(
        self, ids: Iterable[tuple[int, str]], decide: Callable[[TransactionMetadata], TransactionMetadata | None]
    ) -> TxnDecision:
        appends = []
        for partition, transactional_id in ids:
            served = self.owned.served.get(partition)
            metadata = None if served is None else served.transactions.get(transactional_id)
            if served is None or metadata is None:
                continue
            decided = decide(metadata)
            if decided is not None:
                appends.append(begin_append(partition, served, decided, DONE))
        return TxnDecision(effects=tuple(appends))

    # What the shell reports (``reports``).

    def appended(self, append: AppendRecord, error_code: ErrorCode, now_ms: int) -> TxnDecision:
        """The record is in the log of every replica in sync, or the append failed. The answer is the request's."""
        return reports.appended(self.owned, append, error_code, now_ms)

    def markers_answered(
        self, markers: TransactionMarkers, errors: Mapping[TopicPartition, ErrorCode] | None
    ) -> TxnDecision:
        """What the leaders said about the markers that were sent to them; None if the connection was lost."""
        return reports.markers_answered(self.owned, markers, errors)

    def markers_gone(self, markers: TransactionMarkers) -> TxnDecision:
        """Their partitions do not exist anymore: no one reads them, and none of them is waited for."""
        return self.markers_answered(markers, dict.fromkeys(markers.topic_partitions, ErrorCode.NONE))
