"""What to tell which broker after a change. Pure: it collects; the shell builds the requests and sends them.

Owns who is told what, and the order within one batch: LeaderAndIsr, then UpdateMetadata, then StopReplica (Kafka's
KafkaController; docs/reference/kafka.md "Controller requests"). Does not own the requests' layout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from cluster.controller.context import ControllerContext, TopicPartition
from cluster.controller.partitions import Change


@dataclass(slots=True)
class Parcel:
    """For one broker. ``leader_and_isr`` maps a partition to "is new"; ``stop_replica`` to "delete its data".

    ``update_metadata`` None means: no UpdateMetadata; empty: only the list of live brokers. The ``full`` flags say that
    a request names all there is: all the broker's partitions, all topics.
    """

    leader_and_isr: dict[TopicPartition, bool] = field(default_factory=dict)
    update_metadata: set[TopicPartition] | None = None
    stop_replica: dict[TopicPartition, bool] = field(default_factory=dict)
    full_leader_and_isr: bool = False
    full_metadata: bool = False


class Outbox:
    """One batch. Filled while changes are applied, emptied by the sender."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self.parcels: dict[int, Parcel] = {}

    def __repr__(self) -> str:
        return f"Outbox({dict(sorted(self.parcels.items()))})"

    def add_changes(self, changes: Iterable[Change]) -> None:
        """After elections and shrinks: LeaderAndIsr to each live replica, UpdateMetadata to all brokers."""
        changed = []
        for change in changes:
            changed.append(change.topic_partition)
            self.add_leader_and_isr(change.topic_partition, is_new=change.creates)
        if changed:
            self.add_update_metadata(changed)

    def add_leader_and_isr(
        self,
        topic_partition: TopicPartition,
        *,
        is_new: bool = False,
        new_replicas: Collection[int] = (),
        but: int | None = None,
    ) -> None:
        """To each registered replica of the partition; nothing if it has no leader state yet.

        To ``new_replicas`` the partition is new, though to the others it is not; the broker ``but`` is told nothing.
        No one is told of a topic that is being deleted: who has deleted its replica would make it again.
        """
        partition = self._context.partition(topic_partition)
        if partition is None or partition.state is None or self._context.topics[topic_partition.topic].deleting:
            return
        for replica in partition.replicas:
            if replica in self._context.brokers and replica != but:
                sent = self._parcel(replica).leader_and_isr
                sent[topic_partition] = sent.get(topic_partition, False) or is_new or replica in new_replicas

    def add_all_leader_and_isr(self, broker_id: int) -> None:
        """Every partition that one broker hosts: it has just come, or this controller has."""
        parcel = self._parcel(broker_id)
        parcel.full_leader_and_isr = True
        for topic_partition in self._context.hosted_by(broker_id):
            partition = self._context.partition(topic_partition)
            if partition is not None and partition.state is not None:
                parcel.leader_and_isr.setdefault(topic_partition, False)

    def add_leader_and_isr_again(self, broker_id: int, topic_partitions: Iterable[TopicPartition]) -> None:
        """To one broker alone, which could not do before what it is told."""
        for topic_partition in topic_partitions:
            partition = self._context.partition(topic_partition)
            if partition is None or partition.state is None or self._context.topics[topic_partition.topic].deleting:
                continue
            self._parcel(broker_id).leader_and_isr[topic_partition] = False

    def add_all_metadata(self, broker_id: int) -> None:
        """The metadata of every partition, to one broker: what it knew before is replaced."""
        self._parcel(broker_id).full_metadata = True
        self.add_update_metadata((tp for tp, _, _ in self._context.partitions()), brokers=[broker_id])

    def add_update_metadata(
        self, topic_partitions: Iterable[TopicPartition] = (), brokers: Iterable[int] | None = None
    ) -> None:
        """To ``brokers`` (None: all that are registered): these partitions, and always the live brokers."""
        named = list(topic_partitions)
        for broker_id in sorted(self._context.brokers) if brokers is None else brokers:
            parcel = self._parcel(broker_id)
            if parcel.update_metadata is None:
                parcel.update_metadata = set()
            parcel.update_metadata.update(named)

    def add_stop_replica(self, broker_id: int, topic_partition: TopicPartition, *, delete: bool) -> None:
        if broker_id in self._context.brokers:
            self._parcel(broker_id).stop_replica[topic_partition] = delete

    def _parcel(self, broker_id: int) -> Parcel:
        return self.parcels.setdefault(broker_id, Parcel())
