"""The requests of a transactional producer as messages, in every version, and the answers as values."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cluster.client.cluster_view import BrokerAddress
from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.producer.transaction.txn_codec import (
    API_OF,
    answer_of,
    coordinator_address,
    least_version,
    message_of,
)
from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnAnswer,
    TxnIdentity,
)
from cluster.protocol import messages
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.kafka_schemas import encode_body
from tests.cluster.client.producer.transaction.txn_bench import EPOCH, GROUP, GROUP_KEY, ID, ME, PID, T0, T1, TXN_KEY, E

OFFSETS = {T0: OffsetAndMetadata(10, 3, "text"), T1: OffsetAndMetadata(20)}
#: Each request, and what every version of its message that carries it says at least.
REQUESTS = [
    (FindTxnCoordinator(TXN_KEY), {"key_type": 1}),
    (FindTxnCoordinator(GROUP_KEY), {}),
    (InitTxnProducerId(TxnIdentity(ID), 5), {"transactional_id": ID, "transaction_timeout_ms": 5}),
    (InitTxnProducerId(ME, 5), {"transactional_id": ID, "producer_id": PID, "producer_epoch": EPOCH}),
    (
        AddTxnPartitions(ME, (T0, T1)),
        {f"v3_and_below_{name}": value for name, value in ME._asdict().items()},
    ),
    (AddTxnOffsets(ME, GROUP, OFFSETS), {**ME._asdict(), "group_id": "group"}),
    (CommitTxnOffsets(ME, GROUP, OFFSETS), {**ME._asdict(), **GROUP._asdict()}),
    (CommitTxnOffsets(ME, ConsumerGroupMetadata("group"), OFFSETS), {**ME._asdict(), "group_id": "group"}),
    (EndTransaction(ME, True), {**ME._asdict(), "committed": True}),
    (EndTransaction(ME, False), {**ME._asdict(), "committed": False}),
]
VERSIONS = [
    (request, fields, version)
    for request, fields in REQUESTS
    for version in range(SUPPORTED[API_OF[type(request)]][0], SUPPORTED[API_OF[type(request)]][1] + 1)
]


def decoded(request, version):
    """The message as a broker reads it."""
    message_class = messages.request_class(API_OF[type(request)])
    return messages.decode_request(message_class, version, encode_body(message_of(request), version))


@pytest.mark.parametrize(("request_", "fields", "version"), VERSIONS)
def test_a_version_says_all_or_is_not_used(request_, fields, version):
    """From its least version on a request loses nothing; the one before would mean something else."""
    message = decoded(request_, version)
    told = {name: getattr(message, name, None) for name in fields}
    assert (told == fields) is (version >= least_version(request_))


@pytest.mark.parametrize("version", range(5))
def test_the_key_of_a_coordinator_is_a_list_from_4_on(version):
    """Before, a request has one key."""
    message = decoded(FindTxnCoordinator(GROUP_KEY), version)
    assert (message.coordinator_keys if version >= 4 else [message.key]) == ["group"]


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_grouped_by_topic(version):
    """AddPartitionsToTxn and TxnOffsetCommit name each topic once, with its partitions."""
    (topic,) = decoded(AddTxnPartitions(ME, (T0, T1)), version).v3_and_below_topics
    assert (topic.name, list(topic.partitions)) == ("t", [0, 1])
    (topic,) = decoded(CommitTxnOffsets(ME, GROUP, OFFSETS), version).topics
    told = [(each.partition_index, each.committed_offset, each.committed_metadata) for each in topic.partitions]
    assert told == [(0, 10, "text"), (1, 20, "")]
    if version >= 2:
        assert [each.committed_leader_epoch for each in topic.partitions] == [3, -1]


def answer_to(request, version, **fields):
    api_key = API_OF[type(request)]
    response = messages.response_class(api_key)(**fields)
    frame = messages.encode_response(api_key, version, 1, response)
    return messages.decode_response(api_key, version, memoryview(frame))[1]


@pytest.mark.parametrize("version", range(5))
def test_where_the_coordinator_is(version):
    """One of a list from version 4 on; nowhere while there is none, and no address without it."""
    request = FindTxnCoordinator(TXN_KEY)
    coordinator = messages.response_class(ApiKey.FIND_COORDINATOR).Coordinator
    for code in (E.NONE, E.COORDINATOR_NOT_AVAILABLE):
        where = {"error_code": code, "node_id": 3, "host": "h", "port": 9, "error_message": None}
        fields = where if version < 4 else {"coordinators": [coordinator(key=ID, **where)]}
        response = answer_to(request, version, **fields)
        assert answer_of(request, response, version) == TxnAnswer(code, 3)
        address = coordinator_address(response, version)
        assert address == (BrokerAddress(3, "h", 9) if code is E.NONE else None)


def test_an_answer_without_a_coordinator_is_asked_again():
    """A broker that leaves out what it was asked for says nothing."""
    response = SimpleNamespace(coordinators=[])
    assert answer_of(FindTxnCoordinator(TXN_KEY), response, 4) == TxnAnswer(E.COORDINATOR_NOT_AVAILABLE)
    assert coordinator_address(response, 4) is None


def test_codes_of_partitions_and_of_all():
    """By partition where the API has that; an id and an epoch; a code that no one knows is UNKNOWN_SERVER_ERROR."""
    result = messages.response_class(ApiKey.ADD_PARTITIONS_TO_TXN).AddPartitionsToTxnTopicResult
    parts = [
        result.AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
        for number, code in ((0, E.NONE), (1, 9_999))
    ]
    request = AddTxnPartitions(ME, (T0, T1))
    response = answer_to(request, 3, results_by_topic_v3_and_below=[result(name="t", results_by_partition=parts)])
    assert answer_of(request, response, 3) == TxnAnswer(partitions={T0: E.NONE, T1: E.UNKNOWN_SERVER_ERROR})
    result = messages.response_class(ApiKey.TXN_OFFSET_COMMIT).TxnOffsetCommitResponseTopic
    parts = [result.TxnOffsetCommitResponsePartition(partition_index=0, error_code=E.ILLEGAL_GENERATION)]
    request = CommitTxnOffsets(ME, GROUP, OFFSETS)
    response = answer_to(request, 3, topics=[result(name="t", partitions=parts)])
    assert answer_of(request, response, 3) == TxnAnswer(partitions={T0: E.ILLEGAL_GENERATION})
    request = InitTxnProducerId(TxnIdentity(ID), 5)
    response = answer_to(request, 4, error_code=0, producer_id=8, producer_epoch=2)
    assert answer_of(request, response, 4) == TxnAnswer(producer_id=8, producer_epoch=2)
    request = EndTransaction(ME, True)
    assert answer_of(request, answer_to(request, 3, error_code=90), 3) == TxnAnswer(E.PRODUCER_FENCED)
