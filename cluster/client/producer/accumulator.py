"""RecordAccumulator: the batches that wait to be sent, a queue for each partition (Kafka's class;
docs/reference/kafka.md "Producer client").

Owns the queues, which of their heads go next, flushes, and which batches have no outcome yet. Does not own the bytes
of a batch, the memory they are counted in (``ProducerBatch.memory_bytes``), sequences (``idempotence.py``) nor the
time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from cluster.client.cluster_view import ClusterView
from cluster.client.producer.idempotence import ProducerIdentity, is_after
from cluster.client.producer.ready import Ready, backoff_left_ms, leader_of, linger_left_ms

if TYPE_CHECKING:
    from cluster.client.producer.batch import ProducerBatch
    from cluster.topic_partition import TopicPartition


class RecordAccumulator:
    """NOT thread-safe: callers that share it must hold a lock. Times are milliseconds of one monotonic clock.

    ``is_exhausted`` says whether a caller waits for memory to append: then nothing lingers.
    """

    def __init__(
        self,
        *,
        batch_size: int,
        linger_ms: int,
        delivery_timeout_ms: int,
        is_exhausted: Callable[[], bool],
    ) -> None:
        self._batch_size = batch_size
        self._linger_ms = linger_ms
        self._delivery_timeout_ms = delivery_timeout_ms
        self._is_exhausted = is_exhausted
        # Queues that are not empty. What was drained goes to the end: the next drain begins with anyone who waits
        # longest.
        self._queues: dict[TopicPartition, deque[ProducerBatch]] = {}
        # What is in these queues: most batches that are withdrawn are not, and a queue is long.
        self._queued: set[ProducerBatch] = set()
        # The last of each of these queues, until it is drained.
        self._open: dict[str, dict[int, ProducerBatch]] = {}
        self._retry_at_ms: dict[ProducerBatch, int] = {}
        self._muted: set[TopicPartition] = set()
        # In the order in which they were made.
        self._incomplete: dict[ProducerBatch, None] = {}
        self._flushes = 0
        self._is_closing = False

    def __repr__(self) -> str:
        queued = sum(map(len, self._queues.values()))
        return f"RecordAccumulator({queued} batches queued, {len(self._incomplete)} without outcome)"

    def open_batches(self, topic: str) -> Mapping[int, ProducerBatch]:
        """By partition, the batch at the end of its queue: the one that may take a record. Always up to date.

        If it takes none, or there is none, the caller gets memory, without its lock, tries again, for others may have
        been faster, and adds a batch that holds the record (``add``).
        """
        return self._open.setdefault(topic, {})

    def add(self, batch: ProducerBatch) -> None:
        """Put a new batch at the end of its partition's queue."""
        self._queue_of(batch).append(batch)
        self._queued.add(batch)
        self._incomplete[batch] = None
        self._open.setdefault(batch.topic, {})[batch.partition] = batch

    @property
    def is_empty(self) -> bool:
        """Whether every batch has its outcome."""
        return not self._incomplete

    @property
    def has_queued(self) -> bool:
        """Whether any batch waits to be sent."""
        return bool(self._queues)

    def ready(self, view: ClusterView, now_ms: int) -> Ready:
        """Which nodes there is something to be sent to, and when to look again."""
        nodes: set[int] = set()
        leaders: set[int] = set()
        unknown: set[str] = set()
        delay_ms: int | None = None
        is_urgent = bool(self._queues) and (self._is_closing or self._flushes > 0 or self._is_exhausted())
        for topic_partition, queue in self._queues.items():
            leader, leader_epoch = leader_of(view, topic_partition)
            if leader < 0:
                unknown.add(topic_partition[0])
                continue
            leaders.add(leader)
            if leader not in nodes and topic_partition not in self._muted:
                head = queue[0]
                retry_at_ms = self._retry_at_ms.get(head)
                wait_ms = 0 if retry_at_ms is None else backoff_left_ms(head, retry_at_ms, leader_epoch, now_ms)
                if wait_ms == 0 and len(queue) == 1:
                    wait_ms = linger_left_ms(head, is_urgent, self._linger_ms, now_ms)
                if wait_ms == 0:
                    nodes.add(leader)
                elif delay_ms is None or wait_ms < delay_ms:
                    delay_ms = wait_ms
        return Ready(nodes, leaders, delay_ms, unknown)

    def drain(
        self,
        view: ClusterView,
        nodes: Collection[int],
        max_request_bytes: int,
        now_ms: int,
        identity: ProducerIdentity | None = None,
    ) -> dict[int, list[ProducerBatch]]:
        """Take out at most one batch of each partition of ``nodes``, and no more than one request each can carry.

        The first batch of a request goes whatever its size. Nothing lingers anymore when its node is written to.
        """
        drained: dict[int, list[ProducerBatch]] = {}
        room = dict.fromkeys(nodes, max_request_bytes)
        for topic_partition, queue in list(self._queues.items()):
            leader, leader_epoch = leader_of(view, topic_partition)
            if leader not in room or topic_partition in self._muted:
                continue
            batch = queue[0]
            retry_at_ms = self._retry_at_ms.get(batch)
            if retry_at_ms is not None and backoff_left_ms(batch, retry_at_ms, leader_epoch, now_ms) > 0:
                continue
            if identity is not None and not identity.may_drain(batch):
                continue
            size_bytes = batch.size_bytes
            if size_bytes > room[leader] and leader in drained:
                del room[leader]
                continue
            self._take(topic_partition, queue)
            batch.close()
            batch.leader_epoch_at_attempt = leader_epoch
            batch.last_attempt_ms = now_ms
            if identity is not None:
                identity.drained(batch)
            room[leader] -= size_bytes
            drained.setdefault(leader, []).append(batch)
        return drained

    def reenqueue(self, batch: ProducerBatch, now_ms: int, backoff_ms: int) -> None:
        """Put a batch back that is to be sent again, not before ``backoff_ms`` have passed."""
        batch.reenqueued(now_ms)
        self._retry_at_ms[batch] = now_ms + backoff_ms
        self._insert(batch)

    def split_and_reenqueue(self, batch: ProducerBatch, identity: ProducerIdentity | None) -> list[ProducerBatch]:
        """Put parts of at most batch.size in the place of a batch that the broker found too large; no attempt is
        counted. The parts are returned; the last of them has the memory.
        """
        parts = batch.split(self._batch_size)
        if identity is not None:
            identity.split(batch, parts)
        del self._incomplete[batch]
        self._incomplete.update(dict.fromkeys(parts))
        for part in reversed(parts):
            self._insert(part)
        return parts

    def expired(self, now_ms: int) -> list[ProducerBatch]:
        """The queued batches that are older than delivery.timeout.ms, in order. They stay until they are withdrawn."""
        oldest_ms = now_ms - self._delivery_timeout_ms
        found = []
        for queue in self._queues.values():
            for batch in queue:
                if batch.created_ms > oldest_ms:
                    break
                found.append(batch)
        return found

    def next_expiry_ms(self) -> int | None:
        """When the first of the queued batches expires."""
        oldest_ms: int | None = None
        for queue in self._queues.values():
            made_ms = queue[0].created_ms
            if oldest_ms is None or made_ms < oldest_ms:
                oldest_ms = made_ms
        return None if oldest_ms is None else oldest_ms + self._delivery_timeout_ms

    def is_incomplete(self, batch: ProducerBatch) -> bool:
        """Whether the outcome of a batch is still open."""
        return batch in self._incomplete

    def withdraw(self, batch: ProducerBatch) -> bool:
        """The outcome of ``batch`` is decided: it is not sent (again). False if it was decided before."""
        if batch not in self._incomplete:
            return False
        del self._incomplete[batch]
        self._retry_at_ms.pop(batch, None)
        if batch in self._queued:
            self._not_open(batch)
            self._queued.remove(batch)
            topic_partition = (batch.topic, batch.partition)
            queue = self._queues[topic_partition]
            queue.remove(batch)
            if not queue:
                del self._queues[topic_partition]
        return True

    def abort_all(self) -> list[ProducerBatch]:
        """Withdraw every batch, wherever it is; returns them in the order in which they were made."""
        batches = list(self._incomplete)
        self._incomplete.clear()
        self._queues.clear()
        self._queued.clear()
        for opened in self._open.values():
            opened.clear()
        self._retry_at_ms.clear()
        return batches

    def unsent(self) -> list[ProducerBatch]:
        """The batches that no broker was ever sent, in the order in which they were made. They stay until they are
        withdrawn.
        """
        return [batch for batch in self._incomplete if batch in self._queued and not batch.has_sequence]

    def close_open(self) -> None:
        """What is sent from now on does not get into a batch that is there, and none of these lingers."""
        for opened in self._open.values():
            for batch in opened.values():
                batch.close()

    def mute(self, topic_partition: TopicPartition) -> None:
        """Send nothing of a partition until it is unmuted: with one request in flight, that keeps its order."""
        self._muted.add(topic_partition)

    def unmute(self, topic_partition: TopicPartition) -> None:
        self._muted.discard(topic_partition)

    def begin_flush(self) -> list[ProducerBatch]:
        """From now on nothing lingers. Returns the batches to wait for; ``end_flush`` follows, whatever happens."""
        self._flushes += 1
        return list(self._incomplete)

    def end_flush(self) -> None:
        self._flushes -= 1

    def close(self) -> None:
        """From now on nothing lingers."""
        self._is_closing = True

    def queue_lengths(self, topic: str, partitions: Sequence[int]) -> list[int]:
        """How many batches wait for each of ``partitions``, for the partitioner."""
        queues = self._queues
        return [len(queues.get((topic, partition), ())) for partition in partitions]

    def _take(self, topic_partition: TopicPartition, queue: deque[ProducerBatch]) -> None:
        batch = queue.popleft()
        self._queued.remove(batch)
        self._retry_at_ms.pop(batch, None)
        self._not_open(batch)
        del self._queues[topic_partition]
        if queue:
            self._queues[topic_partition] = queue

    def _not_open(self, batch: ProducerBatch) -> None:
        opened = self._open.get(batch.topic)
        if opened is not None and opened.get(batch.partition) is batch:
            del opened[batch.partition]

    def _insert(self, batch: ProducerBatch) -> None:
        """Put a batch back in the order of sequences; without them, before what is as old or younger."""
        queue = self._queue_of(batch)
        place = 0
        while place < len(queue) and _is_before(queue[place], batch):
            place += 1
        queue.insert(place, batch)
        self._queued.add(batch)

    def _queue_of(self, batch: ProducerBatch) -> deque[ProducerBatch]:
        return self._queues.setdefault((batch.topic, batch.partition), deque())


def _is_before(queued: ProducerBatch, batch: ProducerBatch) -> bool:
    if batch.has_sequence:
        return queued.has_sequence and is_after(batch.base_sequence, queued.base_sequence)
    # Requests without sequences fail in any order; who expires first is found at the front.
    return queued.created_ms < batch.created_ms
