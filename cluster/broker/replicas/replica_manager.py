"""ReplicaManager: every partition on this broker, and the requests that concern several of them at once.

Owns the map of partitions, the read path across them, the purgatory's wheel, and the periodic looks at ISRs and
watermarks. Does not own the write path (``writes``), roles (``roles``), fetchers (``fetchers``) or proposals to the
controller (``isr_proposals``): it is given them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Generator
from functools import partial

from cluster.broker.checkpoints import Blocking
from cluster.broker.journal import Journal
from cluster.broker.metrics import Counters
from cluster.broker.pauses import Shares
from cluster.broker.replicas.fetch_checks import FetchedBy
from cluster.broker.replicas.fetch_session import FetchSession, SessionPartition
from cluster.broker.replicas.fetch_sessions import FetchSessions
from cluster.broker.replicas.host import Proposer, Proposing, RequestRefused
from cluster.broker.replicas.own_writes import OwnWrites
from cluster.broker.replicas.purgatory import DelayedFetch
from cluster.broker.replicas.reads import Reads
from cluster.broker.replicas.record_deletion import RecordDeletion
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.timer_wheel import TimerWheel
from cluster.broker.replicas.writes import Writes
from cluster.broker.rules import Rules
from cluster.isr import IsrProposal
from cluster.log.errors import LogError
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchRequest, FetchResult
from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: The event of the journal that counts batches that came again.
RESENT = "batches-resent"


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
        blocking: Blocking,
        shares: Shares,
        verifies_transactions: bool,
    ) -> None:
        self.broker_id = broker_id
        self.rules = rules
        self.counters = counters
        self.journal = journal
        self._told_resends = (0, 0)
        self.lag_time_max_ms = lag_time_max_ms
        self.partitions: dict[TopicPartition, Replica] = {}
        self.wheel = TimerWheel(loop)
        self.sessions = sessions
        self.deletion = RecordDeletion(self.find, self.wheel, journal, storage_failed)
        self.writes = Writes(
            self.partitions,
            self.find,
            partition_exists,
            rules,
            self.wheel,
            clock,
            storage_failed,
            blocking,
            shares,
            verifies_transactions,
        )
        self.own_writes = OwnWrites(self.find, rules.acknowledgement, self.wheel, clock, storage_failed)
        self._clock = clock
        self._loop = loop
        self._proposer = proposer
        self.partition_exists = partition_exists
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
            self.sessions.keep(self._alive)
            for partition in self.partitions.values():
                partition.settle_deletions()

    def start(self) -> None:
        """Begin to look at the followers, every half of ``replica.lag.time.max.ms`` (Kafka's ReplicaManager)."""
        self._timer = self._loop.call_later(seconds_of_ms(self.lag_time_max_ms / 2), self._check_replicas)

    def _check_replicas(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for partition in self.partitions.values():
            partition.check_replicas(now_ms)
        self._tell_resends()
        self.start()

    def _tell_resends(self) -> None:
        """The journal's line on batches that came again since the last one: counters end with the process."""
        now, told = (self.counters.produce_retries, self.counters.produce_duplicates), self._told_resends
        if now != told:
            self._told_resends = now
            self.journal(RESENT, {"retries": now[0] - told[0], "duplicates": now[1] - told[1]})

    def stop(self) -> None:
        """Stop answering."""
        self._tell_resends()
        if self._timer is not None:
            self._timer.cancel()
        self.wheel.close()

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """What to write to the high-watermark checkpoint."""
        return {key: partition.high_watermark for key, partition in self.partitions.items()}

    def find(self, topic: str, partition: int) -> Replica:
        """A replica on this broker. Raises ``RequestRefused`` with the code for one that is elsewhere or nowhere."""
        found = self.partitions.get((topic, partition))
        if found is None:
            if self.partition_exists(topic, partition):
                raise RequestRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "no replica on this broker")
            raise RequestRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {topic}-{partition}")
        return found

    # Reading

    def admit(self, request: FetchRequest, reader: FetchedBy) -> FetchSession | None:
        """The session of a follower's fetch, if it has one. Raises ``RequestRefused``."""
        is_known = self.is_alive(reader.replica_id)
        return self.sessions.admit(request, reader, self._clock.monotonic_ms(), is_known=is_known)

    def fetch(
        self,
        request: FetchRequest,
        reader: FetchedBy,
        respond: Callable[[list[FetchResult]], None],
        session: FetchSession | None = None,
    ) -> DelayedFetch | None:
        """Answer a fetch now if it may be, else return it waiting: for bytes, a change or its time."""
        reads = self._reads(request, reader, session)
        now_ms = self._clock.monotonic_ms()
        is_enough = reads.first(now_ms) or request.max_wait_ms <= 0
        if session is not None:
            return self._fetch_of_session(session, reads, request.max_wait_ms, is_enough, respond, now_ms)
        if is_enough or not reads.wanted:
            respond(reads.results)
            return None

        def attempt(changed: set[int] | None) -> bool:
            if not reads.again(changed, self._clock.monotonic_ms()) and changed is not None:
                return False
            respond(reads.results)
            return True

        return self._wait(reads, reader, request.max_wait_ms, attempt)

    def _reads(self, request: FetchRequest, reader: FetchedBy, session: FetchSession | None) -> Reads:
        max_bytes = request.max_bytes if reader.is_follower else min(request.max_bytes, self._fetch_max_bytes)
        wanted = request.partitions if session is None else session.begin(request)
        return Reads(wanted, request.min_bytes, max_bytes, reader, self.find)

    def fetch_in_steps(
        self,
        request: FetchRequest,
        reader: FetchedBy,
        ended: Callable[[Generator[None, None, list[FetchResult]]], None],
        session: FetchSession | None = None,
    ) -> Generator[None, None, list[FetchResult] | DelayedFetch]:
        """The same of a request that names very many, in steps that others may come between. Returns what was found, or
        the fetch that waits for more and calls ``ended`` with the steps that are left then.

        In a session none waits: the follower's next fetch names little, and waits in its place.
        """
        reads = self._reads(request, reader, session)
        now_ms = self._clock.monotonic_ms()
        if session is not None:
            session.begin_steps()
            done = 0
            for _ in reads.first_in_steps(now_ms):
                read, done = reads.wanted[done : len(reads.results)], len(reads.results)
                for wanted in read:
                    self._watch(session, wanted)
                    session.is_read(wanted)
                yield
            session.read_by(reads, now_ms)
            return session.answer(reads.results, partial(self._settle, session))
        yield from reads.first_in_steps(now_ms)
        if reads.is_enough() or request.max_wait_ms <= 0:
            return reads.results

        def attempt(changed: set[int] | None) -> bool:
            now_ms = self._clock.monotonic_ms()
            if changed is not None and not reads.again(changed, now_ms):
                return False
            ended(reads.again_in_steps(now_ms))
            return True

        delayed = self._wait(reads, reader, request.max_wait_ms, attempt)
        # No one told the fetch of what changed between its steps.
        for index in reads.moved(self.partitions):
            delayed.wake(index)
        return delayed

    def _wait(
        self, reads: Reads, reader: FetchedBy, max_wait_ms: int, attempt: Callable[[set[int] | None], bool]
    ) -> DelayedFetch:
        watched = [
            (index, partition)
            for index, one in enumerate(reads.wanted)
            if (partition := self.partitions.get((one.topic, one.partition))) is not None
        ]

        def unwatch(fetch: DelayedFetch) -> None:
            for _, partition in watched:
                partition.waiters.remove_fetch(fetch, reader)

        delayed = DelayedFetch(attempt, unwatch, self._loop, self.wheel, max_wait_ms)
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
            self._watch(session, wanted)
        settle = partial(self._settle, session)

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

    def _watch(self, session: FetchSession, wanted: FetchPartition) -> None:
        """Let the session learn of what changes at one of its partitions. It may have been closed meanwhile."""
        replica = self.partitions.get((wanted.topic, wanted.partition))
        watcher = session.partitions.get((wanted.topic, wanted.partition))
        if replica is not None and watcher is not None:
            watcher.watch(replica.waiters)

    def _settle(self, session: FetchSession, fetched: SessionPartition) -> bool:
        partition = self.partitions.get(fetched.key)
        if partition is None or partition.leader is None:
            return False
        return partition.leader.settle(
            session.reader.replica_id, fetched.wanted.fetch_offset, partition.log.log_end_offset, fetched
        )
