"""FetchSession: what one follower asked for is kept here, so that it need only say what has changed (KIP-227).

Owns which partitions a fetch of the session must look at, and what of it is news to the follower. Does not own which
sessions there are (``fetch_sessions``), the reading (``reads``) nor the waiting (``purgatory``).

A session registers at the partitions that it holds, and they tell it when something changes: a fetch looks at these and
at what it names itself, not at the thousands that are as they were. Those are fetched anyway, and the rules of the
leader can see when (``IdleFetches``).
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.broker.replicas.fetch_checks import FetchedBy
from cluster.broker.replicas.purgatory import DelayedFetch
from cluster.broker.replicas.reads import Reads
from cluster.broker.replicas.waiters import Waiters
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchRequest, FetchResult
from cluster.topic_partition import TopicPartition

#: Session epochs of a full fetch: without a session, and asking for one.
FINAL_EPOCH, INITIAL_EPOCH = -1, 0
FULL_FETCH_EPOCHS = frozenset({FINAL_EPOCH, INITIAL_EPOCH})
INT32_MAX = 2**31 - 1
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
        self._is_settled = False
        self._settled_until_ms = 0

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
        self._high_watermark = result.high_watermark
        self._log_start_offset = result.log_start_offset
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
        changed_since = self._changed_since or ()
        self._changed_since = None
        for result in results:
            partition = self.partitions.get((result.topic, result.partition))
            if partition is None:
                continue
            if partition.tell(result):
                news.append(result)
            if result.error_code == ErrorCode.NONE and partition.key not in changed_since and settle(partition):
                partition.settled()
                self._changed.pop(partition.key, None)
        self._reads = None
        self._indexes = {}
        return news

    def close(self) -> None:
        """It is no longer used."""
        for partition in self.partitions.values():
            partition.unwatch()
        self.partitions.clear()
        self._changed.clear()
