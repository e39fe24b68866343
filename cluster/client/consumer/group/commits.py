"""Commits: what a program commits, and what is committed for it: enable.auto.commit, auto.commit.interval.ms.

Owns when positions are committed by themselves, and the telling of callbacks, all in the program's thread. Does not own
how a commit is sent (``offset_calls``). Kafka's ConsumerCoordinator has the same rules.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.consumer.group.group_errors import RetriableCommitFailed
from cluster.client.consumer.group.group_io import GroupIo
from cluster.client.consumer.group.offset_calls import CommitCall, FetchCall, OffsetCall
from cluster.client.consumer.positions import Positions
from cluster.client.consumer.results import ConsumerError
from cluster.client.one_thread import OneThread
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: What ``commit_async`` calls: the offsets, and why they are not committed, or None.
OnCommit = Callable[[Mapping[TopicPartition, OffsetAndMetadata], ConsumerError | None], object]
#: Offsets for the time until they are committed.
Offsets = Mapping[TopicPartition, OffsetAndMetadata]

_FOREVER = float("inf")


class Commits:
    """For the program's thread. ``interval_ms`` is None if nothing is committed without being told to."""

    def __init__(
        self,
        io: GroupIo,
        positions: Positions,
        clock: Clock,
        one_thread: OneThread,
        *,
        timeout_ms: int,
        interval_ms: int | None,
        retry_ms: int,
    ) -> None:
        self.is_automatic = interval_ms is not None
        self._io = io
        self._positions = positions
        self._clock = clock
        self._one_thread = one_thread
        self.timeout_ms = timeout_ms
        self._interval_ms = interval_ms or 0
        self._retry_ms = retry_ms
        self._next_ms: float = clock.monotonic_ms() + self._interval_ms
        # Before partitions are given away: what is committed then, and until when that is waited for.
        self._last: CommitCall | None = None
        self._last_ends_ms = 0.0

    def __repr__(self) -> str:
        return f"Commits({'automatic' if self.is_automatic else 'when told'}, {self._last!r})"

    # Calls

    def begin(self, offsets: Offsets) -> CommitCall:
        """A commit that the program waits for: see ``end``."""
        return self._add(CommitCall(offsets, _FOREVER, is_retried=True))

    def begin_fetch(self, partitions: list[TopicPartition]) -> FetchCall:
        """A question for committed offsets."""
        call = FetchCall(partitions, _FOREVER)
        with self._io.lock:
            self._io.core.offsets.add(call)
        self._io.wakeup()
        return call

    def end(self, call: OffsetCall) -> None:
        """The program waits no longer."""
        with self._io.lock:
            self._io.core.offsets.forget(call)

    def is_done(self, call: OffsetCall) -> bool:
        """Raises the error of the call."""
        with self._io.lock:
            is_done, error = call.is_done, call.error
        if is_done and error is not None:
            raise error
        return is_done

    def send(self, offsets: Offsets, on_done: OnCommit | None) -> None:
        """A commit that no one waits for. What may succeed later is an error here, too: a later commit has overtaken it
        then.
        """
        kept = dict(offsets)

        def tell(error: ConsumerError | None) -> None:
            if on_done is not None:
                on_done(kept, error)
            elif error is not None:
                logger.error("the asynchronous commit of %s failed: %s", kept, error)

        deadline_ms = self._clock.monotonic_ms() + self.timeout_ms
        self._add(CommitCall(kept, deadline_ms, is_retried=False, on_done=tell))

    def tell_ended(self) -> None:
        """Call the callbacks of commits that have ended, in the order of their ends."""
        while True:
            with self._io.lock:
                call = self._io.core.offsets.ended.popleft() if self._io.core.offsets.ended else None
            if call is None:
                return
            if call.on_done is not None:
                with self._one_thread.calling_back():
                    call.on_done(call.error)

    def _add(self, call: CommitCall) -> CommitCall:
        with self._io.lock:
            self._io.core.offsets.add(call)
        self._io.wakeup()
        return call

    # By themselves

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the program is in each partition: everything before was returned by ``poll``."""
        return {
            each.key: OffsetAndMetadata(each.position, each.offset_epoch)
            for each in self._positions.assignment
            if each.position is not None
        }

    def commit_if_due(self, now_ms: float) -> None:
        """The commit of every auto.commit.interval.ms."""
        if not self.is_automatic or now_ms < self._next_ms:
            return
        with self._io.lock:
            may_commit = self._io.core.membership.committing is not None
        self._next_ms = now_ms + (self._interval_ms if may_commit else self._retry_ms)
        offsets = self.consumed()
        if may_commit and offsets:
            self._add(CommitCall(offsets, now_ms + self.timeout_ms, is_retried=False, on_done=self._told))

    def restart(self) -> None:
        """There is a new assignment: the interval begins again."""
        self._next_ms = self._clock.monotonic_ms() + self._interval_ms

    def next_ms(self) -> float:
        """When ``commit_if_due`` has something to do."""
        return self._next_ms if self.is_automatic else _FOREVER

    def _told(self, error: ConsumerError | None) -> None:
        if error is None:
            return
        logger.warning("the automatic commit of offsets failed: %s", error)
        if isinstance(error, RetriableCommitFailed):
            self._next_ms = min(self._next_ms, self._clock.monotonic_ms() + self._retry_ms)

    def abandon(self) -> None:
        """What was consumed is another member's: it is not committed anymore."""
        if self._last is not None:
            self.end(self._last)
        self._last = None

    def is_settled(self, longest_ms: float) -> bool:
        """Before partitions are given away: whether what was consumed is committed, or cannot be, or ``longest_ms`` are
        over since the first call. Call it until it is so; no record may be taken meanwhile.
        """
        if not self.is_automatic:
            return True
        if self._last is None:
            offsets = self.consumed()
            if not offsets:
                return True
            self._last_ends_ms = self._clock.monotonic_ms() + longest_ms
            self._last = self.begin(offsets)
        call = self._last
        try:
            if not self.is_done(call) and self._clock.monotonic_ms() < self._last_ends_ms:
                return False
            if not call.is_done:
                logger.warning("the commit before partitions are given away took more than %d ms", longest_ms)
        except ConsumerError as error:
            logger.warning("the commit before partitions are given away failed: %s", error)
        self._last = None
        self.end(call)
        return True
