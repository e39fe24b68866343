"""What the leader of a partition knows of its followers, and what follows from it.

Owns when the ISR should change, where the high watermark is (Kafka's Partition; docs/reference/kafka.md "Leader"), and
when a write may be acknowledged. Does not own how far one follower is (``follower_progress``), the log (its end comes
as an argument), the request to the controller, or any clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from cluster.isr import UNKNOWN_BROKER_EPOCH, IsrAnswer, IsrProposal
from cluster.protocol.errors import ErrorCode
from cluster.replication.follower_progress import UNKNOWN_OFFSET, FollowerProgress, IdleFetches
from cluster.replication.high_watermark import leader_high_watermark
from cluster.replication.isr import InSyncReplicas, IsrOutcome


def may_join(follower_end_offset: int, high_watermark: int, epoch_start_offset: int) -> bool:
    """In the ISR belongs who holds all that is committed: a new leader's watermark lags, so its epoch's start counts
    too (KAFKA-7128)."""
    return follower_end_offset >= high_watermark and follower_end_offset >= epoch_start_offset


class LeaderState:
    """One partition's leadership in one leader epoch.

    ``eligible`` says whether a replica may join the ISR (its broker is alive). Methods that may move the high
    watermark return True if it moved.
    """

    __slots__ = (
        "broker_id",
        "eligible",
        "epoch_start_offset",
        "followers",
        "high_watermark",
        "isr",
        "lag_time_max_ms",
        "leader_epoch",
        "leading_since",
        "may_join",
        "min_insync_replicas",
        "partition",
        "replication_factor",
        "topic",
    )

    def __init__(
        self,
        *,
        broker_id: int,
        replicas: Sequence[int],
        isr: Iterable[int],
        leader_epoch: int,
        partition_epoch: int,
        log_end_offset: int,
        high_watermark: int,
        min_insync_replicas: int,
        lag_time_max_ms: int,
        now_ms: int,
        eligible: Callable[[int], bool],
        may_join: Callable[[int, int, int], bool] = may_join,
        adding: Collection[int] = (),
        leading_since: int | None = None,
        topic: str = "",
        partition: int = -1,
    ) -> None:
        #: Whose leadership it is, for people.
        self.topic = topic
        self.partition = partition
        self.broker_id = broker_id
        self.leader_epoch = leader_epoch
        #: The first of the leader epochs through which this broker has led without a break, so that its log was not
        #: cut since.
        self.leading_since = leader_epoch if leading_since is None else leading_since
        #: The log end offset at which this epoch began: a follower below it may lack what is committed (KAFKA-7128).
        self.epoch_start_offset = log_end_offset
        self.high_watermark = high_watermark
        #: min.insync.replicas can never ask for more replicas than there are.
        self.min_insync_replicas = min(min_insync_replicas, len(replicas))
        #: Of how many replicas a lack is told: those that a reassignment adds are not missed yet.
        self.replication_factor = sum(replica not in adding for replica in replicas)
        self.lag_time_max_ms = lag_time_max_ms
        self.eligible = eligible
        self.may_join = may_join
        self.isr = InSyncReplicas(isr, leader_epoch, partition_epoch)
        #: A member of the ISR gets the benefit of the doubt for one lag time; others have to show themselves.
        too_long_ago_ms = now_ms - lag_time_max_ms - 1
        self.followers = {
            replica: FollowerProgress(replica, now_ms if replica in self.isr.committed else too_long_ago_ms)
            for replica in replicas
            if replica != broker_id
        }

    def __repr__(self) -> str:
        return f"<LeaderState of {self.broker_id} epoch {self.leader_epoch} at {self.high_watermark} {self.isr!r}>"

    def configure(self, min_insync_replicas: int) -> None:
        """The topic asks for another number from now on. ``advance`` is to be called: the watermark may move."""
        self.min_insync_replicas = min(min_insync_replicas, len(self.followers) + 1)

    @property
    def has_enough_in_sync(self) -> bool:
        """Whether acks=all may be accepted and the high watermark may move: |ISR| >= min.insync.replicas."""
        return len(self.isr.committed) >= self.min_insync_replicas

    @property
    def is_under_replicated(self) -> bool:
        """As Kafka counts, in a reassignment too: against the replicas there were, by number alone."""
        return len(self.isr.committed) < self.replication_factor

    @property
    def knows_its_end(self) -> bool:
        """Whether the high watermark has reached the start of this epoch, so that 'latest' has a true answer."""
        return self.high_watermark >= self.epoch_start_offset

    def advance(self, log_end_offset: int, now_ms: int) -> bool:
        """Compute the high watermark again, after an append, a fetch, an ISR change or some time."""
        isr = self.isr
        if len(isr.committed) < self.min_insync_replicas:
            return False
        if not self.followers:
            # No one to wait for, and it is asked after every append.
            if log_end_offset <= self.high_watermark:
                return False
            self.high_watermark = log_end_offset
            return True
        maximal = isr.maximal
        counted = [
            follower.log_end_offset
            for follower in self.followers.values()
            if follower.replica_id in maximal or self._is_joining(follower, log_end_offset, now_ms)
        ]
        moved_to = leader_high_watermark(self.high_watermark, log_end_offset, counted)
        if moved_to == self.high_watermark:
            return False
        self.high_watermark = moved_to
        return True

    def _is_joining(self, follower: FollowerProgress, log_end_offset: int, now_ms: int) -> bool:
        """Whether to wait for a replica that is about to join: else the watermark would run from it forever."""
        return follower.is_caught_up(log_end_offset, now_ms, self.lag_time_max_ms) and self.eligible(
            follower.replica_id
        )

    def is_of_former_life(self, replica_id: int, broker_epoch: int) -> bool:
        """Whether a fetch was sent before the follower was restarted, although it arrives after (KIP-903)."""
        return broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < self.followers[replica_id].broker_epoch

    def fetched(
        self,
        replica_id: int,
        fetch_offset: int,
        log_end_offset: int,
        now_ms: int,
        broker_epoch: int = UNKNOWN_BROKER_EPOCH,
        log_start_offset: int = UNKNOWN_OFFSET,
    ) -> tuple[bool, IsrProposal | None]:
        """Note a follower's fetch: whether the high watermark moved, and the ISR change to ask for.

        The replica must be one of ``followers``, and the fetch not of its former life.
        """
        follower = self.followers[replica_id]
        follower.broker_epoch = max(follower.broker_epoch, broker_epoch)
        follower.log_start_offset = log_start_offset
        changed = follower.fetched(fetch_offset, log_end_offset, now_ms)
        proposal = None
        if replica_id not in self.isr.committed and self._may_join(follower):
            proposal = self.isr.propose_adding(replica_id, self._broker_epochs())
        return (changed or proposal is not None) and self.advance(log_end_offset, now_ms), proposal

    def low_watermark(self, log_start_offset: int) -> int:
        """The least log start among ours and those of the live followers; -1 while one has not told its own."""
        starts = [each.log_start_offset for each in self.followers.values() if self.eligible(each.replica_id)]
        return min((log_start_offset, *starts))

    def settle(self, replica_id: int, fetch_offset: int, log_end_offset: int, idle_fetches: IdleFetches) -> bool:
        """Whether a follower's next fetch can tell us nothing that its last one did not: it is at our end and in sync,
        and it said so in this leader epoch. Then ``idle_fetches`` are fetches of it."""
        follower = self.followers.get(replica_id)
        if follower is None or replica_id not in self.isr.committed:
            return False
        if not follower.log_end_offset == fetch_offset == log_end_offset:
            return False
        follower.idle_fetches = idle_fetches
        return True

    def _broker_epochs(self) -> dict[int, int]:
        return {
            follower.replica_id: follower.broker_epoch
            for follower in self.followers.values()
            if follower.broker_epoch != UNKNOWN_BROKER_EPOCH
        }

    def _may_join(self, follower: FollowerProgress) -> bool:
        return (
            self.isr.pending is None
            and self.may_join(follower.log_end_offset, self.high_watermark, self.epoch_start_offset)
            and self.eligible(follower.replica_id)
        )

    def check_lag(self, log_end_offset: int, now_ms: int) -> IsrProposal | None:
        """The ISR change that drops members who have not been caught up for ``replica.lag.time.max.ms``."""
        late = [
            follower.replica_id
            for follower in self.followers.values()
            if follower.replica_id in self.isr.committed
            and not follower.is_caught_up(log_end_offset, now_ms, self.lag_time_max_ms)
        ]
        return self.isr.propose_removing(late, self._broker_epochs()) if late else None

    def answered(
        self, proposal: IsrProposal, answer: IsrAnswer, log_end_offset: int, now_ms: int
    ) -> tuple[IsrOutcome, bool]:
        """Settle a proposed change by the controller's answer: what it did, and whether the high watermark moved."""
        outcome = self.isr.answered(proposal, answer)
        settled = outcome in (IsrOutcome.COMMITTED, IsrOutcome.REVERTED)
        return outcome, settled and self.advance(log_end_offset, now_ms)

    def told(self, isr: Iterable[int], partition_epoch: int, log_end_offset: int, now_ms: int) -> bool:
        """Take over a newer ISR that the controller sent within this leader epoch."""
        return self.isr.told(isr, partition_epoch) and self.advance(log_end_offset, now_ms)


def acknowledgement(leader: LeaderState | None, append_epoch: int, required_offset: int) -> ErrorCode | None:
    """The answer to a write under acks=all, or None while it must wait (docs/produce-checks.md, row 23).

    ``append_epoch`` is the leader epoch in which it was appended. As in Kafka's ``DelayedProduce`` a newer epoch is
    nothing to a broker that continues leading: its log holds the write where it was put. One that has stopped leading
    in between confirms nothing, even if its high watermark is beyond the offset: another leader may have put something
    else there (Redpanda issue 3003).
    """
    if leader is None or append_epoch < leader.leading_since:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if leader.high_watermark < required_offset:
        return None
    if len(leader.isr.maximal) < leader.min_insync_replicas:
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE
