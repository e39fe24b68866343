"""MarkerSender: brings the markers of decided transactions to the brokers that lead their partitions.

Owns what waits for whom: one request to each broker at a time, into which goes what has come up meanwhile; markers
whose leader is away, until there is one; and the pause before a marker is tried again. Does not own what an answer
means (``TransactionCoordinator``), nor the queues (``MarkerQueue``, ``MarkerOrder``).

A partition that the metadata of this broker lacks is not gone for that: it may not have learned of it yet. ZooKeeper is
asked, for a marker that is dropped leaves a transaction open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from cluster.broker.metadata_cache import MetadataCache
from cluster.broker.transactions.marker_links import MarkerLinks
from cluster.broker.transactions.marker_writing import MarkerErrors, MarkerWriter
from cluster.coordinator.transaction.decisions import TransactionMarkers
from cluster.coordinator.transaction.marker_order import MarkerOrder
from cluster.coordinator.transaction.markers import LEADER_OFFLINE, MarkerQueue
from cluster.metadata.store import StoreError
from cluster.metadata.znodes import MalformedZnode
from cluster.protocol.errors import ErrorCode
from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: The pause before a marker is tried again.
RETRY_S = 0.1
#: The pause between two looks for leaders of the partitions that have none, and for partitions that may be gone.
LOOK_S = 1.0
#: Partitions after which a request takes no further piece (``MarkerOrder.take``). Others may have to wait for it: less
#: than a tenth of a second.
MOST_PARTITIONS = 200


#: Hears what became of markers: the errors by partition, None if their broker was out of reach.
MarkersAnswered = Callable[[TransactionMarkers, Mapping[TopicPartition, ErrorCode] | None], None]
#: Learns of markers whose partitions do not exist anymore.
Gone = Callable[[TransactionMarkers], None]


class MarkerSender:
    """Of one broker."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        links: MarkerLinks,
        writer: MarkerWriter,
        stored_partitions: Callable[[str], Awaitable[int | None]],
        answered: MarkersAnswered,
        gone: Gone,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._broker_id = broker_id
        self._metadata = metadata
        self._links = links
        self._writer = writer
        self._stored_partitions = stored_partitions
        self._answered = answered
        self._gone = gone
        self._fresh = MarkerQueue()
        #: Their leaders are away, or unknown.
        self._parked = MarkerQueue()
        self._later: list[TransactionMarkers] = []
        self._to_broker: dict[int, MarkerOrder] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._unknown: set[TopicPartition] = set()
        self._found_gone: frozenset[TopicPartition] = frozenset()
        self._looking: asyncio.Task[None] | None = None
        self._handles: dict[Callable[[], None], asyncio.Handle] = {}
        self._is_closed = False
        metadata.on_update(self._leaders_changed)

    def __repr__(self) -> str:
        queued = sum(map(len, self._to_broker.values()))
        return f"<MarkerSender: {queued} queued, {len(self._parked)} parked, {len(self._later)} to be tried again>"

    def queue_sizes(self) -> dict[str, int]:
        """Transactions by what their markers wait for: a request to their broker, a leader of their partition, or
        another try. For any thread."""
        of_brokers = sum(map(len, list(self._to_broker.values())))
        return {"broker": of_brokers, "unknown destination": len(self._parked), "retry": len(self._later)}

    def add(self, markers: TransactionMarkers, *, is_retry: bool = False) -> None:
        """Send these, with what else comes up in this turn of the loop; after a pause with ``is_retry``."""
        if self._is_closed:
            return
        if is_retry:
            self._later.append(markers)
            self._call(self._try_again, RETRY_S)
        else:
            self._fresh.add(markers)
            self._call(self._send_fresh)

    def drop(self, transaction_partition: int) -> None:
        """Forget those of one partition of ``__transaction_state`` that are not on their way."""
        self._fresh.drop(transaction_partition)
        self._parked.drop(transaction_partition)
        self._later = [each for each in self._later if each.transaction_partition != transaction_partition]
        for waiting in self._to_broker.values():
            waiting.drop(transaction_partition)

    async def close(self) -> None:
        """Send nothing anymore."""
        self._is_closed = True
        for handle in self._handles.values():
            handle.cancel()
        tasks = [*self._tasks.values(), *([] if self._looking is None else [self._looking])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._links.close()

    def _call(self, function: Callable[[], None], after_s: float = 0.0) -> None:
        """Call it soon, or after that time; once, however often this is said until then."""
        if function not in self._handles:
            run = self._run
            self._handles[function] = (
                self._loop.call_later(after_s, run, function) if after_s else self._loop.call_soon(run, function)
            )

    def _run(self, function: Callable[[], None]) -> None:
        del self._handles[function]
        function()

    # to which broker

    def _try_again(self) -> None:
        later, self._later = self._later, []
        for markers in later:
            self._fresh.add(markers)
        self._send_fresh()

    def _leaders_changed(self) -> None:
        if len(self._parked) and not self._is_closed:
            self._call(self._send_parked)

    def _send_fresh(self) -> None:
        self._send(self._fresh)

    def _send_parked(self) -> None:
        self._send(self._parked)

    def _send(self, queue: MarkerQueue) -> None:
        found = queue.take(self._leader_of)
        for broker_id, markers in found.by_broker.items():
            waiting = self._to_broker.setdefault(broker_id, MarkerOrder())
            for each in markers:
                waiting.add(each)
            if broker_id not in self._tasks:
                self._tasks[broker_id] = self._loop.create_task(self._serve(broker_id))
        if queue is not self._parked:
            for each in queue.drain():
                self._parked.add(each)
        for each in found.gone:
            self._gone(each)
        if len(self._parked):
            self._call(self._look, LOOK_S)

    def _leader_of(self, topic_partition: TopicPartition) -> int | None:
        found = self._metadata.partition(*topic_partition)
        if found is not None:
            is_there = found.leader >= 0 and self._metadata.is_alive(found.leader)
            return found.leader if is_there else LEADER_OFFLINE
        if topic_partition in self._found_gone:
            return None
        self._unknown.add(topic_partition)
        return LEADER_OFFLINE

    def _look(self) -> None:
        if self._looking is None and len(self._parked):
            self._looking = self._loop.create_task(self._look_for_parked())

    async def _look_for_parked(self) -> None:
        """Try those again whose leaders were away. Partitions that ZooKeeper does not have either are gone."""
        unknown, self._unknown = self._unknown, set()
        gone: set[TopicPartition] = set()
        try:
            for name in sorted({topic for topic, _ in unknown}):
                count = await self._stored_partitions(name)
                gone.update(each for each in unknown if each[0] == name and (count is None or each[1] >= count))
        except (StoreError, MalformedZnode, OSError) as error:
            logger.info("partitions that lack a marker cannot be looked for: %r", error)
        finally:
            self._looking = None
        self._found_gone = frozenset(gone)
        self._send_parked()
        self._found_gone = frozenset()

    # to one broker

    async def _serve(self, broker_id: int) -> None:
        try:
            while chunk := self._to_broker[broker_id].take(MOST_PARTITIONS):
                for markers, errors in zip(chunk, await self._write(broker_id, chunk), strict=True):
                    self._tell(markers, errors)
        finally:
            del self._tasks[broker_id]

    async def _write(self, broker_id: int, chunk: list[TransactionMarkers]) -> list[MarkerErrors] | list[None]:
        try:
            if broker_id == self._broker_id:
                return await self._writer.write(chunk)
            return await self._links.write(broker_id, chunk)
        except (OSError, StoreError) as error:
            logger.info("%d markers for broker %d are to be sent again: %r", len(chunk), broker_id, error)
        except Exception as error:
            halt_if_out_of_memory(error)
            # Whatever it is, the transactions wait for their markers.
            logger.exception("%d markers for broker %d", len(chunk), broker_id)
        return [None] * len(chunk)

    def _tell(self, markers: TransactionMarkers, errors: Mapping[TopicPartition, ErrorCode] | None) -> None:
        try:
            self._answered(markers, errors)
        except Exception as error:
            halt_if_out_of_memory(error)
            # A mistake of ours about one transaction does not keep the markers of others back.
            logger.exception("the answer to %r", markers)
