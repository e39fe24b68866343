"""TransactionService: the transaction coordinator as the rest of a broker sees it.

Owns the way from a request to its answer, which partitions of ``__transaction_state`` are taken over and given back,
and the looks for what time alone makes due. Does not own any decision (``TransactionCoordinator``), how one is carried
out (``TransactionEffects``), nor layouts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set

from cluster.broker.checkpoints import Blocking
from cluster.broker.coordinator_counters import TRANSACTION
from cluster.broker.coordinator_loading import tell_loaded, tell_unreadable
from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.broker.pauses import Pauses, Shares
from cluster.broker.portions import Beside, chunks
from cluster.broker.replicas.ordered_appends import OrderedAppends
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.broker.timers import Timers
from cluster.broker.transactions.idle_id_eviction import IdleIdEviction
from cluster.broker.transactions.marker_sending import Gone, MarkersAnswered, MarkerSender
from cluster.broker.transactions.transaction_effects import TransactionEffects, TransactionWaiter
from cluster.broker.transactions.transaction_reading import read_transactions
from cluster.config.broker import BrokerConfig
from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.decisions import (
    TransactionAnswer,
    TxnDecision,
)
from cluster.coordinator.transaction.request_decisions import TakeProducerId
from cluster.coordinator.transaction.state import ProducerIdAndEpoch
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition

#: Transactional ids of which one decision is made, of those that concern all.
IDS_AT_ONCE = 100
#: What makes a decision at a time.
Decide = Callable[[int], TxnDecision]


class TransactionService:
    """Of one broker. ``make_sender`` is called once, with who learns of the markers; ``take_producer_id`` raises
    ``NoProducerIds`` once this broker's block is used up."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        config: BrokerConfig,
        replicas: ReplicaManager,
        make_sender: Callable[[MarkersAnswered, Gone], MarkerSender],
        take_producer_id: TakeProducerId,
        clock: Clock,
        blocking: Blocking,
        shares: Shares,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.coordinator = coordinator
        self._config = config
        self._replicas = replicas
        self._counters = replicas.counters
        self._take_producer_id = take_producer_id
        self._clock = clock
        self._beside = Beside(blocking)
        self._shares = shares
        appends = OrderedAppends(replicas.own_writes, clock, config["request.timeout.ms"], shares)
        self._effects = TransactionEffects(coordinator, appends, make_sender, replicas.counters, clock)
        self._waiting: set[TransactionWaiter] = set()
        self._loading: dict[int, asyncio.Task[None]] = {}
        self._eviction = IdleIdEviction(coordinator, self._each)
        self._periodic = Timers(replicas.storage_failed)

    def __repr__(self) -> str:
        return f"<TransactionService {self.coordinator!r}>"

    def start(self) -> None:
        """Begin to look for what is due."""
        every = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        seldom = "transaction.remove.expired.transaction.cleanup.interval.ms"
        self._periodic.start([(self._config[every], self.abort_timed_out), (self._config[seldom], self.expire)])

    async def stop(self) -> None:
        """Coordinate nothing: those that wait look for another broker."""
        await self._periodic.stop()
        self._eviction.stop()
        owned = self.coordinator.owned
        for partition in [*owned.served, *owned.loading]:
            self._resign(partition)
        self._effects.cancel_retries()
        for waiter in list(self._waiting):
            if not waiter.done():
                waiter.set_result(TransactionAnswer(ErrorCode.NOT_COORDINATOR))
        await self._effects.close()

    def partition_of(self, transactional_id: str) -> int:
        """The partition of ``__transaction_state`` whose leader coordinates an id."""
        return self.coordinator.owned.partition_of(transactional_id)

    def wall_ms(self) -> int:
        """The time by which transactions are judged."""
        return self._clock.wall_ms()

    def queue_sizes(self) -> dict[str, int]:
        """Transactions by what their end waits for: markers, or another try of their record. For any thread."""
        return self._effects.queue_sizes()

    # requests

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None, client_host: str
    ) -> TransactionAnswer:
        """Raises ``NoProducerIds``."""
        answer = await self._ask(
            lambda now_ms: self.coordinator.init_producer_id(
                transactional_id, timeout_ms, expected, self._take_producer_id, now_ms, client_host
            )
        )
        if answer.error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED:
            self._eviction.room_refused(client_host)
        return answer

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic_partitions: Set[TopicPartition],
        client_host: str,
    ) -> ErrorCode:
        answer = await self._ask(
            lambda now_ms: self.coordinator.add_partitions(
                transactional_id, producer_id, producer_epoch, topic_partitions, now_ms, client_host
            )
        )
        return answer.error_code

    async def add_offsets(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        group_id: str,
        partition_count: int,
        client_host: str,
    ) -> ErrorCode:
        """``partition_count``: how many partitions ``__consumer_offsets`` has."""
        answer = await self._ask(
            lambda now_ms: self.coordinator.add_offsets(
                transactional_id, producer_id, producer_epoch, group_id, partition_count, now_ms, client_host
            )
        )
        return answer.error_code

    async def end_txn(self, transactional_id: str, producer_id: int, producer_epoch: int, *, commit: bool) -> ErrorCode:
        answer = await self._ask(
            lambda now_ms: self.coordinator.end_txn(
                transactional_id, producer_id, producer_epoch, now_ms, commit=commit
            )
        )
        return answer.error_code

    async def _ask(self, decide: Decide) -> TransactionAnswer:
        await self._shares.fresh()
        waiter: TransactionWaiter = self._loop.create_future()
        self._waiting.add(waiter)
        try:
            self._effects.carry_out(decide(self._clock.wall_ms()), waiter)
            return await waiter
        finally:
            self._waiting.discard(waiter)

    # what happens besides

    def role_taken(self, replica: Replica) -> None:
        """A replica of this broker leads, follows or stops: of ``__transaction_state`` that moves transactions."""
        if replica.topic != TRANSACTIONS_TOPIC:
            return
        if replica.leader is None:
            self._resign(replica.partition)
            return
        self._effects.carry_out(elected := self.coordinator.elected(replica.partition, replica.leader_epoch))
        if elected.effects:
            self._stop_loading(replica.partition)
            # The end of the log is that of now: this broker appends nothing before it is read.
            self._loading[replica.partition] = self._loop.create_task(self._load(replica, replica.leader_epoch))

    def _resign(self, partition: int) -> None:
        self._stop_loading(partition)
        self._effects.carry_out(self.coordinator.resigned(partition, None))

    def _stop_loading(self, partition: int) -> None:
        loading = self._loading.pop(partition, None)
        if loading is not None:
            loading.cancel()

    async def _load(self, replica: Replica, epoch: int) -> None:
        partition = replica.partition
        began_ns = self._clock.monotonic_ns()

        def is_wanted() -> bool:
            return self.coordinator.owned.loading.get(partition) == epoch

        chunk_bytes = self._config["transaction.state.log.load.buffer.size"]
        storage_failed = self._replicas.storage_failed
        table = await read_transactions(replica.log, self._beside, chunk_bytes, is_wanted, storage_failed)
        if table is None:
            return
        tell_unreadable(replica.log, table.unreadable, self._counters)
        self._loading.pop(partition, None)
        found = table.transactions
        lacking = frozenset(table.unavailable)
        self._effects.carry_out(self.coordinator.loaded(partition, epoch, found, self._clock.wall_ms(), lacking))
        tell_loaded(replica.log, TRANSACTION, len(found), self._clock.monotonic_ns() - began_ns, self._counters)

    async def abort_timed_out(self) -> None:
        """Abort the transactions that are open too long."""
        await self._each(self.coordinator.abort_timed_out)

    async def expire(self) -> None:
        """Forget the ids that no one has used for long."""
        await self._each(self.coordinator.expire_idle)

    async def _each(self, decide: Callable[[list[tuple[int, str]], int], TxnDecision]) -> int:
        """Decide on all ids, a few at a time. Returns the number of effects."""
        pause = Pauses(self._shares)
        count = 0
        for ids in chunks(self.coordinator.owned.all_ids(), IDS_AT_ONCE):
            decision = decide(ids, self._clock.wall_ms())
            count += len(decision.effects)
            self._effects.carry_out(decision)
            await pause()
        return count
