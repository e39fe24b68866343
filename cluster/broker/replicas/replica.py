"""Replica: one replica on this broker. It joins the replication rules with the log and wakes who waits for it.

Owns the role (leader, follower, neither) and what a leader does. Does not own what a follower does (``FollowerLog``),
requests of several partitions (``ReplicaManager``), or any decision.
"""

from __future__ import annotations

import logging
from uuid import UUID

from cluster.broker.replicas.assignments import Role
from cluster.broker.replicas.fetch_checks import (
    FetchedBy,
    FetchFinding,
    answer,
    check_follower,
    check_position,
    fetch_error,
    proves_its_end,
)
from cluster.broker.replicas.follower_log import FollowerLog
from cluster.broker.replicas.host import Host, RequestRefused, TopicSettings
from cluster.broker.replicas.produce_checks import Looked, check_batch, check_coordinators_size, check_leadership
from cluster.broker.replicas.under_min_isr import UnderMinIsr
from cluster.broker.replicas.waiters import Waiters
from cluster.isr import IsrAnswer, IsrProposal
from cluster.log.appending import AppendInfo
from cluster.log.errors import LogError
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchResult
from cluster.protocol.record_checks import Effort
from cluster.replication.follower import FetchPosition, Reaction, Restart
from cluster.replication.isr import IsrOutcome
from cluster.replication.leader import LeaderState
from cluster.replication.leader_epochs import check_leader_epoch
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Replica:
    """One replica. All times are milliseconds; ``now_ms`` is monotonic, ``wall_ms`` is for record timestamps."""

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        log: PartitionLog,
        high_watermark: int,
        settings: TopicSettings,
        host: Host,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.log = log
        self.settings = settings
        self.leader: LeaderState | None = None
        self.leader_id = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self._host = host
        self._traffic = host.counters.topic(topic)
        self._follower_log = FollowerLog(self.key, log, high_watermark, host.counters, host.rules, host.journal)
        self.waiters = Waiters(host.rules.acknowledgement)
        self._under_min_isr = UnderMinIsr(self.key, host.journal)
        self._told_log_start_offset = log.log_start_offset

    def __repr__(self) -> str:
        role = "leader" if self.leader else f"follower of {self.leader_id}"
        return (
            f"<Replica {self.topic}-{self.partition} {role} epoch {self.leader_epoch} "
            f"[{self.log.log_start_offset}, {self.log.log_end_offset}) watermark {self.high_watermark}>"
        )

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def fetch_lag(self) -> int:
        """How many committed records of its leader a follower lacked when last told about it; a leader lacks none."""
        return 0 if self.leader is not None else self._follower_log.lag

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark if self.leader is not None else self._follower_log.high_watermark

    # Roles

    def lead(self, role: Role, now_ms: int) -> None:
        """Become the leader of ``role.leader_epoch``, or continue leading in a newer one. Raises ``LogError``."""
        log_end_offset = self.log.log_end_offset
        self.log.epochs.assign(role.leader_epoch, log_end_offset)
        leader = self._host.rules.lead(
            broker_id=self._host.broker_id,
            replicas=role.replicas,
            adding=role.adding,
            isr=role.isr,
            leader_epoch=role.leader_epoch,
            partition_epoch=role.partition_epoch,
            log_end_offset=log_end_offset,
            high_watermark=self.high_watermark,
            min_insync_replicas=self.settings.min_insync_replicas,
            lag_time_max_ms=self._host.lag_time_max_ms,
            now_ms=now_ms,
            eligible=self._host.is_alive,
            may_join=self._host.rules.may_join,
            leading_since=role.leader_epoch if self.leader is None else self.leader.leading_since,
            topic=self.topic,
            partition=self.partition,
        )
        high_watermark, self.leader = leader.high_watermark, leader
        self._take_over(role)
        leader.advance(log_end_offset, now_ms)
        self._role_changed(high_watermark)

    def follow(self, role: Role) -> None:
        """Become a follower in ``role.leader_epoch`` (of no broker if there is no leader). Raises ``LogError``: then it
        leads no more, and its epoch is the former one."""
        self._follower_log.high_watermark = self.high_watermark
        self.leader = None
        try:
            self._follower_log.begin()
            # Not before: a request that failed is news when it is repeated.
            self._take_over(role)
        finally:
            self._role_changed(self.high_watermark)

    def told_again(self, role: Role, now_ms: int) -> None:
        """The controller speaks of the leader epoch that we are in already: only the ISR may be news."""
        if self.leader is not None:
            high_watermark = self.leader.high_watermark
            moved = self.leader.told(role.isr, role.partition_epoch, self.log.log_end_offset, now_ms)
            self._under_min_isr.look(self.leader, self.settings.min_insync_replicas, high_watermark)
            if moved:
                self.waiters.committed(self.leader)
        self.partition_epoch = max(self.partition_epoch, role.partition_epoch)
        self.waiters.tell_followers()

    def stop(self) -> None:
        """Neither lead nor follow anymore: every waiter is told so."""
        self._follower_log.high_watermark = self.high_watermark
        self.leader, self.leader_id = None, -1
        self._role_changed(self.high_watermark)

    def configure(self, settings: TopicSettings, now_ms: int) -> None:
        """The topic's configuration has changed."""
        self.settings = settings
        self.log.update_config(settings.log)
        if self.leader is not None:
            self.leader.configure(settings.min_insync_replicas)
            self._under_min_isr.look(self.leader, settings.min_insync_replicas, self.leader.high_watermark)
            if self.leader.advance(self.log.log_end_offset, now_ms):
                self.waiters.committed(self.leader)

    def _take_over(self, role: Role) -> None:
        self.leader_id = role.leader
        self.leader_epoch = role.leader_epoch
        self.partition_epoch = role.partition_epoch
        self.replicas = role.replicas

    def leading(self, current_leader_epoch: int) -> LeaderState:
        """Our leadership, for a request that names the epoch it believes in. Raises ``RequestRefused``."""
        error = check_leader_epoch(current_leader_epoch, self.leader_epoch)
        if error is not ErrorCode.NONE:
            raise RequestRefused(error, f"leader epoch {current_leader_epoch}, ours is {self.leader_epoch}")
        if self.leader is None:
            raise RequestRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.leader_id} leads")
        return self.leader

    def end_offset_for(self, leader_epoch: int, current_leader_epoch: int) -> tuple[int, int]:
        """Where an epoch ends in our log: (the largest epoch not above it, its end). Raises ``RequestRefused``."""
        self.leading(current_leader_epoch)
        return self._host.rules.end_offset_for(self.log.epochs, leader_epoch, self.log.log_end_offset)

    # Writing

    def append(
        self,
        records: memoryview,
        header: BatchHeader,
        acks: int,
        now_ms: int,
        wall_ms: int,
        effort: Effort,
        client_host: str,
        looked: Looked | None = None,
    ) -> tuple[AppendInfo, int]:
        """Append a client's batch: what became of it, in which leader epoch. Rows 7-22 of docs/produce-checks.md.
        Raises ``RequestRefused``, ``InvalidBatch``, ``LogError``; ``Postponed`` unless it was ``looked`` inside."""
        leader, log = check_leadership(self.leader, self.leader_id, acks), self.log
        records, header = check_batch(records, header, log, wall_ms, effort, looked)
        counters, epoch = self._host.counters, leader.leader_epoch
        log.client_host = client_host
        try:
            info = self._host.rules.append(log, records, header, epoch, wall_ms)
        except LogError:
            counters.batch_arrived(header, records, is_appended=False)
            raise
        if info.duplicate:
            counters.batch_arrived(header, records, is_appended=False)
            counters.produce_duplicates += 1
            return info, epoch
        counters.batch_arrived(header, records, is_appended=True)
        traffic = self._traffic
        traffic.messages_in += header.record_count
        traffic.bytes_in += len(records)
        self._grown(leader, now_ms)
        return info, epoch

    def append_of_coordinator(self, batch: bytearray, header: BatchHeader, now_ms: int) -> tuple[AppendInfo, int]:
        """Append what a coordinator writes for a producer, under acks=all: a marker, or offsets of its transaction.
        Returns as ``append`` does. Raises ``RequestRefused`` or ``LogError``."""
        leader, log = check_leadership(self.leader, self.leader_id, -1), self.log
        check_coordinators_size(header, log.config)
        info = log.append_as_coordinator(batch, leader.leader_epoch)
        self._grown(leader, now_ms)
        return info, leader.leader_epoch

    def _grown(self, leader: LeaderState, now_ms: int) -> None:
        self.waiters.wake_followers()
        if leader.advance(self.log.log_end_offset, now_ms):
            self.waiters.committed(leader)

    def _role_changed(self, high_watermark: int) -> None:
        self._under_min_isr.look(self.leader, self.settings.min_insync_replicas, high_watermark)
        self.waiters.settle_produces(self.leader)
        self.settle_deletions()
        self.waiters.wake_all()

    def settle_deletions(self) -> None:
        """A replica's log start moved, or which replicas count."""
        self.waiters.settle_deletions(self.leader, self.log.log_start_offset)

    # Reading

    def read(
        self, wanted: FetchPartition, reader: FetchedBy, max_bytes: int, at_least_one: bool, arrived: bool, now_ms: int
    ) -> FetchFinding:
        """One partition's part of a fetch. ``arrived``: the request is new, so a follower's progress is noted.

        Never raises for what a request may cause: the answer carries the error.
        """
        rules = self._host.rules
        try:
            leader = self.leading(wanted.current_leader_epoch)
            last_position = upper_bound_offset = self.log.log_end_offset
            if reader.is_follower:
                check_follower(leader, reader, wanted.current_leader_epoch)
            else:
                upper_bound_offset = rules.fetch_end(self.log, leader.high_watermark, reader.only_committed)
                last_position = rules.last_position(self.log, leader.high_watermark, wanted.fetch_offset)
            diverging = check_position(self.log, wanted, rules.end_offset_for, last_position)
            if diverging is not None:
                return FetchFinding(answer(self.log, wanted, leader.high_watermark, diverging=diverging), 0, True)
            if reader.is_follower and arrived and proves_its_end(self.log, wanted):
                self._follower_fetched(leader, reader, wanted, now_ms)
            if wanted.fetch_offset >= upper_bound_offset or (max_bytes <= 0 and not at_least_one):
                return FetchFinding(answer(self.log, wanted, leader.high_watermark), 0, False)
            span = (wanted.fetch_offset, max_bytes, upper_bound_offset, at_least_one)
            found = self.log.read(*span) if reader.is_follower else rules.read(self.log, *span)
        except (RequestRefused, LogError) as error:
            if isinstance(error.__cause__, OSError) and isinstance(error, LogError):
                self._host.storage_failed(error)
            return FetchFinding(fetch_error(wanted.topic, wanted.partition, error.error_code), 0, True)
        aborted = None
        if reader.only_committed:
            aborted = rules.aborted_transactions(self.log, wanted.fetch_offset, found, upper_bound_offset)
        result = answer(self.log, wanted, leader.high_watermark, found.records, aborted=aborted)
        return FetchFinding(result, found.readable_bytes, found.is_older_segment)

    def _follower_fetched(self, leader: LeaderState, reader: FetchedBy, wanted: FetchPartition, now_ms: int) -> None:
        told = (wanted.fetch_offset, self.log.log_end_offset, now_ms, reader.broker_epoch, wanted.log_start_offset)
        moved, proposal = leader.fetched(reader.replica_id, *told)
        self.settle_deletions()
        if proposal is not None:
            self._host.propose(self, proposal)
        if moved:
            self.waiters.committed(self.leader)

    # The in-sync replicas

    def check_replicas(self, now_ms: int) -> None:
        """The periodic look at a leader's followers: drop who lags, and let the watermark pass who only seemed near.

        Retention may have moved the log's start meanwhile, which followers should know.
        """
        leader = self.leader
        if leader is None:
            return
        if self.log.log_start_offset != self._told_log_start_offset:
            self._told_log_start_offset = self.log.log_start_offset
            self.waiters.tell_followers()
        self.log.committed(leader.high_watermark)
        log_end_offset = self.log.log_end_offset
        proposal = leader.check_lag(log_end_offset, now_ms)
        if proposal is not None:
            self._host.propose(self, proposal)
        if leader.advance(log_end_offset, now_ms):
            self.waiters.committed(self.leader)

    def isr_answered(self, proposal: IsrProposal, answer: IsrAnswer, now_ms: int) -> IsrOutcome:
        """The controller's answer to a proposal of ours."""
        leader = self.leader
        if leader is None or leader.leader_epoch != proposal.leader_epoch:
            return IsrOutcome.STALE
        before, high_watermark = leader.isr.committed, leader.high_watermark
        self.waiters.tell_followers()
        outcome, moved = leader.answered(proposal, answer, self.log.log_end_offset, now_ms)
        self._under_min_isr.look(leader, self.settings.min_insync_replicas, high_watermark)
        if outcome is IsrOutcome.COMMITTED:
            self.partition_epoch = leader.isr.partition_epoch
            self._host.counters.isr_changed(before, leader.isr.committed)
            logger.info("%s-%d: in sync are now %s", self.topic, self.partition, sorted(leader.isr.committed))
        if moved:
            self.waiters.committed(self.leader)
        return outcome

    def is_pending(self, proposal: IsrProposal) -> bool:
        """Whether a proposal of ours is still open."""
        return self.leader is not None and self.leader.isr.pending is proposal

    # Following

    def position(self) -> FetchPosition:
        """From where a follower fetches next."""
        return self._follower_log.position(self.leader_epoch)

    def fetch_request(self, max_bytes: int) -> FetchPartition:
        """What a follower asks of its leader."""
        return self._follower_log.request(self.leader_epoch, max_bytes)

    def fetched(self, sent: FetchPosition, result: FetchResult) -> Reaction:
        """Carry out what the leader answered to a fetch from ``sent``: append or cut; else say what to do.

        Raises ``LogError`` for records that cannot be appended.
        """
        if self.leader is not None or self.leader_id < 0:
            return Reaction.IGNORE
        return self._follower_log.apply(sent, self.leader_epoch, result)

    def go_on_from(self, sent: FetchPosition, target: int | Restart) -> None:
        """After OFFSET_OUT_OF_RANGE at ``sent``: cut the log to an offset, or wipe it and start over.

        Raises ``LogError``.
        """
        if self.leader is not None or self.position() != sent:
            return
        if isinstance(target, Restart):
            self._follower_log.restart(target.offset)
        else:
            self._follower_log.cut(target)
