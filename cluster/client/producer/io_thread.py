"""The producer's I/O: turns of the sender, what they ask for, and what the network says.

Owns one turn, and the end after the last; whose turn it is when, mostly a thread's, is the ``Runner``'s. Does not own
decisions (``sender.py``), requests (``producer_requests.py``), connections and their deadlines
(``cluster.client.network``), nor metadata (``cluster.client.metadata_updater``). Everything but the sender's
turn happens without the lock of ``ProducerShared``, for callbacks run here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cluster.client.exchange import Polled
from cluster.client.missing_topics import MissingTopics
from cluster.client.producer.actions import (
    Action,
    AskProducerId,
    BatchSplit,
    CompleteBatch,
    Connect,
    FailBatch,
    RefreshMetadata,
    SendProduce,
    WakeAt,
)
from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.delivery import FatalProducerError, RetriedBatch
from cluster.client.producer.metrics import ProducerMetrics
from cluster.client.producer.producer_requests import ProducerRequests
from cluster.client.producer.shared_state import ProducerShared
from cluster.client.producer.transaction.txn_actions import FinishTxnCall
from cluster.client.producer.transaction_requests import TransactionRequests
from cluster.client.wiring import ClientIo
from cluster.protocol.errors import ErrorCode
from cluster.seams.runner import Runner

logger = logging.getLogger(__name__)

#: Told of every batch that is sent again, before what becomes of it; in the producer's own thread.
OnRetry = Callable[[RetriedBatch], object]


class ProducerIo:
    """Started once. ``wakeup`` and ``is_current_thread`` may be called from any thread."""

    def __init__(
        self,
        shared: ProducerShared,
        io: ClientIo,
        metrics: ProducerMetrics,
        runner: Runner,
        on_retry: OnRetry | None = None,
    ) -> None:
        self._shared = shared
        self._on_retry = on_retry
        self._io = io
        self._metrics = metrics
        manager = shared.transactions
        self._transactions = None if manager is None else TransactionRequests(manager, io)
        self._requests = ProducerRequests(shared, io, metrics, self._transactions)
        self._polled = Polled([], [], [])
        self._missing = MissingTopics()
        self._looked_version = 0
        self._runner = runner

    def __repr__(self) -> str:
        return f"ProducerIo({self._runner!r}, {self._requests!r})"

    def start(self) -> None:
        self._runner.start(self._step)

    def wakeup(self) -> None:
        """There may be something to do. From any thread."""
        self._io.network.wakeup()

    def join(self, timeout_s: float | None) -> bool:
        """Wait for the end. False if time ran out."""
        return self._runner.join(timeout_s)

    def check_alive(self) -> None:
        """Raises ``RuntimeError`` in a process that was forked off, where no thread does this."""
        if self.has_ended and not self._shared.is_closing:
            raise RuntimeError("a producer does not survive fork(): create a new one in the child process")

    @property
    def has_ended(self) -> bool:
        """Whether no turn comes anymore: after the last, and in a process that was forked off."""
        return self._runner.has_ended

    @property
    def is_current_thread(self) -> bool:
        """Whether this is called from a callback, or otherwise keeps the next turn from coming: waiting is
        pointless."""
        return self._runner.is_current

    def _step(self) -> bool:
        """A turn, and what is to be done after the last, however that ended; False then."""
        is_last = True
        try:
            is_last = not self._turn()
        except BaseException as error:
            logger.exception("the producer's thread failed")
            self._give_up(error)
        finally:
            if is_last:
                self._io.network.close()
        return not is_last

    def _turn(self) -> bool:
        """One turn; False after the last."""
        shared, metadata = self._shared, self._io.metadata
        self._metrics.turn_total += 1
        with shared.lock:
            now_ms = shared.clock.monotonic_ms()
            self._requests.tell(self._polled, now_ms)
            shared.publish(metadata.view, metadata.version)
            if shared.abort_error is not None:
                shared.core.abort(shared.abort_error)
            actions = shared.core.tick(now_ms)
            retried, shared.core.retried = shared.core.retried, []
            shared.finishing = [each.batch for each in actions if isinstance(each, CompleteBatch | FailBatch)]
            used, wanted = shared.take_requests()
            is_over = shared.is_closing and shared.accumulator.is_empty
        for topic, used_ms in used.items():
            metadata.use(topic, used_ms)
        for topic, _partition in wanted:
            metadata.use(topic, now_ms)
            metadata.request_update_for(topic)
        if wanted or metadata.version != self._looked_version:
            self._looked_version = metadata.version
            self._missing.look(metadata.view, [*wanted, *((topic, 0) for topic in metadata.topics)])
        for batch, error_code in retried:
            self._tell_retried(batch, error_code)
        wake_at_ms = self._carry_out(actions, now_ms)
        if is_over:
            return False
        # Callbacks may have taken their time.
        sending_ms = shared.clock.monotonic_ms()
        delays = [self._requests.send(sending_ms), self._io.updater.maybe_update(sending_ms)]
        if wake_at_ms is not None:
            delays.append(wake_at_ms - now_ms)
        polled = self._io.network.poll(min([each for each in delays if each is not None], default=None))
        self._polled = Polled(self._io.updater.absorb(polled), polled.ready, polled.lost)
        return True

    def _tell_retried(self, batch: ProducerBatch, error_code: ErrorCode) -> None:
        if self._on_retry is None:
            return
        wanted = tuple(on_delivery for _future, on_delivery in batch.delivery.wanted)
        try:
            self._on_retry(RetriedBatch(batch.topic, batch.partition, error_code, wanted))
        except Exception:
            logger.exception("the callback for a batch that is sent again failed")

    def _carry_out(self, actions: list[Action], now_ms: int) -> int | None:
        """What one turn wants done; returns when the next is due."""
        wake_at_ms = None
        free_bytes = 0
        for action in actions:
            if isinstance(action, SendProduce):
                self._requests.produce(action)
            elif isinstance(action, CompleteBatch):
                action.batch.complete(action.base_offset, action.log_append_time_ms)
                free_bytes += action.batch.memory_bytes
            elif isinstance(action, FailBatch):
                self._metrics.error_total += action.batch.record_count
                action.batch.fail(action.error, action.record_errors)
                free_bytes += action.batch.memory_bytes
            elif isinstance(action, WakeAt):
                wake_at_ms = action.at_ms
            elif isinstance(action, Connect):
                self._requests.connect(action.node)
            elif isinstance(action, AskProducerId):
                self._requests.ask_producer_id(action.node)
            elif isinstance(action, RefreshMetadata):
                self._refresh(action.topics, now_ms)
            elif isinstance(action, BatchSplit):
                self._metrics.split_total += 1
                with self._shared.lock:
                    batch = action.batch
                    self._shared.ratios.reset(batch.topic, batch.codec, batch.compression_ratio)
            elif isinstance(action, FinishTxnCall):
                with self._shared.lock:
                    self._shared.changed.notify_all()
            elif self._transactions is not None:
                self._transactions.ask(action)
        if free_bytes:
            # At once: each release may wake a thread that sends.
            self._shared.pool.release(free_bytes)
        return wake_at_ms

    def _refresh(self, topics: tuple[str, ...], now_ms: int) -> None:
        metadata = self._io.metadata
        if not topics:
            metadata.request_update()
        for topic in topics:
            metadata.use(topic, now_ms)
            metadata.request_update_for(topic)

    def _give_up(self, error: BaseException) -> None:
        """Nothing is sent anymore: nothing may wait for that."""
        shared = self._shared
        fatal = FatalProducerError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"this producer cannot continue ({type(error).__name__}: {error})"
        )
        with shared.lock:
            shared.abort_error = shared.abort_error or fatal
            shared.is_closing = True
            batches = [*shared.finishing, *shared.accumulator.abort_all()]
            shared.changed.notify_all()
        shared.pool.close()
        for batch in batches:
            batch.fail(fatal)
