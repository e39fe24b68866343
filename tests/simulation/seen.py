"""SeenCluster: a cluster in memory as somebody sees it who sees everything: ZooKeeper, every broker, every replica.

Owns the questions about its state that the simulation asks; changes nothing.
"""

from __future__ import annotations

from typing import Any

from cluster.broker.replicas.replica import Replica
from cluster.metadata.paths import CONTROLLER, broker_path, state_path, topic_path
from cluster.metadata.store import NoNodeError
from cluster.metadata.znodes import StateNode, TopicRegistration, decode_controller
from tests.simulation.nodes import MemoryCluster

#: (topic, partition number)
TopicPartition = tuple[str, int]


class SeenCluster(MemoryCluster):
    """``partitions`` are those that are asked about."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.partitions: list[TopicPartition] = []
        #: Those of other topics: of transactional programs, and of the coordinators themselves.
        self.beside: list[TopicPartition] = []

    @property
    def everything(self) -> list[TopicPartition]:
        """All partitions that there are."""
        return [*self.partitions, *self.beside]

    # What ZooKeeper says

    def controller(self) -> int | None:
        """Who holds /controller."""
        try:
            data, _ = self.tree.get(CONTROLLER)
        except NoNodeError:
            return None
        return decode_controller(data)

    def is_known(self, broker_id: int) -> bool:
        """Whether a broker runs, is registered, and the controller has taken note of this registration."""
        process, controller = self.processes.get(broker_id), self.processes.get(self.controller() or 0)
        if process is None or controller is None or process.node._control is None:
            return False
        office = None if controller.node._control is None else controller.node._control._candidate._office
        known = None if office is None else office.controller.context.brokers.get(broker_id)
        registered = self.tree.exists(broker_path(broker_id))
        return (
            known is not None
            and registered is not None
            and (known.epoch == registered.created_zxid == process.node.control.broker_epoch)
        )

    def state(self, topic: str, partition: int) -> StateNode | None:
        """A partition's state as ZooKeeper has it, or None before the first write."""
        path = state_path(topic, partition)
        try:
            data, _ = self.tree.get(path)
        except NoNodeError:
            return None
        return StateNode.decode(path, data)

    def registration(self, topic: str) -> TopicRegistration | None:
        """A topic's assignment as it is written down; None if there is none."""
        try:
            data, _ = self.tree.get(topic_path(topic))
        except NoNodeError:
            return None
        return TopicRegistration.decode(topic, data)

    def assigned(self, topic: str, partition: int) -> tuple[int, ...]:
        """The brokers that are to have a partition."""
        registration = self.registration(topic)
        return () if registration is None else tuple(sorted(registration.partitions.get(partition, ())))

    def believers(self, topic: str, partition: int) -> list[int]:
        """The brokers that run and take themselves for the leader, the one of the newest epoch first."""
        found = []
        for broker_id in self.processes:
            replica = self.replica(broker_id, (topic, partition))
            if replica is not None and replica.leader is not None:
                found.append((-replica.leader_epoch, broker_id))
        return [broker_id for _, broker_id in sorted(found)]

    def is_whole(self) -> bool:
        """Whether every partition has a leader and all replicas in its ISR, in ZooKeeper and in its leader's eyes."""
        for topic, partition in self.everything:
            state, registration = self.state(topic, partition), self.registration(topic)
            if registration is None or partition in registration.adding or partition in registration.removing:
                return False
            everybody = set(registration.partitions.get(partition, ()))
            if state is None or set(state.isr) != everybody or state.leader not in self.processes:
                return False
            if self.believers(topic, partition) != [state.leader]:
                return False
            if self.isr(topic, partition) != everybody:
                return False
        return True

    def are_equal(self) -> bool:
        """Whether all replicas end at the same offset, which is committed and known to be."""
        for key in self.everything:
            replicas = [self.replica(broker_id, key) for broker_id in self.assigned(*key)]
            ends = {replica and (replica.log.log_end_offset, replica.high_watermark) for replica in replicas}
            if len(ends) != 1 or any(end is None or end[0] != end[1] for end in ends):
                return False
        return True

    def replica(self, broker_id: int, key: TopicPartition) -> Replica | None:
        """A broker's replica; None if the broker does not run or has not been told of it yet."""
        process = self.processes.get(broker_id)
        replicas = None if process is None else process.node._replicas
        return None if replicas is None else replicas.partitions.get(key)
