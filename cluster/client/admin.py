"""Admin: questions and orders to a cluster for programs without an event loop; each call waits for its outcome.

Owns Kafka's keys and Kafka's names of the calls. The event loop is ``loop_thread``'s; everything else ``AsyncAdmin``'s,
which programs with an event loop use themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from cluster.client.argument_checks import checked_topics
from cluster.client.async_admin import AsyncAdmin
from cluster.client.closeable import Closeable
from cluster.client.cluster_calls import PREFERRED, TOPIC_RESOURCE, Reassignment
from cluster.client.cluster_view import ClusterView, TopicView
from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_descriptions import DescribedGroup, ListedGroup
from cluster.client.loop_thread import LoopThread
from cluster.client.new_topic import NewTopic
from cluster.client.offset_listing import ListedOffset
from cluster.client.partition_calls import LogDirectory, ProducerState
from cluster.client.transaction_descriptions import DescribedTransaction, FencedProducer, ListedTransaction
from cluster.client.wiring import bootstrap_servers, checked_client_id
from cluster.config.admin import validate
from cluster.protocol.errors import ErrorCode
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Admin(Closeable):
    """``config`` has Kafka's own keys. For any thread. Close it after use; it is a context manager.

    Every call raises ``TimeoutError`` after ``default.api.timeout.ms``, ``AdminError`` for what waiting does not
    change, ``TypeError`` and ``ValueError`` for arguments that no request can carry, and ``RuntimeError`` once it is
    closed. Raises ``ConfigError``.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        typed = validate(config)
        for warning in typed.warnings:
            logger.warning("%s", warning)
        bootstrap_servers(typed)
        self._admin = AsyncAdmin(
            typed["bootstrap.servers"],
            AsyncioTransport(),
            SystemClock(),
            typed["default.api.timeout.ms"],
            request_timeout_ms=typed["request.timeout.ms"],
            retry_backoff_ms=typed["retry.backoff.ms"],
            client_id=checked_client_id(typed["client.id"]),
        )
        self._is_closed = False
        self._loop_thread = LoopThread.join()

    def __repr__(self) -> str:
        return f"Admin({self._admin!r}{', closed' if self._is_closed else ''})"

    def close(self) -> None:
        """Close the connections; the last one that is open ends the thread. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            if self._loop_thread.is_running:
                self._loop_thread.wait(self._admin.close())
            self._loop_thread.leave()

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        if self._is_closed:
            call.close()
            raise RuntimeError("This admin client has already been closed.")
        return self._loop_thread.wait(call)

    # The cluster

    def describe_cluster(self) -> ClusterView:
        """The brokers that are alive, the controller and the cluster's id; without topics."""
        return self._wait(self._admin.metadata([]))

    def describe_log_dirs(self, broker_ids: Iterable[int] | None = None) -> dict[int, dict[str, LogDirectory]]:
        """Broker id -> path -> what is there, of these brokers or of all that are alive."""
        return self._wait(self._admin.log_directories(broker_ids))

    # Topics

    def list_topics(self) -> list[str]:
        """The names of all topics."""
        return sorted(self._wait(self._admin.metadata()).topics)

    def describe_topics(self, topics: Sequence[str]) -> dict[str, TopicView]:
        """These topics as they are now; each carries its own error code, for one that does not exist too."""
        names = checked_topics(topics)
        view = self._wait(self._admin.metadata(names))
        return {name: view.topics[name] for name in names if name in view.topics}

    def create_topics(self, topics: Sequence[NewTopic]) -> None:
        """Create topics; one that exists is an error."""
        self._wait(self._admin.create_topics(topics))

    def delete_topics(self, topics: Sequence[str]) -> None:
        """Returns when they are gone; one that does not exist is an error."""
        self._wait(self._admin.delete_topics(topics))

    def create_partitions(self, topic: str, total: int) -> None:
        """Have ``total`` partitions in a topic, which must have fewer now."""
        self._wait(self._admin.create_partitions(topic, total))

    # Configurations

    def describe_configs(self, name: str, resource_type: int = TOPIC_RESOURCE) -> dict[str, str | None]:
        """What holds for a topic, or for a broker (``BROKER_RESOURCE``; the empty name: what is set on all of them)."""
        return self._wait(self._admin.config(resource_type, name))

    def incremental_alter_configs(
        self,
        name: str,
        values: Mapping[str, str | None],
        resource_type: int = TOPIC_RESOURCE,
        *,
        validate_only: bool = False,
    ) -> None:
        """Set what has a value, delete what has None."""
        self._wait(self._admin.set_config(resource_type, name, values, validate_only=validate_only))

    # Partitions

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation_level: int = 0
    ) -> dict[TopicPartition, ListedOffset]:
        """Offsets by timestamp, or by ``EARLIEST_TIMESTAMP`` and ``LATEST_TIMESTAMP`` (``client.offset_listing``)."""
        return self._wait(self._admin.list_offsets(wanted, isolation_level=isolation_level))

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Forget what lies below these offsets (-1: the high watermark). Returns where each log begins then."""
        return self._wait(self._admin.delete_records(before))

    def describe_producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None = None
    ) -> dict[TopicPartition, list[ProducerState]]:
        """The producers that the leader of each partition remembers, or that this broker does, which has a replica."""
        return self._wait(self._admin.describe_producers(partitions, broker_id))

    def elect_leaders(
        self, kind: int = PREFERRED, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, ErrorCode]:
        """``PREFERRED`` or ``UNCLEAN`` elections; None is all partitions. ELECTION_NOT_NEEDED is fine."""
        return self._wait(self._admin.elect_leaders(kind, partitions))

    def alter_partition_reassignments(self, moves: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        """Begin to move partitions to other replicas; None cancels a move."""
        self._wait(self._admin.reassign(moves))

    def list_partition_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """All partitions that are on their way to other replicas."""
        return self._wait(self._admin.reassignments())

    # Groups

    def list_groups(self, states: Iterable[str] = ()) -> list[ListedGroup]:
        """All groups, or those in these states, such as ``Stable`` and ``Empty``."""
        return self._wait(self._admin.list_groups(states))

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, DescribedGroup]:
        """State, coordinator and members. A group that does not exist is Dead."""
        return self._wait(self._admin.describe_groups(group_ids))

    def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Forget groups without members, and their offsets; one that does not exist is an error."""
        self._wait(self._admin.delete_groups(group_ids))

    def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed of these partitions, or of all. ``require_stable`` waits for transactions."""
        return self._wait(self._admin.list_group_offsets(group_id, partitions, require_stable=require_stable))

    def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]) -> None:
        """Have a group without members continue at these offsets."""
        self._wait(self._admin.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget what a group has committed of topics that it does not subscribe to."""
        self._wait(self._admin.delete_group_offsets(group_id, partitions))

    # Transactions

    def list_transactions(
        self, states: Iterable[str] = (), producer_ids: Iterable[int] = (), *, longer_than_ms: int = -1
    ) -> list[ListedTransaction]:
        """All transactional ids, or those in these states (such as ``Ongoing``), of these producers, open so long."""
        return self._wait(self._admin.list_transactions(states, producer_ids, longer_than_ms=longer_than_ms))

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
        """State, coordinator, producer and partitions. One that does not exist is an error."""
        return self._wait(self._admin.describe_transactions(transactional_ids))

    def fence_producers(self, transactional_ids: Iterable[str]) -> dict[str, FencedProducer]:
        """Stop every producer that has one of these ids, and abort what it left open."""
        return self._wait(self._admin.fence_producers(transactional_ids))

    def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int = -1
    ) -> None:
        """Write an abort marker into a partition where a transaction hangs, as ``describe_producers`` reports it.

        Our brokers serve it on their own listener alone, which ``bootstrap.servers`` has to name.
        """
        self._wait(self._admin.abort_transaction(partition, producer_id, producer_epoch, coordinator_epoch))
