"""Partition: one replica on this broker. It joins the replication rules with the log and wakes who waits for it.

Owns the role (leader, follower, neither), the high watermark while not leading, and the requests that wait here.
Does not own requests of many partitions (``replica_manager``), the fetcher's connection or any decision.
"""

from __future__ import annotations

import heapq
import logging
from uuid import UUID

from cluster.broker.replicas.purgatory import DelayedFetch, DelayedProduce
from cluster.broker.replicas.values import Host, Reader, Refused, Role, TopicPartition, TopicSettings, fetch_error
from cluster.log.appending import AppendInfo
from cluster.log.errors import LogError
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import validate_from_client
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchResult
from cluster.replication.fencing import check_leader_epoch, diverging_epoch
from cluster.replication.follower import (
    FetchPosition,
    Reaction,
    initial_truncation,
    reaction,
    truncation_offset,
)
from cluster.replication.high_watermark import follower_high_watermark
from cluster.replication.isr import IsrAnswer, IsrProposal, Outcome
from cluster.replication.leader import LeaderState, acknowledgement

logger = logging.getLogger(__name__)

#: Settled waiters are swept out of a partition's heap when it has grown to this and doubled.
_SWEEP_AT = 1024


class Partition:
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
        self._followed_high_watermark = high_watermark
        self._produces: list[tuple[int, int, int, DelayedProduce, int]] = []
        self._sweep_at = _SWEEP_AT
        self._waited = 0
        self._consumer_fetches: dict[DelayedFetch, None] = {}
        self._follower_fetches: dict[DelayedFetch, None] = {}

    def __repr__(self) -> str:
        role = "leader" if self.leader else f"follower of {self.leader_id}"
        return (
            f"<Partition {self.topic}-{self.partition} {role} epoch {self.leader_epoch} "
            f"[{self.log.log_start_offset}, {self.log.log_end_offset}) watermark {self.high_watermark}>"
        )

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark if self.leader is not None else self._followed_high_watermark

    # Roles

    def lead(self, role: Role, now_ms: int) -> None:
        """Become the leader of ``role.leader_epoch``, or go on leading in a newer one."""
        log_end_offset = self.log.log_end_offset
        self.log.epochs.assign(role.leader_epoch, log_end_offset)
        leader = LeaderState(
            broker_id=self._host.broker_id,
            replicas=role.replicas,
            isr=role.isr,
            leader_epoch=role.leader_epoch,
            partition_epoch=role.partition_epoch,
            log_end_offset=log_end_offset,
            high_watermark=self.high_watermark,
            min_insync_replicas=self.settings.min_insync_replicas,
            lag_time_max_ms=self._host.lag_time_max_ms,
            now_ms=now_ms,
            eligible=self._host.is_alive,
        )
        self.leader = leader
        self._take_over(role)
        leader.advance(log_end_offset, now_ms)
        self._settle_produces()
        self._wake(self._follower_fetches, self._consumer_fetches)

    def follow(self, role: Role) -> None:
        """Become a follower in ``role.leader_epoch`` (of nobody if there is no leader)."""
        self._followed_high_watermark = self.high_watermark
        self.leader = None
        self._take_over(role)
        log_end_offset = self.log.log_end_offset
        start = initial_truncation(self.log.epochs.latest, self._followed_high_watermark, log_end_offset)
        if start < log_end_offset:
            self._truncate(start)
        self._settle_produces()
        self._wake(self._follower_fetches, self._consumer_fetches)

    def told_again(self, role: Role, now_ms: int) -> None:
        """The controller speaks of the leader epoch that we are in already: only the ISR may be news."""
        if self.leader is not None and self.leader.told(
            role.isr, role.partition_epoch, self.log.log_end_offset, now_ms
        ):
            self._high_watermark_moved()
        self.partition_epoch = max(self.partition_epoch, role.partition_epoch)

    def stop(self) -> None:
        """Neither lead nor follow any more: everybody who waits is told so."""
        self._followed_high_watermark = self.high_watermark
        self.leader = None
        self.leader_id = -1
        self._settle_produces()
        self._wake(self._follower_fetches, self._consumer_fetches)

    def _take_over(self, role: Role) -> None:
        self.leader_id = role.leader
        self.leader_epoch = role.leader_epoch
        self.partition_epoch = role.partition_epoch
        self.replicas = role.replicas

    def leading(self, current_leader_epoch: int) -> LeaderState:
        """Our leadership, for a request that names the epoch it believes in. Raises ``Refused``."""
        error = check_leader_epoch(current_leader_epoch, self.leader_epoch)
        if error is not ErrorCode.NONE:
            raise Refused(error, f"leader epoch {current_leader_epoch}, ours is {self.leader_epoch}")
        if self.leader is None:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.leader_id} leads")
        return self.leader

    # Writing

    def append(
        self, records: memoryview, acks: int, *, zstd_allowed: bool, now_ms: int, wall_ms: int
    ) -> tuple[AppendInfo, int]:
        """Append a client's batch: what became of it, and the leader epoch in which it did.

        Raises ``Refused``, ``InvalidBatch`` or ``LogError``, in the order of kafka-semantics 2.5.
        """
        leader = self.leader
        if leader is None:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.leader_id} leads")
        if acks == -1 and not leader.has_enough_in_sync:
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(leader.isr.committed)} in sync, {leader.min_insync_replicas} wanted",
            )
        header = validate_from_client(records, self.settings.log.max_message_bytes, zstd_allowed=zstd_allowed)
        if header.is_transactional:
            raise Refused(ErrorCode.INVALID_TXN_STATE, "there is no transaction")
        counters = self._host.counters
        counters.saw_batch(header, records)
        info = self._host.rules.append(self.log, records, header, leader.leader_epoch, wall_ms)
        if info.duplicate or info.error_code is not ErrorCode.NONE:
            counters.produce_duplicates += 1
            return info, leader.leader_epoch
        counters.produce_batches += 1
        self._wake(self._follower_fetches)
        if leader.advance(self.log.log_end_offset, now_ms):
            self._high_watermark_moved()
        return info, leader.leader_epoch

    def acknowledged(self, append_epoch: int, required_offset: int) -> ErrorCode | None:
        """The answer for an append under acks=all, or None while it must wait."""
        return acknowledgement(self.leader, append_epoch, required_offset)

    def wait_for_commit(self, required_offset: int, append_epoch: int, produce: DelayedProduce, index: int) -> None:
        """Settle part ``index`` of ``produce`` when the high watermark reaches ``required_offset`` in this epoch."""
        if len(self._produces) >= self._sweep_at:
            self._produces = [waiter for waiter in self._produces if not waiter[3].is_done]
            heapq.heapify(self._produces)
            self._sweep_at = max(_SWEEP_AT, 2 * len(self._produces))
        self._waited += 1
        heapq.heappush(self._produces, (required_offset, self._waited, append_epoch, produce, index))

    def _settle_produces(self) -> None:
        """Answer those whose fate is known now. After a change of leader epoch that is all of them."""
        waiters = self._produces
        while waiters:
            required_offset, _, append_epoch, produce, index = waiters[0]
            code = acknowledgement(self.leader, append_epoch, required_offset)
            if code is None:
                return
            heapq.heappop(waiters)
            produce.settle(index, code)

    def _high_watermark_moved(self) -> None:
        self._settle_produces()
        self._wake(self._consumer_fetches)

    # Reading

    def read(
        self, wanted: FetchPartition, reader: Reader, max_bytes: int, *, at_least_one: bool, arrived: bool, now_ms: int
    ) -> FetchResult:
        """One partition's part of a fetch. ``arrived``: the request is new, so a follower's progress is noted.

        Never raises for what a request may cause: the answer carries the error.
        """
        try:
            leader = self.leading(wanted.current_leader_epoch)
            if reader.is_follower:
                self._check_follower(leader, reader, wanted.current_leader_epoch)
                upper_bound_offset = self.log.log_end_offset
            else:
                upper_bound_offset = leader.high_watermark
            diverging = self._check_position(wanted)
            if diverging is not None:
                return self._answer(wanted, leader.high_watermark, diverging=diverging)
            if reader.is_follower and arrived:
                self._follower_fetched(leader, reader, wanted.fetch_offset, now_ms)
            if wanted.fetch_offset >= upper_bound_offset or (max_bytes <= 0 and not at_least_one):
                return self._answer(wanted, leader.high_watermark)
            found = self.log.read(wanted.fetch_offset, max_bytes, upper_bound_offset, at_least_one)
        except (Refused, LogError) as error:
            return fetch_error(wanted.topic, wanted.partition, error.error_code)
        result = self._answer(wanted, leader.high_watermark)
        return result if found.records is None else result._replace(records=found.records)

    def _check_position(self, wanted: FetchPartition) -> tuple[int, int] | None:
        """Where the fetcher's history parts from ours. Raises ``Refused`` if its position is not in our log."""
        log = self.log
        log_end_offset = log.log_end_offset
        if wanted.last_fetched_epoch >= 0:
            found = log.epochs.end_offset_for(wanted.last_fetched_epoch, log_end_offset)
            try:
                diverging = diverging_epoch(wanted.last_fetched_epoch, wanted.fetch_offset, found)
            except LookupError as error:
                raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, str(error)) from error
            if diverging is not None and wanted.fetch_offset >= log.log_start_offset:
                return diverging
        if not log.log_start_offset <= wanted.fetch_offset <= log_end_offset:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {wanted.fetch_offset}")
        return None

    @staticmethod
    def _check_follower(leader: LeaderState, reader: Reader, current_leader_epoch: int) -> None:
        if reader.replica_id not in leader.followers:
            known = current_leader_epoch >= 0
            raise Refused(
                ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {reader.replica_id} is no replica",
            )
        if leader.is_of_former_life(reader.replica_id, reader.broker_epoch):
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {reader.replica_id} was restarted since")

    def _follower_fetched(self, leader: LeaderState, reader: Reader, fetch_offset: int, now_ms: int) -> None:
        moved, proposal = leader.fetched(
            reader.replica_id, fetch_offset, self.log.log_end_offset, now_ms, reader.broker_epoch
        )
        if proposal is not None:
            self._host.propose(self, proposal)
        if moved:
            self._high_watermark_moved()

    def _answer(
        self, wanted: FetchPartition, high_watermark: int, diverging: tuple[int, int] | None = None
    ) -> FetchResult:
        return FetchResult(
            wanted.topic,
            wanted.partition,
            ErrorCode.NONE,
            high_watermark,
            high_watermark,
            self.log.log_start_offset,
            diverging=diverging,
        )

    def watch(self, fetch: DelayedFetch, reader: Reader) -> None:
        """Wake ``fetch`` when there may be more for it: a follower's at an append, a consumer's at a commit."""
        (self._follower_fetches if reader.is_follower else self._consumer_fetches)[fetch] = None

    def unwatch(self, fetch: DelayedFetch, reader: Reader) -> None:
        (self._follower_fetches if reader.is_follower else self._consumer_fetches).pop(fetch, None)

    @staticmethod
    def _wake(*waiting: dict[DelayedFetch, None]) -> None:
        for fetches in waiting:
            for fetch in fetches:
                fetch.wake()

    # The in-sync replicas

    def check_replicas(self, now_ms: int) -> None:
        """The periodic look at a leader's followers: drop who lags, and let the watermark pass who only seemed near."""
        leader = self.leader
        if leader is None:
            return
        log_end_offset = self.log.log_end_offset
        proposal = leader.check_lag(log_end_offset, now_ms)
        if proposal is not None:
            self._host.propose(self, proposal)
        if leader.advance(log_end_offset, now_ms):
            self._high_watermark_moved()

    def isr_answered(self, proposal: IsrProposal, answer: IsrAnswer, now_ms: int) -> Outcome:
        """The controller's answer to a proposal of ours."""
        leader = self.leader
        if leader is None or leader.leader_epoch != proposal.leader_epoch:
            return Outcome.STALE
        before = leader.isr.committed
        outcome, moved = leader.answered(proposal, answer, self.log.log_end_offset, now_ms)
        if outcome is Outcome.COMMITTED:
            self.partition_epoch = leader.isr.partition_epoch
            self._host.counters.isr_changed(before, leader.isr.committed)
            logger.info("%s-%d: in sync are now %s", self.topic, self.partition, sorted(leader.isr.committed))
        if moved:
            self._high_watermark_moved()
        return outcome

    # Following

    def position(self) -> FetchPosition:
        """From where a follower fetches next."""
        return FetchPosition(self.leader_epoch, self.log.log_end_offset)

    def fetch_request(self, max_bytes: int) -> FetchPartition:
        """What a follower asks of its leader."""
        log = self.log
        latest = log.epochs.latest
        return FetchPartition(
            self.topic,
            self.partition,
            self.leader_epoch,
            log.log_end_offset,
            -1 if latest is None else latest,
            log.log_start_offset,
            max_bytes,
        )

    def fetched(self, sent: FetchPosition, result: FetchResult) -> Reaction:
        """Carry out what the leader answered to a fetch from ``sent``: append or cut; else say what to do.

        Raises ``LogError`` for records that cannot be appended.
        """
        if self.leader is not None or self.leader_id < 0:
            return Reaction.IGNORE
        code = _error_code(result.error_code)
        diverging = result.diverging
        what = reaction(sent, self.leader_epoch, self.log.log_end_offset, code, diverges=diverging is not None)
        if what is Reaction.TRUNCATE and diverging is not None:
            epoch, end_offset = diverging
            log_end_offset = self.log.log_end_offset
            local = self.log.epochs.end_offset_for(epoch, log_end_offset)
            self._truncate(truncation_offset(epoch, end_offset, local, log_end_offset, self._followed_high_watermark))
        elif what is Reaction.APPEND:
            records = result.records
            if isinstance(records, memoryview) and len(records):
                self.log.append_as_follower(records)
            if result.log_start_offset > self.log.log_start_offset:
                self.log.advance_log_start_offset(min(result.log_start_offset, self.log.log_end_offset))
            self._followed_high_watermark = follower_high_watermark(
                self._followed_high_watermark, result.high_watermark, self.log.log_end_offset
            )
        return what

    def cut_or_restart(self, sent: FetchPosition, offset: int, *, restart: bool) -> None:
        """After OFFSET_OUT_OF_RANGE: cut the log to ``offset``, or wipe it and begin there."""
        if self.leader is not None or self.position() != sent:
            return
        if restart:
            logger.warning("%s-%d: the leader's log begins at %d, starting again", self.topic, self.partition, offset)
            self._host.counters.truncated_records += self.log.log_end_offset - self.log.log_start_offset
            self.log.truncate_fully_and_start_at(offset)
            self._followed_high_watermark = offset
        elif offset < self.log.log_end_offset:
            self._truncate(offset)

    def _truncate(self, offset: int) -> None:
        log_end_offset = self.log.log_end_offset
        offset = max(offset, self.log.log_start_offset)
        if offset < self._followed_high_watermark:
            logger.warning(
                "%s-%d: cutting committed records, from %d to %d below the watermark %d",
                self.topic, self.partition, log_end_offset, offset, self._followed_high_watermark,
            )  # fmt: skip
        else:
            logger.info("%s-%d: cutting the log from %d to %d", self.topic, self.partition, log_end_offset, offset)
        self.log.truncate_to(offset)
        self._host.counters.truncated_records += log_end_offset - offset
        self._followed_high_watermark = min(self._followed_high_watermark, offset)


def _error_code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
