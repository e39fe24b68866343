"""Roles: carries out what the controller says about this broker's replicas (LeaderAndIsr, StopReplica).

Owns the checks per partition (Kafka's ReplicaManager) and their order: a partition stops following before it leads, and
follows only after its log is ready. The checks of the request as a whole (controller and broker epoch) were made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from cluster.broker.checkpoints import Blocking, unbroken
from cluster.broker.pauses import Pauses, Shares
from cluster.broker.replicas.assignments import ReplicaAssignment, ReplicaElsewhere, ReplicaStop, Role
from cluster.broker.replicas.fetchers import Fetchers
from cluster.broker.replicas.former_topics import is_former, stops_of_former
from cluster.broker.replicas.host import TopicSettings
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.log.errors import LogError, LogOffline, OutOfFiles
from cluster.log.manager import LogManager
from cluster.log.topic_ids import TopicIds
from cluster.protocol.errors import ErrorCode
from cluster.replication.high_watermark import restored_high_watermark
from cluster.replication.leader_epochs import check_stop_replica
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: Roles that are logged one by one; of more the log has the sum.
LOGGED_EACH = 50


class Roles:
    """Makes the replicas of one broker lead, follow and stop. ``role_taken`` learns of each that does so, at once."""

    def __init__(
        self,
        replicas: ReplicaManager,
        fetchers: Fetchers,
        logs: LogManager,
        *,
        topic_settings: Callable[[str], TopicSettings],
        clock: Clock,
        storage: Storage,
        blocking: Blocking,
        storage_failed: Callable[[LogError], None],
        role_taken: Callable[[Replica], None] = lambda replica: None,
    ) -> None:
        self._storage_failed = storage_failed
        self._role_taken = role_taken
        self._replicas = replicas
        self._fetchers = fetchers
        self._logs = logs
        self._topic_settings = topic_settings
        self._clock = clock
        self._storage = storage
        self._blocking = blocking
        self._log_level = logging.INFO
        #: Replicas whose logs are to go, while that is carried out.
        self._deleting: set[TopicPartition] = set()

    def __repr__(self) -> str:
        return f"<Roles of {self._replicas!r}>"

    def opens_logs(self, assignments: Iterable[ReplicaAssignment]) -> bool:
        """Whether some of these replicas have no log here yet, or one without a topic id, or one of a former topic, or
        one that is being deleted: it and its checkpoint lines are no more than a log of before (Kafka's
        ``replicaStateChangeLock``)."""
        return any(self._is_incomplete(asked) for asked in assignments)

    def _is_incomplete(self, asked: ReplicaAssignment) -> bool:
        key = (asked.topic, asked.partition)
        log = self._logs.get(*key)
        is_there = log is not None and log.topic_id is not None and key not in self._deleting
        return not is_there or is_former(asked, self._logs, self._replicas.broker_id)

    async def open_logs(self, assignments: Iterable[ReplicaAssignment]) -> None:
        """Make the logs that are missing, and have their topic ids on the disk, all of them together and off
        the loop, before ``assign`` gives them a role. A log of a former topic of the same name is deleted first.

        What fails here is no error yet: ``assign`` tries it again, and answers for it.
        """
        assignments = list(assignments)
        if former := stops_of_former(assignments, self._logs, self._replicas.broker_id):
            await self.stop(former)
        ids = TopicIds(self._storage)
        settings: dict[str, TopicSettings] = {}
        missing = {
            (asked.topic, asked.partition): (self._settings_of(asked.topic, settings).log, asked.topic_id)
            for asked in assignments
            if self._replicas.broker_id in asked.role.replicas and self._is_incomplete(asked)
        }
        try:
            configs = {key: config for key, (config, _) in missing.items()}
            await unbroken(self._blocking, partial(self._logs.prepare, configs))
        except LogError as error:
            logger.warning("%d logs could not be prepared: %s", len(missing), error)
        pause = Pauses(Shares(self._clock.monotonic_ns))
        for key, (config, topic_id) in missing.items():
            await pause()
            try:
                log = self._logs.get_or_create(*key, None, config)
            except LogError as error:
                logger.debug("%s-%d cannot be made: %s", *key, error)
                continue
            if log.topic_id is None:
                ids.add(log, topic_id)
        if ids:
            try:
                await unbroken(self._blocking, ids.run)
            except OSError as error:
                logger.warning("%r could not all be written: %s", ids, error)
            else:
                ids.finish()

    def assign(self, assignments: Sequence[ReplicaAssignment]) -> dict[TopicPartition, ErrorCode]:
        """Take over the roles; an assignment of an epoch that is not newer than ours is refused."""
        settings: dict[str, TopicSettings] = {}
        self._log_level = logging.INFO if len(assignments) <= LOGGED_EACH else logging.DEBUG
        codes = {(asked.topic, asked.partition): self._assign(asked, settings) for asked in assignments}
        if self._log_level == logging.DEBUG:
            logger.info("%d roles were assigned: %r", len(codes), self._replicas)
        return codes

    def _assign(self, asked: ReplicaAssignment, settings: dict[str, TopicSettings]) -> ErrorCode:
        broker_id = self._replicas.broker_id
        role = asked.role
        if broker_id not in role.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = self._replicas.partitions.get((asked.topic, asked.partition))
        if partition is not None:
            if partition.topic_id != asked.topic_id:
                return ErrorCode.INCONSISTENT_TOPIC_ID
            if role.leader_epoch < partition.leader_epoch:
                return ErrorCode.STALE_CONTROLLER_EPOCH
            if role.leader_epoch == partition.leader_epoch:
                partition.told_again(role, self._clock.monotonic_ms())
                return ErrorCode.NONE
        try:
            if partition is None:
                partition = self._open(asked, self._settings_of(asked.topic, settings))
            self._take_role(partition, role)
        except LogError as error:
            # Very many may lack a file descriptor or be damaged, and be tried again: that is told where it is found.
            level = logging.DEBUG if isinstance(error, OutOfFiles | LogOffline) else logging.ERROR
            logger.log(level, "%s-%d cannot take its role: %s", asked.topic, asked.partition, error)
            self._failed(error)
            return error.error_code
        return ErrorCode.NONE

    def _failed(self, error: LogError) -> None:
        """A disk that fails is told, no matter who finds it first (Kafka's ``LogDirFailureChannel``): an error code for
        the controller alone would leave the partition without its leader for as long as nothing else happens. A log
        that was found damaged at the start is no news: it keeps this replica offline, and nothing else.
        """
        if error.error_code is ErrorCode.KAFKA_STORAGE_ERROR and not isinstance(error, LogOffline):
            self._storage_failed(error)

    def _settings_of(self, topic: str, known: dict[str, TopicSettings]) -> TopicSettings:
        """Made once for all partitions of a request."""
        if topic not in known:
            known[topic] = self._topic_settings(topic)
        return known[topic]

    def _open(self, asked: ReplicaAssignment, settings: TopicSettings) -> Replica:
        log = self._logs.get_or_create(asked.topic, asked.partition, asked.topic_id, settings.log)
        key = (asked.topic, asked.partition)
        high_watermark = restored_high_watermark(
            self._logs.high_watermark(*key), log.log_start_offset, log.log_end_offset
        )
        partition = Replica(asked.topic, asked.partition, asked.topic_id, log, high_watermark, settings, self._replicas)
        self._replicas.partitions[key] = partition
        return partition

    async def configure(self, topic: str | None) -> None:
        """The settings of a topic's replicas here have changed (None: of all topics)."""
        settings: dict[str, TopicSettings] = {}
        pause = Pauses(Shares(self._clock.monotonic_ns))
        concerned, compacted = [], []
        for key, partition in list(self._replicas.partitions.items()):
            if topic in (None, partition.topic):
                concerned.append(partition)
                if self._settings_of(partition.topic, settings).log.is_compacted:
                    compacted.append(key)
            await pause()
        try:
            if compacted:
                await unbroken(self._blocking, partial(self._logs.note_holes, compacted))
            for partition in concerned:
                # It may have gone meanwhile.
                if self._replicas.partitions.get(partition.key) is partition:
                    partition.configure(self._settings_of(partition.topic, settings), self._clock.monotonic_ms())
                await pause()
        except LogError as error:
            self._failed(error)

    def _take_role(self, partition: Replica, role: Role) -> None:
        try:
            self._lead_or_follow(partition, role)
        finally:
            # Also after a failure: it may lead no more.
            self._role_taken(partition)
        if logger.isEnabledFor(self._log_level):
            logger.log(self._log_level, "%r, in sync %s", partition, list(role.isr))

    def _lead_or_follow(self, partition: Replica, role: Role) -> None:
        if role.leader == self._replicas.broker_id:
            self._fetchers.leave(partition.key)
            was_leader = partition.leader is not None
            partition.lead(role, self._clock.monotonic_ms())
            if not was_leader:
                self._replicas.counters.leader_elections += 1
                self._replicas.counters.unclean_leader_elections += role.is_unclean
        else:
            partition.follow(role)
            if role.leader >= 0:
                self._fetchers.follow(partition)
            else:
                self._fetchers.leave(partition.key)

    async def stop(self, stops: Sequence[ReplicaStop]) -> dict[TopicPartition, ErrorCode]:
        """Stop replicas, and delete the logs of those that are to be deleted. No log may be made meanwhile, and those
        that are deleted get no role."""
        pause = Pauses(Shares(self._clock.monotonic_ns))
        codes: dict[TopicPartition, ErrorCode] = {}
        doomed: dict[TopicPartition, None] = {}
        # All of them at once: a role that comes later than this request is not to be taken back by it.
        self._deleting = {(asked.topic, asked.partition) for asked in stops if asked.delete}
        try:
            for asked in stops:
                key = (asked.topic, asked.partition)
                codes[key] = self._stop(asked)
                if asked.delete and codes[key] is ErrorCode.NONE:
                    self._replicas.partitions.pop(key, None)
                    doomed[key] = None
                await pause()
            if doomed:
                codes |= await self._delete(list(doomed), pause)
        finally:
            self._deleting = set()
        return codes

    async def _delete(self, keys: Sequence[TopicPartition], pause: Pauses) -> dict[TopicPartition, ErrorCode]:
        """Delete logs, whose lines go from the checkpoints first, all of them together."""
        codes: dict[TopicPartition, ErrorCode] = {}
        try:
            await unbroken(self._blocking, partial(self._logs.forget, keys))
        except LogError as failure:
            self._failed(failure)
            return dict.fromkeys(keys, failure.error_code)
        for key in keys:
            try:
                self._logs.delete(*key)
            except LogError as failure:
                logger.error("%s-%d cannot be deleted: %s", *key, failure)
                self._failed(failure)
                codes[key] = failure.error_code
            await pause()
        return codes

    def withdraw(self, elsewhere: Iterable[ReplicaElsewhere]) -> None:
        """Stop the replicas that metadata places on other brokers, in an epoch that is newer than ours.

        A broker that was away while a reassignment took a replica from it is told by no LeaderAndIsr: those name its
        own replicas only, and StopReplica is not sent to the dead. It would continue leading in the old epoch. The log
        stays.
        """
        for asked in elsewhere:
            partition = self._replicas.partitions.get((asked.topic, asked.partition))
            if partition is None or partition.topic_id != asked.topic_id:
                continue
            if partition.leader is None and partition.leader_id < 0:
                continue  # it stopped before, and its epoch stays the old one
            if asked.leader_epoch > partition.leader_epoch:
                logger.info(
                    "%r stops: since epoch %d it is on brokers %s", partition, asked.leader_epoch, asked.replicas
                )
                self._stop(ReplicaStop(asked.topic, asked.partition, asked.leader_epoch, delete=False))

    def _stop(self, asked: ReplicaStop) -> ErrorCode:
        key = (asked.topic, asked.partition)
        partition = self._replicas.partitions.get(key)
        if partition is not None:
            error = check_stop_replica(asked.leader_epoch, partition.leader_epoch)
            if error is not ErrorCode.NONE:
                return error
            self._fetchers.leave(key)
            partition.stop()
            self._role_taken(partition)
        return ErrorCode.NONE
