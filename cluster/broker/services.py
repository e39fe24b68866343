"""Services: what the handlers need of their broker, in one value made at start-up. Owns nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cluster.broker.checkpoints import Blocking, Checkpoints
from cluster.broker.control.control_plane import ControlPlane
from cluster.broker.groups.group_service import GroupService
from cluster.broker.metadata_cache import MetadataCache
from cluster.broker.metrics import Counters
from cluster.broker.pauses import Shares
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.broker.replicas.roles import Roles
from cluster.broker.topic_creation import TopicCreator
from cluster.broker.transactions.marker_writing import MarkerWriter
from cluster.broker.transactions.transaction_service import TransactionService
from cluster.broker.transactions.transaction_verifier import TransactionVerifier
from cluster.config.broker import BrokerConfig


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of one broker."""

    config: BrokerConfig
    counters: Counters
    metadata: MetadataCache
    control: ControlPlane
    replicas: ReplicaManager
    roles: Roles
    checkpoints: Checkpoints
    groups: GroupService
    transactions: TransactionService
    markers: MarkerWriter
    verifier: TransactionVerifier
    topic_creator: TopicCreator
    #: Free space where the logs are.
    usable_bytes: Callable[[], int]
    blocking: Blocking
    #: What long work of all requests may take of a turn of the loop.
    shares: Shares
