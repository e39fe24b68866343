"""The coordinators of one broker, of groups and of transactions: how they are made, told of roles, started and stopped.

Owns the wiring between the two: a marker in ``__consumer_offsets`` ends the transaction of a group's offsets. Does not
own what either does.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import NamedTuple

from cluster.broker.checkpoints import Blocking
from cluster.broker.control.control_plane import ControlPlane
from cluster.broker.groups.group_service import GroupService
from cluster.broker.groups.group_settings import group_settings
from cluster.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from cluster.broker.metadata_cache import MetadataCache
from cluster.broker.pauses import Shares
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.broker.transactions.marker_links import MarkerLinks
from cluster.broker.transactions.marker_sending import MarkerSender
from cluster.broker.transactions.marker_writing import MarkerWriter
from cluster.broker.transactions.transaction_service import TransactionService
from cluster.broker.transactions.transaction_verifier import TransactionVerifier
from cluster.config.broker import BrokerConfig
from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.txn_quota import TransactionQuota
from cluster.seams.clock import Clock

#: Of one transaction. Its record names them all, and is made on the event loop: 10 ms for that many.
MOST_PARTITIONS = 20_000


class StoredPartitions(NamedTuple):
    """How many partitions the topics of the coordinators have; None: there is no such topic yet."""

    offsets: int | None
    transactions: int | None

    @classmethod
    async def read(cls, control: ControlPlane) -> StoredPartitions:
        """What ZooKeeper says: it decides where a group or a transactional id belongs, not the configuration."""
        return cls(await control.stored_partitions(OFFSETS_TOPIC), await control.stored_partitions(TRANSACTIONS_TOPIC))


class Coordinators(NamedTuple):
    """Both, who writes markers for other brokers, and the verifier of what is in a transaction."""

    groups: GroupService
    transactions: TransactionService
    markers: MarkerWriter
    verifier: TransactionVerifier

    @classmethod
    def make(
        cls,
        stored: StoredPartitions,
        config: BrokerConfig,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        control: ControlPlane,
        clock: Clock,
        random: Random,
        blocking: Blocking,
    ) -> Coordinators:
        # Shares of their own: no crowd of clients of the one delays the other.
        of_groups, of_transactions = Shares(clock.monotonic_ns), Shares(clock.monotonic_ns)
        settings = group_settings(config, stored.offsets)
        groups = GroupService(settings, config, replicas, clock, random, blocking, of_groups)
        timeout_ms = config["request.timeout.ms"]
        writer = MarkerWriter(replicas, groups, clock, timeout_ms, of_transactions)
        links = MarkerLinks(control.link_to)
        make_sender = partial(MarkerSender, config.broker_id, metadata, links, writer, control.stored_partitions)
        coordinator = TransactionCoordinator(
            stored.transactions or config["transaction.state.log.num.partitions"],
            config["transaction.max.timeout.ms"],
            config["transactional.id.expiration.ms"],
            TransactionQuota(
                config["gapless.max.transactional.ids"], config["gapless.transactions.max.bytes"], MOST_PARTITIONS
            ),
            replicas.rules.transactions,
        )
        transactions = TransactionService(
            coordinator, config, replicas, make_sender, control.take_producer_id, clock, blocking, of_transactions
        )
        verifier = TransactionVerifier(
            config.broker_id,
            replicas.partitions,
            metadata,
            transactions,
            links,
            of_transactions,
            replicas.counters,
            timeout_ms=timeout_ms,
            is_enabled=config["transaction.partition.verification.enable"],
        )
        return cls(groups, transactions, writer, verifier)

    def role_taken(self, replica: Replica) -> None:
        """A replica of this broker leads, follows or stops."""
        self.groups.role_taken(replica)
        self.transactions.role_taken(replica)

    def start(self) -> None:
        self.groups.start()
        self.transactions.start()

    async def stop(self) -> None:
        await self.transactions.stop()
        self.markers.close()
        await self.groups.stop()
