"""The table of APIs against the schemas that kafka-python ships, and error codes against its classes."""

from __future__ import annotations

import kafka.errors
import pytest

from cluster.protocol import apis, messages
from cluster.protocol.apis import INTER_BROKER, SUPPORTED, ApiKey
from cluster.protocol.errors import ErrorCode, MalformedRequest

#: Names that kafka-python kept from earlier Kafkas.
RENAMED = {
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "MESSAGE_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION",
    "INVALID_REPLICATION_ASSIGNMENT": "INVALID_REPLICA_ASSIGNMENT",
}

KNOWN = [key for key in ApiKey if key not in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)]


@pytest.mark.parametrize("api_key", KNOWN, ids=lambda key: key.name.lower())
def test_flexible_versions_are_those_of_the_schema(api_key):
    """Request and response become flexible at the same version as in Apache's schema."""
    for message_class in (messages.request_class(api_key), messages.response_class(api_key)):
        for version in range(message_class.max_version + 1):
            assert apis.is_flexible(api_key, version) == message_class.flexible_version_q(version)


@pytest.mark.parametrize("api_key", SUPPORTED | INTER_BROKER, ids=lambda key: key.name.lower())
def test_windows_are_within_the_schema(api_key):
    """Every advertised version can be encoded and decoded, and no window is empty (aiokafka dies of one)."""
    least, greatest = (SUPPORTED | INTER_BROKER)[api_key]
    assert 0 <= least <= greatest <= messages.request_class(api_key).max_version
    assert api_key == messages.response_class(api_key).API_KEY


#: The windows to advertise so that the usual clients work; the others are Kafka 3.8's.
RECOMMENDED = {
    "PRODUCE": (3, 9), "FETCH": (4, 12), "LIST_OFFSETS": (1, 7), "METADATA": (0, 12), "OFFSET_COMMIT": (2, 8),
    "OFFSET_FETCH": (1, 8), "FIND_COORDINATOR": (0, 4), "JOIN_GROUP": (0, 9), "HEARTBEAT": (0, 4),
    "LEAVE_GROUP": (0, 5), "SYNC_GROUP": (0, 5), "DESCRIBE_GROUPS": (0, 5), "LIST_GROUPS": (0, 5),
    "SASL_HANDSHAKE": (0, 1), "API_VERSIONS": (0, 3), "CREATE_TOPICS": (2, 7), "DELETE_TOPICS": (1, 6),
    "DELETE_RECORDS": (0, 2), "INIT_PRODUCER_ID": (0, 4), "OFFSET_FOR_LEADER_EPOCH": (2, 4),
    "ADD_PARTITIONS_TO_TXN": (0, 3), "ADD_OFFSETS_TO_TXN": (0, 3), "END_TXN": (0, 3), "TXN_OFFSET_COMMIT": (0, 3),
    "DESCRIBE_ACLS": (1, 3), "CREATE_ACLS": (1, 3), "DELETE_ACLS": (1, 3), "DESCRIBE_CONFIGS": (1, 4),
    "ALTER_CONFIGS": (0, 2), "SASL_AUTHENTICATE": (0, 2), "CREATE_PARTITIONS": (0, 3), "DELETE_GROUPS": (0, 2),
    "ELECT_LEADERS": (0, 2), "INCREMENTAL_ALTER_CONFIGS": (0, 1), "DESCRIBE_CLUSTER": (0, 1),
    "DESCRIBE_PRODUCERS": (0, 0), "DESCRIBE_TRANSACTIONS": (0, 0), "LIST_TRANSACTIONS": (0, 1),
    "DESCRIBE_LOG_DIRS": (1, 4), "ALTER_PARTITION_REASSIGNMENTS": (0, 0), "LIST_PARTITION_REASSIGNMENTS": (0, 0),
    "OFFSET_DELETE": (0, 0),
}  # fmt: skip

#: Where we know better, and the reason is at the table.
OTHERWISE = {"PRODUCE": (apis.PRODUCE_MIN_ADVERTISED, 9)}


def test_advertised_windows_are_the_recommended_ones():
    """Five clients were seen to work against these windows; ours differ nowhere without a reason."""
    assert {key.name: window for key, window in SUPPORTED.items()} == {
        key.name: (RECOMMENDED | OTHERWISE)[key.name] for key in SUPPORTED
    }


def test_header_versions():
    """Flexible versions have tagged fields in both headers; ApiVersions never in the response's."""
    assert apis.request_header_version(ApiKey.METADATA, 8) == 1
    assert apis.request_header_version(ApiKey.METADATA, 9) == 2
    assert apis.request_header_version(ApiKey.CONTROLLED_SHUTDOWN, 0) == 0
    assert apis.response_header_version(ApiKey.METADATA, 8) == 0
    assert apis.response_header_version(ApiKey.METADATA, 9) == 1
    assert [apis.response_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [0] * 5
    assert apis.request_header_version(ApiKey.API_VERSIONS, 3) == 2
    assert apis.request_header_version(ApiKey.SASL_HANDSHAKE, 1) == 1


def test_clients_and_brokers_have_separate_apis():
    """Nothing that changes a cluster's control state is advertised to clients."""
    assert not set(SUPPORTED) & set(INTER_BROKER)


def test_an_api_without_schema():
    """SASL comes later; until then its keys are malformed like any unknown one."""
    with pytest.raises(MalformedRequest):
        messages.request_class(ApiKey.SASL_HANDSHAKE)


def test_error_codes_have_kafkas_numbers():
    """Each error class of kafka-python has a code of ours of the same number and a name that matches."""
    classes = [
        item
        for item in vars(kafka.errors).values()
        if isinstance(item, type) and issubclass(item, kafka.errors.BrokerResponseError) and (item.errno or 0) > 0
    ]
    assert len(classes) > 80
    for item in classes:
        assert ErrorCode(item.errno).name == RENAMED.get(item.message, item.message)


def test_retriable_codes():
    """What clients retry on, and what they must not: Kafka's Errors."""
    assert ErrorCode.CORRUPT_MESSAGE.retriable
    assert ErrorCode.NOT_ENOUGH_REPLICAS.retriable
    assert not ErrorCode.INVALID_RECORD.retriable
    assert not ErrorCode.UNKNOWN_SERVER_ERROR.retriable
    assert not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.retriable
    assert not ErrorCode.NONE.retriable


def test_codes_that_mean_old_metadata():
    """Each of them is retriable too: the client looks again, and tries again."""
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.is_invalid_metadata
    assert not ErrorCode.REQUEST_TIMED_OUT.is_invalid_metadata
    assert not ErrorCode.UNKNOWN_LEADER_EPOCH.is_invalid_metadata
    assert not ErrorCode.NONE.is_invalid_metadata
    assert all(code.retriable for code in ErrorCode if code.is_invalid_metadata)


def test_an_error_code_of_the_future():
    """A number that we do not know is an unknown error, not an exception."""
    assert ErrorCode.of(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.of(32_000) is ErrorCode.UNKNOWN_SERVER_ERROR
