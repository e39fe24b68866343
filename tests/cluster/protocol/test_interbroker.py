"""The broker-to-broker messages, byte by byte against Kafka's message schemas."""

from __future__ import annotations

import uuid

from cluster.protocol import messages
from cluster.protocol.apis import INTER_BROKER, ApiKey

TOPIC_ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
ID_HEX = TOPIC_ID.hex


def body(api_key, message) -> str:
    """The encoded message without its header, as hex, and read back."""
    version = INTER_BROKER[api_key][1]
    data = bytes(message.encode(version=version))
    assert messages.schema_decoder.decode(type(message), version, data) == message
    return data.hex(" ").replace(" ", "")


def test_leader_and_isr():
    """Version 7, flexible: broker epoch, type, topics by name and id, live leaders."""
    request = messages.request_class(ApiKey.LEADER_AND_ISR)
    topic = request.LeaderAndIsrTopicState
    state = topic.LeaderAndIsrPartitionState(
        partition_index=1,
        controller_epoch=2,
        leader=3,
        leader_epoch=4,
        isr=[3, 5],
        partition_epoch=6,
        replicas=[3, 5, 7],
        adding_replicas=[],
        removing_replicas=[],
        is_new=True,
        leader_recovery_state=0,
        version=7,
    )
    message = request(
        controller_id=9,
        is_k_raft_controller=False,
        controller_epoch=2,
        broker_epoch=77,
        type=2,
        topic_states=[topic(topic_name="t", topic_id=TOPIC_ID, partition_states=[state], version=7)],
        live_leaders=[request.LeaderAndIsrLiveLeader(broker_id=3, host_name="h", port=9092, version=7)],
        version=7,
    )
    assert body(ApiKey.LEADER_AND_ISR, message) == (
        "00000009" "00" "00000002" "000000000000004d" "02"
        "02" "0274" + ID_HEX + "02"
        "00000001" "00000002" "00000003" "00000004" "03" "00000003" "00000005" "00000006"
        "04" "00000003" "00000005" "00000007" "01" "01" "01" "00" "00"
        "00"
        "02" "00000003" "0268" "00002384" "00"
        "00"
    )  # fmt: skip


def test_update_metadata():
    """Version 8, flexible: the type is a tagged field, brokers have endpoints by listener."""
    request = messages.request_class(ApiKey.UPDATE_METADATA)
    topic = request.UpdateMetadataTopicState
    broker = request.UpdateMetadataBroker
    state = topic.UpdateMetadataPartitionState(
        partition_index=0, controller_epoch=1, leader=1, leader_epoch=2, isr=[1], zk_version=3, replicas=[1, 2],
        offline_replicas=[2], version=8,
    )  # fmt: skip
    endpoint = broker.UpdateMetadataEndpoint(port=1, host="h", listener="PEERS", security_protocol=0, version=8)
    message = request(
        controller_id=1,
        is_k_raft_controller=False,
        type=0,
        controller_epoch=1,
        broker_epoch=5,
        topic_states=[topic(topic_name="t", topic_id=TOPIC_ID, partition_states=[state], version=8)],
        live_brokers=[broker(id=1, endpoints=[endpoint], rack=None, version=8)],
        version=8,
    )
    assert body(ApiKey.UPDATE_METADATA, message) == (
        "00000001" "00" "00000001" "0000000000000005"
        "02" "0274" + ID_HEX + "02"
        "00000000" "00000001" "00000001" "00000002" "02" "00000001" "00000003" "03" "00000001" "00000002"
        "02" "00000002" "00"
        "00"
        "02" "00000001" "02" "00000001" "0268" "065045455253" "0000" "00" "00" "00"
        "00"
    )  # fmt: skip


def test_stop_replica():
    """Version 4, flexible: leader epoch and whether to delete, per partition."""
    request = messages.request_class(ApiKey.STOP_REPLICA)
    topic = request.StopReplicaTopicState
    state = topic.StopReplicaPartitionState(partition_index=1, leader_epoch=2, delete_partition=True, version=4)
    message = request(
        controller_id=1,
        is_k_raft_controller=False,
        controller_epoch=2,
        broker_epoch=3,
        topic_states=[topic(topic_name="t", partition_states=[state], version=4)],
        version=4,
    )
    assert body(ApiKey.STOP_REPLICA, message) == (
        "00000001" "00" "00000002" "0000000000000003" "02" "0274" "02" "00000001" "00000002" "01" "00" "00" "00"
    )  # fmt: skip


def test_alter_partition():
    """Version 3, flexible: topics by id, the new ISR with broker epochs."""
    request = messages.request_class(ApiKey.ALTER_PARTITION)
    topic = request.TopicData
    partition = topic.PartitionData
    change = partition(
        partition_index=1,
        leader_epoch=2,
        new_isr_with_epochs=[partition.BrokerState(broker_id=3, broker_epoch=-1, version=3)],
        leader_recovery_state=0,
        partition_epoch=4,
        version=3,
    )
    message = request(
        broker_id=3, broker_epoch=9, topics=[topic(topic_id=TOPIC_ID, partitions=[change], version=3)], version=3
    )
    assert body(ApiKey.ALTER_PARTITION, message) == (
        "00000003" "0000000000000009" "02" + ID_HEX + "02"
        "00000001" "00000002" "02" "00000003" "ffffffffffffffff" "00" "00" "00000004" "00" "00" "00"
    )  # fmt: skip


def test_small_ones():
    """ControlledShutdown 3 and AllocateProducerIds 0, requests and responses."""
    shutdown = messages.request_class(ApiKey.CONTROLLED_SHUTDOWN)(broker_id=1, broker_epoch=2, version=3)
    assert body(ApiKey.CONTROLLED_SHUTDOWN, shutdown) == "00000001000000000000000200"
    allocate = messages.request_class(ApiKey.ALLOCATE_PRODUCER_IDS)(broker_id=1, broker_epoch=2, version=0)
    assert body(ApiKey.ALLOCATE_PRODUCER_IDS, allocate) == "00000001000000000000000200"
    block = messages.response_class(ApiKey.ALLOCATE_PRODUCER_IDS)(
        throttle_time_ms=0, error_code=0, producer_id_start=1000, producer_id_len=1000, version=0
    )
    assert body(ApiKey.ALLOCATE_PRODUCER_IDS, block) == "00000000000000000000000003e8000003e800"


def test_update_metadata_of_a_full_update():
    """A type other than 0 travels as tag 0 at the end; a rack is a compact string, a leader of -2 is being deleted."""
    request = messages.request_class(ApiKey.UPDATE_METADATA)
    message = request(
        controller_id=1,
        is_k_raft_controller=True,
        type=2,
        controller_epoch=-1,
        broker_epoch=-1,
        topic_states=[],
        live_brokers=[request.UpdateMetadataBroker(id=7, endpoints=[], rack="r", version=8)],
        version=8,
    )
    assert body(ApiKey.UPDATE_METADATA, message) == (
        "00000001" "01" "ffffffff" "ffffffffffffffff" "01" "02" "00000007" "01" "0272" "00" "01" "00" "01" "02"
    )  # fmt: skip


def test_answers_to_the_controller():
    """LeaderAndIsr 7 goes by topic id, StopReplica 4 is flat and by name, UpdateMetadata 8 is an error code alone."""
    obeyed = messages.response_class(ApiKey.LEADER_AND_ISR)
    topic = obeyed.LeaderAndIsrTopicError
    error = topic.LeaderAndIsrPartitionError(partition_index=1, error_code=11, version=7)
    message = obeyed(error_code=0, topics=[topic(topic_id=TOPIC_ID, partition_errors=[error], version=7)], version=7)
    assert body(ApiKey.LEADER_AND_ISR, message) == "000002" + ID_HEX + "0200000001000b000000"
    stopped = messages.response_class(ApiKey.STOP_REPLICA)
    error = stopped.StopReplicaPartitionError(topic_name="t", partition_index=1, error_code=74, version=4)
    assert body(ApiKey.STOP_REPLICA, stopped(error_code=0, partition_errors=[error], version=4)) == (
        "0000" "02" "0274" "00000001" "004a" "00" "00"
    )  # fmt: skip
    updated = messages.response_class(ApiKey.UPDATE_METADATA)(error_code=77, version=8)
    assert body(ApiKey.UPDATE_METADATA, updated) == "004d00"


def test_answers_of_the_controller():
    """ControlledShutdown 3 lists what the broker still leads, AlterPartition 3 what the partition is now."""
    left = messages.response_class(ApiKey.CONTROLLED_SHUTDOWN)
    remaining = left.RemainingPartition(topic_name="t", partition_index=2, version=3)
    assert body(ApiKey.CONTROLLED_SHUTDOWN, left(error_code=0, remaining_partitions=[remaining], version=3)) == (
        "0000" "02" "0274" "00000002" "00" "00"
    )  # fmt: skip
    altered = messages.response_class(ApiKey.ALTER_PARTITION)
    result = altered.TopicData.PartitionData(
        partition_index=1, error_code=0, leader_id=3, leader_epoch=2, isr=[3, 1], leader_recovery_state=1,
        partition_epoch=5, version=3,
    )  # fmt: skip
    topic = altered.TopicData(topic_id=TOPIC_ID, partitions=[result], version=3)
    assert body(ApiKey.ALTER_PARTITION, altered(throttle_time_ms=9, error_code=0, topics=[topic], version=3)) == (
        "00000009" "0000" "02" + ID_HEX + "02"
        "00000001" "0000" "00000003" "00000002" "03" "00000003" "00000001" "01" "00000005" "00"
        "00" "00"
    )  # fmt: skip


def test_headers_of_flexible_versions():
    """All of them are flexible: request header 2, response header 1."""
    for api_key, (_, version) in INTER_BROKER.items():
        request = messages.request_class(api_key)()
        assert messages.parse_request_header(messages.encode_request(request, version, 1, "b1")).body_offset == 13
        response = messages.encode_response(api_key, version, 1, messages.response_class(api_key)())
        assert response[:5] == b"\x00\x00\x00\x01\x00"
