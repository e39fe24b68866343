"""ReplicaManager: every partition on this broker, and the requests that concern several of them at once.

Owns the map of partitions, the write path and the read path across them (produce -> partition -> log, as in Kafka), the
purgatory's wheel, and the periodic looks at ISRs and watermarks. Does not own roles (``roles``), fetchers
(``fetchers``) or proposals to the controller (``isr_proposals``): it is given them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from cluster.broker.journal import Journal
from cluster.broker.metrics import Counters
from cluster.broker.replicas.fetch_sessions import FetchSession, FetchSessions, SessionPartition
from cluster.broker.replicas.partition import Partition
from cluster.broker.replicas.purgatory import DelayedFetch, DelayedProduce, TimerWheel, failed
from cluster.broker.replicas.reads import Reads
from cluster.broker.replicas.record_deletion import RecordDeletion
from cluster.broker.replicas.values import INTERNAL_TOPICS, Proposer, Proposing, Reader, Refused, TopicPartition
from cluster.broker.rules import Rules
from cluster.log.errors import LogError
from cluster.protocol.batch import only_batch
from cluster.protocol.errors import ErrorCode, InvalidBatch
from cluster.protocol.fetch import FetchRequest, FetchResult
from cluster.protocol.produce import ProducePartition, ProduceRequest, ProduceResult, appended
from cluster.replication.isr import IsrProposal
from cluster.seams.clock import Clock

logger = logging.getLogger(__name__)

#: The one client that may write to internal topics nevertheless (Kafka's AdminUtils.AdminClientId).
ADMIN_CLIENT_ID = "__admin_client"

VALID_ACKS = frozenset({-1, 0, 1})


class ReplicaManager:
    """The replicas of one broker. It is the ``Host`` of its partitions."""

    def __init__(
        self,
        *,
        broker_id: int,
        rules: Rules,
        counters: Counters,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        proposer: Proposer,
        partition_exists: Callable[[str, int], bool],
        storage_failed: Callable[[LogError], None],
        lag_time_max_ms: int,
        fetch_max_bytes: int,
        sessions: FetchSessions,
        journal: Journal,
    ) -> None:
        self.broker_id = broker_id
        self.rules = rules
        self.counters = counters
        self.lag_time_max_ms = lag_time_max_ms
        self.partitions: dict[TopicPartition, Partition] = {}
        self.wheel = TimerWheel(loop)
        self.sessions = sessions
        self.deletion = RecordDeletion(self.find, self.wheel, journal, storage_failed)
        self._clock = clock
        self._loop = loop
        self._proposer = proposer
        self._partition_exists = partition_exists
        self.storage_failed = storage_failed
        self._fetch_max_bytes = fetch_max_bytes
        self._alive: frozenset[int] = frozenset()
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        leading = sum(partition.leader is not None for partition in self.partitions.values())
        return f"<ReplicaManager of {self.broker_id}: {len(self.partitions)} partitions, leading {leading}>"

    # What partitions ask of their host

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self._alive

    def propose(self, partition: Proposing, proposal: IsrProposal) -> None:
        self._proposer.propose(partition, proposal)

    # What the broker tells

    def brokers_changed(self, alive: Collection[int]) -> None:
        """The brokers that are registered now: others cannot join an ISR."""
        before, self._alive = self._alive, frozenset(alive)
        if self._alive != before:
            for partition in self.partitions.values():
                partition.settle_deletions()

    def start(self) -> None:
        """Begin to look at the followers, every half of ``replica.lag.time.max.ms`` (Kafka's ReplicaManager)."""
        self._timer = self._loop.call_later(self.lag_time_max_ms / 2000, self._check_replicas)

    def _check_replicas(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for partition in self.partitions.values():
            partition.check_replicas(now_ms)
        self.start()

    def stop(self) -> None:
        """Answer nobody any more."""
        if self._timer is not None:
            self._timer.cancel()
        self.wheel.close()

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """What to write to the high-watermark checkpoint."""
        return {key: partition.high_watermark for key, partition in self.partitions.items()}

    def find(self, topic: str, partition: int) -> Partition:
        """A replica on this broker. Raises ``Refused`` with the code for one that is elsewhere or nowhere."""
        found = self.partitions.get((topic, partition))
        if found is None:
            if self._partition_exists(topic, partition):
                raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "no replica on this broker")
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {topic}-{partition}")
        return found

    # Writing

    def produce(
        self,
        request: ProduceRequest,
        client_id: str | None,
        zstd_allowed: bool,
        now_ms: int,
        respond: Callable[[list[ProduceResult]], None],
    ) -> None:
        """Append what a producer sent, and respond when its acks say so. Nothing of the frame is kept.

        ``now_ms`` is monotonic.
        """
        wall_ms = self._clock.wall_ms()
        _, acks, timeout_ms, partitions = request
        results: list[ProduceResult] = []
        waiting: list[tuple[int, Partition, int, int]] = []
        for wanted in partitions:
            try:
                topic, number, records = wanted
                partition = self.partitions.get((topic, number))
                if partition is None or records is None or topic in INTERNAL_TOPICS or acks not in VALID_ACKS:
                    partition, records = self._admit(wanted, acks, client_id, zstd_allowed)
                header = only_batch(records, zstd_allowed)
                info, epoch = partition.append(records, header, acks, now_ms, wall_ms)
            except (Refused, InvalidBatch, LogError) as error:
                results.append(self._refused(wanted, error))
                continue
            first_offset, _, log_append_time_ms, log_start_offset, must_commit_offset, _, error_code = info
            result = appended(topic, number, error_code, first_offset, log_append_time_ms, log_start_offset)
            if acks == -1:
                code = self.rules.acknowledgement(partition.leader, epoch, must_commit_offset + 1)
                if code is None:
                    waiting.append((len(results), partition, must_commit_offset + 1, epoch))
                elif code:
                    result = failed(result, code)
            results.append(result)
        if not waiting:
            respond(results)
            return
        delayed = DelayedProduce(results, (entry[0] for entry in waiting), respond, self.wheel, timeout_ms)
        for index, partition, required_offset, epoch in waiting:
            partition.waiters.add_produce(required_offset, epoch, delayed, index)

    def _admit(
        self, wanted: ProducePartition, acks: int, client_id: str | None, zstd_allowed: bool
    ) -> tuple[Partition, memoryview]:
        """The checks before the partition's own, of what is not plainly right: rows 2 to 7 of docs/produce-checks.md.

        Raises ``Refused`` and ``InvalidBatch``.
        """
        topic, number, records = wanted
        partition = self.partitions.get((topic, number))
        if partition is None and not self._partition_exists(topic, number):
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {topic}-{number}")
        if records is None:
            raise Refused(ErrorCode.INVALID_RECORD, "no records")
        only_batch(records, zstd_allowed)
        if acks not in VALID_ACKS:
            raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks {acks}")
        if topic in INTERNAL_TOPICS and client_id != ADMIN_CLIENT_ID:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is internal")
        if partition is None:
            partition = self.find(topic, number)
        return partition, records

    def _refused(self, wanted: ProducePartition, error: Refused | InvalidBatch | LogError) -> ProduceResult:
        logger.debug("produce to %s-%d refused: %s", wanted.topic, wanted.partition, error)
        if error.error_code is ErrorCode.KAFKA_STORAGE_ERROR and isinstance(error, LogError):
            self.storage_failed(error)
        return ProduceResult(
            wanted.topic,
            wanted.partition,
            error.error_code,
            error_message=error.message,
            record_errors=error.record_errors if isinstance(error, InvalidBatch) else (),
        )

    # Reading

    def admit(self, request: FetchRequest, reader: Reader) -> FetchSession | None:
        """The session of a follower's fetch, if it has one. Raises ``Refused``."""
        return self.sessions.admit(request, reader, self._clock.monotonic_ms())

    def fetch(
        self,
        request: FetchRequest,
        reader: Reader,
        respond: Callable[[list[FetchResult]], None],
        session: FetchSession | None = None,
    ) -> DelayedFetch | None:
        """Answer a fetch now if it may be, else return it waiting: for bytes, a change or its time."""
        max_bytes = request.max_bytes if reader.is_follower else min(request.max_bytes, self._fetch_max_bytes)
        wanted = request.partitions if session is None else session.begin(request)
        reads = Reads(wanted, request.min_bytes, max_bytes, reader, self.find)
        now_ms = self._clock.monotonic_ms()
        is_enough = reads.first(now_ms) or request.max_wait_ms <= 0
        if session is not None:
            return self._fetch_of_session(session, reads, request.max_wait_ms, is_enough, respond, now_ms)
        if is_enough or not wanted:
            respond(reads.results)
            return None

        def attempt(changed: set[int] | None) -> bool:
            if not reads.again(changed, self._clock.monotonic_ms()) and changed is not None:
                return False
            respond(reads.results)
            return True

        watched = [
            (index, partition)
            for index, one in enumerate(wanted)
            if (partition := self.partitions.get((one.topic, one.partition))) is not None
        ]

        def unwatch(fetch: DelayedFetch) -> None:
            for _, partition in watched:
                partition.waiters.remove_fetch(fetch, reader)

        delayed = DelayedFetch(attempt, unwatch, self._loop, self.wheel, request.max_wait_ms)
        for index, partition in watched:
            partition.waiters.add_fetch(delayed, index, reader)
        return delayed

    def _fetch_of_session(
        self,
        session: FetchSession,
        reads: Reads,
        max_wait_ms: int,
        is_enough: bool,
        respond: Callable[[list[FetchResult]], None],
        now_ms: int,
    ) -> DelayedFetch | None:
        """The same for a fetch of a session: its partitions tell it of changes, and it tells what is news."""
        session.read_by(reads, now_ms)
        for wanted in reads.wanted:
            partition = self.partitions.get((wanted.topic, wanted.partition))
            if partition is not None:
                session.partitions[wanted.topic, wanted.partition].watch(partition.waiters)

        def settle(fetched: SessionPartition) -> bool:
            partition = self.partitions.get(fetched.key)
            if partition is None or partition.leader is None:
                return False
            return partition.leader.settle(
                session.reader.replica_id, fetched.wanted.fetch_offset, partition.log.log_end_offset, fetched
            )

        def attempt(changed: set[int] | None) -> bool:
            indexes = None if changed is None else changed | session.missed()
            if not reads.again(indexes, self._clock.monotonic_ms()) and changed is not None:
                return False
            respond(session.answer(reads.results, settle))
            return True

        if is_enough or not session.partitions:
            respond(session.answer(reads.results, settle))
            return None
        delayed = DelayedFetch(attempt, session.unpark, self._loop, self.wheel, max_wait_ms)
        session.park(delayed)
        return delayed
