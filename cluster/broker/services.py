"""Services: what the handlers need of their broker, in one value made at start-up. Owns nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cluster.broker.checkpoints import Blocking, Checkpoints
from cluster.broker.control.control_plane import ControlPlane
from cluster.broker.groups.group_service import GroupService
from cluster.broker.metadata_cache import MetadataCache
from cluster.broker.metrics import Counters
from cluster.broker.pauses import Shares
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.broker.replicas.roles import Roles
from cluster.broker.topic_creation import TopicCreator
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
    topic_creator: TopicCreator
    #: Free space where the logs are.
    usable_bytes: Callable[[], int]
    blocking: Blocking
    #: What long work of all requests may take of a turn of the loop.
    shares: Shares
    #: Types of coordinators of which the log says already that there is none.
    not_coordinated: set[int] = field(default_factory=set)
