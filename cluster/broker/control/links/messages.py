"""The controller's requests, built from its context: LeaderAndIsr 7, UpdateMetadata 8, StopReplica 4.

Owns how the context becomes messages, with the fencing fields filled in. Does not own who is told what (``Outbox``) nor
the sending.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypedDict

from cluster.broker.metadata_cache import FULL
from cluster.broker.portions import chunks
from cluster.controller.context import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    NO_LEADER,
    ControllerContext,
    Partition,
    PartitionState,
    TopicPartition,
)
from cluster.controller.outbox import Parcel
from cluster.metadata.znodes import BrokerRegistration
from cluster.protocol.message_classes import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

LEADER_AND_ISR_VERSION = 7
UPDATE_METADATA_VERSION = 8
STOP_REPLICA_VERSION = 4

#: ``type`` of LeaderAndIsr and UpdateMetadata that name what has changed; FULL ones name all there is.
INCREMENTAL = 1

#: Partitions in one LeaderAndIsr. Each has a log to be opened or a role to be taken: a broker that is told of
#: thousands at once would not answer in time, and would be told all of it again and again.
PARTITIONS_AT_ONCE = 250

#: What a broker answers to any of the three.
ControlAnswer = LeaderAndIsrResponse | StopReplicaResponse | UpdateMetadataResponse
_LeaderAndIsrState = LeaderAndIsrRequest.LeaderAndIsrTopicState.LeaderAndIsrPartitionState
_LiveLeader = LeaderAndIsrRequest.LeaderAndIsrLiveLeader
_TopicState = UpdateMetadataRequest.UpdateMetadataTopicState
_StopReplicaState = StopReplicaRequest.StopReplicaTopicState.StopReplicaPartitionState

_SECURITY_PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
#: Of a partition that is deleted before it ever had a leader.
_NO_STATE = PartitionState(leader=NO_LEADER, leader_epoch=0, isr=())


class _Fencing(TypedDict):
    """The fields by which a broker knows who speaks, and to which of its lives."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int


class ControlRequest(NamedTuple):
    """One request and the version to send it in."""

    message: LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
    version: int


#: Topic states of UpdateMetadata by the partitions that they name.
MadeStates = dict[frozenset[TopicPartition], list[_TopicState]]


@dataclass(frozen=True, slots=True)
class RequestBuilder:
    """Builds for one controller of one epoch."""

    controller_id: int
    context: ControllerContext
    registrations: Mapping[int, BrokerRegistration]
    inter_broker_listener: str

    def build(self, broker_id: int, parcel: Parcel, made: MadeStates) -> list[ControlRequest]:
        """The requests for one broker, in the order in which they must be sent.

        ``made`` is shared by the parcels of one outbox: what they say about topics to all brokers is made once.
        """
        named = sorted(parcel.leader_and_isr.items())
        is_full = parcel.full_leader_and_isr and len(named) <= PARTITIONS_AT_ONCE
        requests = [self._leader_and_isr(broker_id, some, full=is_full) for some in chunks(named, PARTITIONS_AT_ONCE)]
        if parcel.update_metadata is not None:
            named_topics = frozenset(parcel.update_metadata)
            if named_topics not in made:
                made[named_topics] = self._topic_states(named_topics)
            requests.append(self._update_metadata(broker_id, made[named_topics], full=parcel.full_metadata))
        if parcel.stop_replica:
            requests.append(self._stop_replica(broker_id, parcel.stop_replica))
        return requests

    def _fencing(self, broker_id: int) -> _Fencing:
        return {
            "controller_id": self.controller_id,
            "controller_epoch": self.context.controller_epoch,
            "broker_epoch": self.context.brokers[broker_id].epoch,
        }

    def _leader_and_isr(
        self, broker_id: int, named: Iterable[tuple[TopicPartition, bool]], *, full: bool
    ) -> ControlRequest:
        leaders: set[int] = set()
        states: dict[str, list[_LeaderAndIsrState]] = defaultdict(list)
        for topic_partition, is_new in named:
            partition = self.context.partition(topic_partition)
            if partition is not None and partition.state is not None:
                leaders.add(partition.state.leader)
                states[topic_partition.topic].append(
                    _leader_and_isr_state(topic_partition.partition, partition, partition.state, is_new)
                )
        message = LeaderAndIsrRequest(
            version=LEADER_AND_ISR_VERSION,
            type=FULL if full else INCREMENTAL,
            topic_states=[
                LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=topic, topic_id=self.context.topics[topic].topic_id, partition_states=partitions
                )
                for topic, partitions in states.items()
            ],
            live_leaders=list(self._live_leaders(leaders)),
            **self._fencing(broker_id),
        )
        return ControlRequest(message, LEADER_AND_ISR_VERSION)

    def _live_leaders(self, leaders: Iterable[int]) -> Iterable[_LiveLeader]:
        for leader in sorted(leaders):
            registration = self.registrations.get(leader)
            endpoint = None if registration is None else registration.endpoint(self.inter_broker_listener)
            if endpoint is not None:
                yield LeaderAndIsrRequest.LeaderAndIsrLiveLeader(
                    broker_id=leader, host_name=endpoint.host, port=endpoint.port
                )

    def _topic_states(self, named: Iterable[TopicPartition]) -> list[_TopicState]:
        """What UpdateMetadata says about these partitions."""
        topic_states = []
        for name, members in groupby(sorted(named), key=lambda topic_partition: topic_partition.topic):
            topic = self.context.topics.get(name)
            if topic is None:
                continue
            states = []
            for _, number in members:
                partition = topic.partitions[number]
                state = partition.state or (_NO_STATE if topic.deleting else None)
                if state is not None:
                    leader = LEADER_DURING_DELETE if topic.deleting else state.leader
                    states.append(self._metadata_state(TopicPartition(name, number), partition, state, leader))
            if states:
                topic_states.append(_TopicState(topic_name=name, topic_id=topic.topic_id, partition_states=states))
        return topic_states

    def _update_metadata(self, broker_id: int, topic_states: list[_TopicState], *, full: bool) -> ControlRequest:
        message = UpdateMetadataRequest(
            version=UPDATE_METADATA_VERSION,
            type=FULL if full else INCREMENTAL,
            topic_states=topic_states,
            live_brokers=[self._live_broker(broker) for broker in sorted(self.context.brokers)],
            **self._fencing(broker_id),
        )
        return ControlRequest(message, UPDATE_METADATA_VERSION)

    def _metadata_state(
        self, topic_partition: TopicPartition, partition: Partition, state: PartitionState, leader: int
    ) -> _TopicState.UpdateMetadataPartitionState:
        online = self.context.online(topic_partition, self.context.registered())
        return _TopicState.UpdateMetadataPartitionState(
            partition_index=topic_partition.partition,
            controller_epoch=state.controller_epoch,
            leader=leader,
            leader_epoch=state.leader_epoch,
            isr=list(state.isr),
            zk_version=state.partition_epoch,
            replicas=list(partition.replicas),
            offline_replicas=[replica for replica in partition.replicas if replica not in online],
        )

    def _live_broker(self, broker_id: int) -> UpdateMetadataRequest.UpdateMetadataBroker:
        registration = self.registrations[broker_id]
        return UpdateMetadataRequest.UpdateMetadataBroker(
            id=broker_id,
            endpoints=[
                UpdateMetadataRequest.UpdateMetadataBroker.UpdateMetadataEndpoint(
                    port=endpoint.port,
                    host=endpoint.host,
                    listener=endpoint.listener,
                    security_protocol=_SECURITY_PROTOCOL_IDS.get(
                        registration.security_protocols.get(endpoint.listener, "PLAINTEXT"), 0
                    ),
                )
                for endpoint in registration.endpoints
            ],
            rack=registration.rack,
        )

    def _stop_replica(self, broker_id: int, partitions: Mapping[TopicPartition, bool]) -> ControlRequest:
        states: dict[str, list[_StopReplicaState]] = defaultdict(list)
        for topic_partition, delete in sorted(partitions.items()):
            topic = self.context.topics.get(topic_partition.topic)
            partition = self.context.partition(topic_partition)
            state = None if partition is None else partition.state
            # A replica that a reassignment removes may be given back later: an old request must not delete it then.
            is_topic_going = topic is None or topic.deleting
            leader_epoch = EPOCH_DURING_DELETE if is_topic_going or state is None else state.leader_epoch
            states[topic_partition.topic].append(
                _StopReplicaState(
                    partition_index=topic_partition.partition, leader_epoch=leader_epoch, delete_partition=delete
                )
            )
        message = StopReplicaRequest(
            version=STOP_REPLICA_VERSION,
            topic_states=[
                StopReplicaRequest.StopReplicaTopicState(topic_name=topic, partition_states=partitions_of_topic)
                for topic, partitions_of_topic in states.items()
            ],
            **self._fencing(broker_id),
        )
        return ControlRequest(message, STOP_REPLICA_VERSION)


def _leader_and_isr_state(number: int, partition: Partition, state: PartitionState, is_new: bool) -> _LeaderAndIsrState:
    return _LeaderAndIsrState(
        partition_index=number,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding),
        removing_replicas=list(partition.removing),
        is_new=is_new,
        leader_recovery_state=int(state.recovering),
    )
