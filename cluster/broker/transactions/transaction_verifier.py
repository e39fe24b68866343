"""TransactionVerifier: asks the coordinator of a transaction whether partitions are in it, before records are written.

Owns for what it is asked, whom, and what its answer means for a producer and for a group's offsets (KIP-890, its first
part). Does not own when a batch needs it (``replicas.verified``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.broker.metadata_cache import MetadataCache
from cluster.broker.metrics import Counters
from cluster.broker.pauses import Shares
from cluster.broker.replicas.ordered_appends import MayWrite
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.verified import NOT_ASKED, Verified, is_open, is_to_be_verified
from cluster.broker.transactions.marker_links import MarkerLinks
from cluster.broker.transactions.transaction_service import TransactionService
from cluster.coordinator.transaction.describing import verify_partitions
from cluster.log.sequence import ProducerEntry
from cluster.metadata.store import StoreError
from cluster.protocol.batch import TRANSACTIONAL_BIT, parse_header
from cluster.protocol.errors import CorruptBatch, ErrorCode
from cluster.protocol.produce import ProducePartition
from cluster.seams.units import seconds_of_ms
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: Told to a client as they are. Any other code has it try again, except those in ``_RENAMED``.
_FINAL = frozenset(
    {ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE}
)
#: Told under the names that the served versions of Produce and TxnOffsetCommit know.
_RENAMED = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_ABORTABLE: ErrorCode.INVALID_TXN_STATE,
}


class ToVerify(NamedTuple):
    """A partition that a producer has no open transaction in, and what its log knows of the producer."""

    key: TopicPartition
    producer_id: int
    producer_epoch: int
    entry: ProducerEntry | None


class TransactionVerifier:
    """Of one broker. ``is_enabled``: ``transaction.partition.verification.enable``. ``timeout_ms``: for how long a
    producer may have to wait for an answer."""

    def __init__(
        self,
        broker_id: int,
        replicas: Mapping[TopicPartition, Replica],
        metadata: MetadataCache,
        transactions: TransactionService,
        links: MarkerLinks,
        shares: Shares,
        counters: Counters,
        *,
        timeout_ms: int,
        is_enabled: bool,
    ) -> None:
        self._timeout_s = seconds_of_ms(timeout_ms)
        self.shares = shares
        self._broker_id = broker_id
        self._replicas = replicas
        self._metadata = metadata
        self._transactions = transactions
        self._links = links
        self._counters = counters
        self.is_enabled = is_enabled

    def __repr__(self) -> str:
        return f"<TransactionVerifier of broker {self._broker_id}>"

    def unverified(self, partitions: Iterable[ProducePartition]) -> list[ToVerify]:
        """Those of a produce request about which the coordinator is to be asked. What is wrong is found later."""
        return [found for each in partitions if (found := self._look(each)) is not None] if self.is_enabled else []

    def _look(self, wanted: ProducePartition) -> ToVerify | None:
        topic, number, records = wanted
        replica = self._replicas.get((topic, number))
        if replica is None or replica.leader is None or records is None:
            return None
        try:
            header = parse_header(records)
        except CorruptBatch:
            return None
        is_transactional = header.attributes & TRANSACTIONAL_BIT and header.producer_id >= 0
        if not is_transactional or not is_to_be_verified(replica.log, header):
            return None
        entry = replica.log.producers.get(header.producer_id)
        return ToVerify((topic, number), header.producer_id, header.producer_epoch, entry)

    async def verify(self, transactional_id: str, asked: Collection[ToVerify]) -> Verified:
        """What the coordinator says, in the codes of Produce."""
        if not asked:
            return NOT_ASKED
        keys = [each.key for each in asked]
        producers = {(each.producer_id, each.producer_epoch) for each in asked}
        if len(producers) > 1:
            return Verified(dict.fromkeys(keys, ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        found = await self._ask(transactional_id, *producers.pop(), frozenset(keys))
        errors = {
            key: _told(found.get(key, ErrorCode.UNKNOWN_SERVER_ERROR), ErrorCode.NOT_ENOUGH_REPLICAS) for key in keys
        }
        return Verified(errors, {each.key: each.entry for each in asked})

    async def verify_offsets(
        self, transactional_id: str, producer_id: int, producer_epoch: int, key: TopicPartition
    ) -> tuple[ErrorCode, MayWrite]:
        """Whether offsets may be written to a partition of ``__consumer_offsets``, in the codes of TxnOffsetCommit; and
        what to ask right before they are."""
        replica = self._replicas.get(key)
        if not self.is_enabled or replica is None:
            return ErrorCode.NONE, lambda: True
        log = replica.log
        entry = log.producers.get(producer_id)

        def may_write() -> bool:
            return is_open(log, producer_id, producer_epoch) or log.producers.get(producer_id) is entry

        if is_open(log, producer_id, producer_epoch):
            # A marker that comes meanwhile changes the entry, which is then no longer open either.
            return ErrorCode.NONE, may_write
        found = await self._ask(transactional_id, producer_id, producer_epoch, frozenset({key}))
        code = found.get(key, ErrorCode.UNKNOWN_SERVER_ERROR)
        return _told(code, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), may_write

    async def _ask(
        self, transactional_id: str, producer_id: int, producer_epoch: int, keys: frozenset[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        counters = self._counters
        began_ns = counters.now_ns()
        found = await self._answered(transactional_id, producer_id, producer_epoch, keys)
        counters.coordinators.verified(counters.now_ns() - began_ns, found.values())
        return found

    async def _answered(
        self, transactional_id: str, producer_id: int, producer_epoch: int, keys: frozenset[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        number = self._transactions.partition_of(transactional_id)
        found = self._metadata.partition(TRANSACTIONS_TOPIC, number)
        if found is None or found.leader < 0:
            return dict.fromkeys(keys, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if found.leader == self._broker_id:
            owned = self._transactions.coordinator.owned
            return verify_partitions(owned, transactional_id, producer_id, producer_epoch, keys)
        try:
            # Also those that wait behind others for a connection to a broker that does not answer.
            async with asyncio.timeout(self._timeout_s):
                return await self._links.verify(found.leader, transactional_id, producer_id, producer_epoch, keys)
        except (OSError, StoreError) as error:
            logger.info("broker %d cannot be asked about a transaction: %r", found.leader, error)
            return dict.fromkeys(keys, ErrorCode.NETWORK_EXCEPTION)


def _told(error_code: ErrorCode, again: ErrorCode) -> ErrorCode:
    """``again`` has the client ask again."""
    if error_code is ErrorCode.NONE or error_code in _FINAL:
        return error_code
    return _RENAMED.get(error_code, again)
