"""What the threads that send and the producer's own thread share, under one lock.

Owns the lock, what is known of topics for anyone who chooses a partition, which topics the application uses, and who
waits for metadata. Does not own the queues, the sender nor metadata itself: that belongs to the I/O thread, which
publishes a view of it here.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping

from cluster.client.cluster_view import ClusterView, PartitionView
from cluster.client.producer import failures
from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.buffer_pool import BufferPool
from cluster.client.producer.compression_ratio import CompressionRatioEstimator
from cluster.client.producer.delivery import FatalProducerError, ProduceError, ProducerClosed
from cluster.client.producer.idempotence import ProducerIdentity
from cluster.client.producer.partitioner import BuiltInPartitioner
from cluster.client.producer.sender import SenderCore
from cluster.client.producer.settings import ProducerSettings
from cluster.client.producer.topic_choice import TopicChoice
from cluster.client.producer.transaction.manager import TransactionManager
from cluster.client.producer.transaction.transaction_errors import FatalTransactionError, TransactionClosed
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.seams.randomness import Random
from cluster.topic_partition import TopicPartition

_NO_VIEW = ClusterView(None, -1, {}, {})


class ProducerShared:
    """``lock`` is held for everything but ``pool``, which has its own (taken inside this one, never around it).

    ``changed`` is notified after every answer about metadata, after the end of every call of transactions, and at the
    end.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        accumulator: RecordAccumulator,
        core: SenderCore,
        identity: ProducerIdentity | None,
        pool: BufferPool,
        clock: Clock,
        random: Random,
        transactions: TransactionManager | None = None,
    ) -> None:
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.settings = settings
        self.accumulator = accumulator
        self.core = core
        self.identity = identity
        #: None without transactional.id.
        self.transactions = transactions
        self.pool = pool
        self.ratios = CompressionRatioEstimator()
        self.clock = clock
        #: The topics that records can be appended to.
        self.topics: dict[str, TopicChoice] = {}
        #: Batches whose outcome is decided and not told yet.
        self.finishing: list[ProducerBatch] = []
        #: No record is taken anymore; and what has no outcome is abandoned, with this error.
        self.is_closing = False
        self.abort_error: ProduceError | None = None
        self._random = random
        self._view = _NO_VIEW
        self._version = 0
        self._used: dict[str, int] = {}
        self._wanted: set[TopicPartition] = set()

    def __repr__(self) -> str:
        return f"ProducerShared({self.accumulator!r}, {self.core!r}, {len(self.topics)} topics)"

    # For anyone who sends

    def use(self, topic: str, now_ms: int) -> None:
        """A record of ``topic`` is sent."""
        self._used[topic] = now_ms

    def want(self, topic: str, partition: int | None = None) -> int:
        """Ask for metadata of ``topic``, for the sake of this partition, or of any. Returns the version that is known:
        an answer has a greater one.
        """
        self._wanted.add((topic, partition or 0))
        return self._version

    @property
    def version(self) -> int:
        """How many answers about metadata there were."""
        return self._version

    def topic_error(self, topic: str) -> ErrorCode:
        """What the cluster said about a topic."""
        view = self._view.topics.get(topic)
        return ErrorCode.NONE if view is None else view.error_code

    def partitions(self, topic: str) -> list[PartitionView]:
        """What is known of a topic's partitions."""
        view = self._view.topics.get(topic)
        return [] if view is None else [view.partitions[index] for index in sorted(view.partitions)]

    @property
    def fatal_error(self) -> FatalProducerError | None:
        """Why nothing can be sent anymore."""
        if isinstance(self.abort_error, FatalProducerError):
            return self.abort_error
        if self.transactions is not None:
            error = self.transactions.error
            if isinstance(error, FatalTransactionError) and not isinstance(error, TransactionClosed):
                return error
            return None
        code = None if self.identity is None else self.identity.fatal_error
        return None if code is None else failures.fatal(code, is_doubtful=False)

    @property
    def refusal(self) -> ProduceError:
        """Why a producer that is closing takes nothing: it was closed, or it cannot continue."""
        return self.fatal_error or ProducerClosed("Cannot perform operation after producer has been closed")

    # For the I/O thread

    def take_requests(self) -> tuple[Mapping[str, int], Collection[TopicPartition]]:
        """The topics that were used, and when, and what metadata are wanted of, since the last call."""
        if not self._used and not self._wanted:
            return {}, ()
        used, wanted = self._used, self._wanted
        self._used, self._wanted = {}, set()
        return used, wanted

    def publish(self, view: ClusterView, version: int) -> None:
        """The cluster is known to be like this."""
        if view is self._view and version == self._version:
            return
        self._view = view
        self._version = version
        self.core.metadata(view)
        for name, topic in view.topics.items():
            if topic.error_code is ErrorCode.NONE and topic.partitions:
                choice = self.topics.get(name)
                if choice is None:
                    choice = self.topics[name] = self._new_choice(name)
                choice.update(topic)
            else:
                self.topics.pop(name, None)
        for name in self.topics.keys() - view.topics.keys():
            del self.topics[name]
        self.changed.notify_all()

    def _new_choice(self, topic: str) -> TopicChoice:
        partitioner = BuiltInPartitioner(self.settings.limit_bytes, self._random)
        return TopicChoice(topic, partitioner, self.accumulator.open_batches(topic), self._load)

    def _load(self, choice: TopicChoice) -> Mapping[int, int] | None:
        """The length of the queue of each partition whose leader takes requests."""
        settings = self.settings
        if not settings.is_adaptive or choice.partition_count < 2:
            return None
        partitions = choice.available
        if settings.availability_timeout_ms > 0:
            now_ms = self.clock.monotonic_ms()
            partitions = [
                partition
                for partition, leader in choice.leaders.items()
                if self.core.blocked_ms(leader, now_ms) <= settings.availability_timeout_ms
            ]
        return dict(zip(partitions, self.accumulator.queue_lengths(choice.topic, partitions), strict=True))
