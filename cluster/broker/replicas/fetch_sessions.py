"""Fetch sessions (KIP-227, docs/reference/kafka.md "Fetch sessions"): what a follower asked for is kept here, so that
it need only say what has changed.

Owns the sessions and their epochs, which partitions a fetch of a session must look at, and what of it is news to the
follower. Does not own the reading (``reads``), the waiting (``purgatory``), nor time: it is told.

Followers alone get sessions; a consumer's request for one is declined with the id 0. A follower has one fetcher for
each leader, so a new session of a follower replaces its former one. A session registers at the partitions that it
holds, and they tell it when something changes: a fetch looks at these and at what it names itself, not at the
thousands that are as they were. Those are fetched anyway, and the leader's rules can see when (``IdleFetches``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random

from cluster.broker.replicas.fetch_checks import FetchedBy
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.purgatory import DelayedFetch
from cluster.broker.replicas.reads import Reads
from cluster.broker.replicas.waiters import Waiters
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchRequest, FetchResult
from cluster.topic_partition import TopicPartition

#: The id of no session: it declines one.
NO_SESSION = 0
#: Session epochs of a full fetch: without a session, and asking for one.
FINAL_EPOCH, INITIAL_EPOCH = -1, 0
FULL_FETCH_EPOCHS = frozenset({FINAL_EPOCH, INITIAL_EPOCH})
INT32_MAX = 2**31 - 1
#: A session unused for this long makes room for another.
EVICTION_MS = 120_000
#: What was never told is never the same as what is to be told.
_UNTOLD = -2


def next_epoch(epoch: int) -> int:
    """The epoch after ``epoch``; after the greatest comes 1, since 0 begins a session."""
    return 1 if epoch == INT32_MAX else epoch + 1


class SessionPartition:
    """One partition of a session: what the follower wants of it, and what it was told last.

    A ``Watcher`` of the partition, and the ``IdleFetches`` of the follower there: ``settled`` means that it need not be
    examined, from then on every fetch of the session is one of it, until something changes.
    """

    __slots__ = (
        "_high_watermark",
        "_is_settled",
        "_log_start_offset",
        "_session",
        "_settled_until_ms",
        "_waiters",
        "key",
        "wanted",
    )

    def __init__(self, session: FetchSession, wanted: FetchPartition) -> None:
        self.key: TopicPartition = (wanted.topic, wanted.partition)
        self.wanted = wanted
        self._session = session
        self._waiters: Waiters | None = None
        self._high_watermark = self._log_start_offset = _UNTOLD
        self._is_settled, self._settled_until_ms = False, 0

    def __repr__(self) -> str:
        return f"<SessionPartition {self.key} at {self.wanted.fetch_offset}>"

    def ask(self, wanted: FetchPartition) -> None:
        """The follower names it (again): it gets an answer, whatever it was told before."""
        self._unsettle()
        self.wanted = wanted
        self._high_watermark = self._log_start_offset = _UNTOLD

    def tell(self, result: FetchResult) -> bool:
        """Whether ``result`` is news. It is taken as told."""
        is_news = (
            result.error_code != ErrorCode.NONE
            or result.records is not None
            or result.diverging is not None
            or result.high_watermark != self._high_watermark
            or result.log_start_offset != self._log_start_offset
        )
        self._high_watermark, self._log_start_offset = result.high_watermark, result.log_start_offset
        return is_news

    def watch(self, waiters: Waiters) -> None:
        if self._waiters is not waiters:
            self.unwatch()
            self._waiters = waiters
            waiters.add_watcher(self)

    def unwatch(self) -> None:
        self._unsettle()
        if self._waiters is not None:
            self._waiters.remove_watcher(self)
            self._waiters = None

    def changed(self, *, wakes: bool) -> None:
        """Something changed at the partition; ``wakes`` if a fetch that waits should look at once."""
        self._unsettle()
        self._session.changed(self, wakes=wakes)

    @property
    def fetched_ms(self) -> int:
        return self._session.fetched_ms if self._is_settled else self._settled_until_ms

    def settled(self) -> None:
        self._is_settled = True

    def _unsettle(self) -> None:
        if self._is_settled:
            self._is_settled = False
            self._settled_until_ms = self._session.fetched_ms


#: Asks a partition whether the follower has nothing to wait for there but a change that its session is told of. If so
#: the partition takes the fetches of the session for fetches of its own from now on.
Settle = Callable[[SessionPartition], bool]


class FetchSession:
    """The session of one follower in one of its lives. ``partitions`` are all that it fetches here."""

    def __init__(self, session_id: int, reader: FetchedBy, now_ms: int) -> None:
        self.session_id = session_id
        self.partitions: dict[TopicPartition, SessionPartition] = {}
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.used_ms = now_ms
        #: When its last fetch had looked at all that it must look at.
        self.fetched_ms = now_ms
        self.reader = reader
        #: What the next fetch, or the one that waits, must look at.
        self._changed: dict[TopicPartition, SessionPartition] = {}
        #: While a fetch is read in steps: what changed after it was read.
        self._changed_since: set[TopicPartition] | None = None
        self._reads: Reads | None = None
        self._indexes: dict[TopicPartition, int] = {}
        self._waiting: DelayedFetch | None = None

    def __repr__(self) -> str:
        return f"<FetchSession {self.session_id}.{self.epoch} of {self.reader.replica_id}, {len(self.partitions)}>"

    def begin(self, request: FetchRequest) -> list[FetchPartition]:
        """Take over what ``request`` changes, and return what is to be read: what changed since, then what it names.

        In this order what did not fit into the last answer comes before what has had its turn.
        """
        if self._waiting is not None:
            self._waiting.finish_now()
        self._reads = None
        for key in request.forgotten:
            self._changed.pop(key, None)
            forgotten = self.partitions.pop(key, None)
            if forgotten is not None:
                forgotten.unwatch()
        named: dict[TopicPartition, SessionPartition] = {}
        for wanted in request.partitions:
            key = (wanted.topic, wanted.partition)
            partition = self.partitions.get(key)
            if partition is None:
                partition = self.partitions[key] = SessionPartition(self, wanted)
            partition.ask(wanted)
            named[key] = partition
            self._changed.pop(key, None)
        self._changed.update(named)
        return [partition.wanted for partition in self._changed.values()]

    def begin_steps(self) -> None:
        """What ``begin`` returned is read in steps, and partitions may change between them."""
        self._changed_since = set()

    def is_read(self, wanted: FetchPartition) -> None:
        """A step has read this."""
        if self._changed_since is not None:
            self._changed_since.discard((wanted.topic, wanted.partition))

    def read_by(self, reads: Reads, now_ms: int) -> None:
        """``reads`` has looked at what ``begin`` returned."""
        self.fetched_ms = now_ms
        self._reads = reads
        self._indexes = {(wanted.topic, wanted.partition): index for index, wanted in enumerate(reads.wanted)}

    def park(self, waiting: DelayedFetch) -> None:
        self._waiting = waiting

    def unpark(self, _waiting: DelayedFetch) -> None:
        self._waiting = None

    def changed(self, partition: SessionPartition, *, wakes: bool) -> None:
        self._changed[partition.key] = partition
        if self._changed_since is not None:
            self._changed_since.add(partition.key)
        if wakes and self._waiting is not None:
            self._waiting.wake(self._index(partition))

    def missed(self) -> set[int]:
        """The places in the reads of what changed without waking them."""
        return {self._index(partition) for partition in self._changed.values()}

    def _index(self, partition: SessionPartition) -> int:
        index = self._indexes.get(partition.key)
        if index is None and self._reads is not None:
            index = self._indexes[partition.key] = self._reads.add(partition.wanted)
        return -1 if index is None else index

    def answer(self, results: list[FetchResult], settle: Settle) -> list[FetchResult]:
        """Of what was found, what is news to the follower. What is not settled is examined by the next fetch too."""
        news = []
        changed_since, self._changed_since = self._changed_since or (), None
        for result in results:
            partition = self.partitions.get((result.topic, result.partition))
            if partition is None:
                continue
            if partition.tell(result):
                news.append(result)
            if result.error_code == ErrorCode.NONE and partition.key not in changed_since and settle(partition):
                partition.settled()
                self._changed.pop(partition.key, None)
        self._reads, self._indexes = None, {}
        return news

    def close(self) -> None:
        """It is no longer used."""
        for partition in self.partitions.values():
            partition.unwatch()
        self.partitions.clear()
        self._changed.clear()


class FetchSessions:
    """The sessions of one leader broker, ``slots`` at most. ``random`` gives their ids: one that survived in a
    follower's memory must not be taken for another's after a restart."""

    def __init__(self, random: Random, slots: int) -> None:
        self._random = random
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}

    def __repr__(self) -> str:
        return f"<FetchSessions {list(self._sessions.values())}>"

    def __len__(self) -> int:
        return len(self._sessions)

    def admit(
        self, request: FetchRequest, reader: FetchedBy, now_ms: int, *, is_known: bool = True
    ) -> FetchSession | None:
        """The session that a follower's fetch belongs to; None for a full fetch without one.

        A follower that is no known broker gets none: any number could be made up, and each would be kept.

        Raises ``RequestRefused``: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH.
        """
        if request.session_epoch in FULL_FETCH_EPOCHS:
            self._close(request.session_id)
            wants_one = request.session_epoch == INITIAL_EPOCH and request.partitions
            return self._open(reader, now_ms) if wants_one and is_known else None
        session = self._sessions.get(request.session_id)
        if session is None or not session.reader.is_same(reader):
            raise RequestRefused(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id} of {reader!r}"
            )
        if request.session_epoch != session.epoch:
            raise RequestRefused(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"epoch {request.session_epoch} of fetch session {request.session_id}, {session.epoch} is due",
            )
        session.epoch = next_epoch(session.epoch)
        session.used_ms = now_ms
        return session

    def keep(self, replica_ids: Collection[int]) -> None:
        """Close the sessions of all other followers: they are gone."""
        for session in list(self._sessions.values()):
            if session.reader.replica_id not in replica_ids:
                self._close(session.session_id)

    def _open(self, reader: FetchedBy, now_ms: int) -> FetchSession | None:
        for session in list(self._sessions.values()):
            if session.reader.replica_id == reader.replica_id:
                self._close(session.session_id)
        if len(self._sessions) >= self._slots:
            oldest = min(self._sessions.values(), key=lambda session: session.used_ms, default=None)
            if oldest is None or now_ms - oldest.used_ms < EVICTION_MS:
                return None
            self._close(oldest.session_id)
        session_id = self._random.randint(1, INT32_MAX)
        while session_id in self._sessions:
            session_id = self._random.randint(1, INT32_MAX)
        return self._sessions.setdefault(session_id, FetchSession(session_id, reader, now_ms))

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
