"""Requests of transactions that name very much, are made up or come from no broker: others are served meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.process.processes import until
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import decode_response, encode_request, request_class
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target, target
from tests.simulation.client import batch

pytestmark = pytest.mark.integration

MANY = 100_000
#: As many as a request may name, nearly.
MOST = 499_000
#: Partitions of one topic, which a transaction may have all of.
PARTITIONS = 1000
#: Of the loop's processor time: a busy machine adds to it, and what is decoded in another thread does as well.
BOUND_S = 0.25
IDS = 200


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A broker that coordinates transactions all alone."""
    alone = {
        "offsets_topic_replication_factor": "1",
        "offsets_topic_num_partitions": "1",
        "transaction_state_log_replication_factor": "1",
        "transaction_state_log_min_isr": "1",
        "transaction_state_log_num_partitions": "1",
        "gapless_max_transactional_ids": str(IDS),
    }
    with target(tmp_path_factory.mktemp("coordinator"), **alone) as found, Plain(found.port) as plain:
        assert until(lambda: is_found(plain), 30)
        assert plain.create_topic("many", PARTITIONS) == ErrorCode.NONE
        yield found


def is_found(plain: Plain) -> bool:
    """Whether both coordinators are there, and have read their partitions."""
    codes = []
    for key_type in (0, 1):
        found = plain.send(ApiKey.FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=["id"])
        codes.append(found.coordinators[0].error_code)
    codes.append(plain.send(ApiKey.LIST_GROUPS, 4, states_filter=[]).error_code)
    no_filters: dict[str, Any] = {"state_filters": [], "producer_id_filters": []}
    codes.append(plain.send(ApiKey.LIST_TRANSACTIONS, 0, **no_filters).error_code)
    return not any(codes)


@pytest.fixture
def client(coordinator: Target) -> Iterator[Plain]:
    with Plain(coordinator.port) as plain:
        yield plain


def producer(client: Plain, transactional_id: str) -> dict[str, Any]:
    """A new incarnation: who it is."""
    asked = {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000}
    while (answer := client.send(ApiKey.INIT_PRODUCER_ID, 4, **asked)).error_code:
        assert ErrorCode(answer.error_code).retriable, ErrorCode(answer.error_code)
    return {
        "transactional_id": transactional_id,
        "producer_id": answer.producer_id,
        "producer_epoch": answer.producer_epoch,
    }


def add(client: Plain, who: dict[str, Any], topics: dict[str, list[int]]) -> set[ErrorCode]:
    topic_class = request_class(ApiKey.ADD_PARTITIONS_TO_TXN).AddPartitionsToTxnTopic
    asked = [topic_class(name=topic, partitions=numbers) for topic, numbers in topics.items()]
    named = {f"v3_and_below_{name}": value for name, value in who.items()}
    answer = client.send(ApiKey.ADD_PARTITIONS_TO_TXN, 3, **named, v3_and_below_topics=asked)
    return {
        ErrorCode(each.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }


def adding(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    topic_class = request_class(ApiKey.ADD_PARTITIONS_TO_TXN).AddPartitionsToTxnTopic
    named = {"v3_and_below_transactional_id": "id", "v3_and_below_producer_id": 1, "v3_and_below_producer_epoch": 0}
    topics = [topic_class(name="nowhere", partitions=list(range(count)))]
    return ApiKey.ADD_PARTITIONS_TO_TXN, 3, {**named, "v3_and_below_topics": topics}


def committing(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    topic_class = request_class(ApiKey.TXN_OFFSET_COMMIT).TxnOffsetCommitRequestTopic
    fields = {"committed_offset": 1, "committed_metadata": ""}
    partitions = [topic_class.TxnOffsetCommitRequestPartition(partition_index=each, **fields) for each in range(count)]
    who = {"transactional_id": "id", "group_id": "g", "producer_id": 1, "producer_epoch": 0, "member_id": ""}
    topics = [topic_class(name="nowhere", partitions=partitions)]
    return ApiKey.TXN_OFFSET_COMMIT, 3, {**who, "group_instance_id": None, "generation_id": -1, "topics": topics}


def describing(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    return ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [f"{number}" for number in range(count)]}


def listing(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    states = [f"{number}" for number in range(count)]
    return ApiKey.LIST_TRANSACTIONS, 1, {"state_filters": states, "producer_id_filters": [], "duration_filter": -1}


def answers(api_key: ApiKey, answer: Any) -> list[Any]:
    if api_key is ApiKey.ADD_PARTITIONS_TO_TXN:
        return list(answer.results_by_topic_v3_and_below[0].results_by_partition)
    if api_key is ApiKey.TXN_OFFSET_COMMIT:
        return list(answer.topics[0].partitions)
    names = {ApiKey.DESCRIBE_TRANSACTIONS: "transaction_states", ApiKey.LIST_TRANSACTIONS: "unknown_state_filters"}
    return list(getattr(answer, names[api_key]))


@pytest.mark.parametrize("count", [MANY, pytest.param(MOST, marks=pytest.mark.full)])
@pytest.mark.parametrize("asked", [adding, committing, describing, listing])
def test_a_request_that_names_very_much(coordinator: Target, client: Plain, asked: Any, count: int) -> None:
    """A hundred thousand things that are not there: each is answered."""
    api_key, version, fields = asked(count)
    with watching(coordinator) as watch:
        answer = client.send(api_key, version, **fields)
    assert len(answers(api_key, answer)) == count
    assert watch.turn_s < BOUND_S, watch


def test_a_transaction_of_very_many_partitions(coordinator: Target, client: Plain) -> None:
    """All that there are, added at once, described, and ended: a marker for each."""
    who = producer(client, "large")
    with watching(coordinator) as watch:
        assert add(client, who, {"many": list(range(PARTITIONS))}) == {ErrorCode.NONE}
        described = client.send(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["large"])
        assert len(described.transaction_states[0].topics[0].partitions) == PARTITIONS
        assert client.send(ApiKey.END_TXN, 3, **who, committed=True).error_code == ErrorCode.NONE
        assert until(lambda: state(client, "large") == "CompleteCommit", 60)
    assert watch.turn_s < BOUND_S, watch


def state(client: Plain, transactional_id: str) -> str:
    answer = client.send(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[transactional_id])
    return str(answer.transaction_states[0].transaction_state)


def test_a_client_ends_no_transaction_of_others(coordinator: Target, client: Plain) -> None:
    """WriteTxnMarkers, and questions between brokers, close a client's connection."""
    who = producer(client, "victim")
    assert add(client, who, {"many": [0]}) == {ErrorCode.NONE}
    for api_key, version, message in (
        (ApiKey.WRITE_TXN_MARKERS, 1, markers(who["producer_id"], who["producer_epoch"], [0])),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 4, request_class(ApiKey.ADD_PARTITIONS_TO_TXN)(transactions=[])),
    ):
        with Plain(coordinator.port) as attacker:
            attacker.put(encode_request(message, version, 1, "hostile"))
            with pytest.raises((EOFError, ConnectionError)):
                decode_response(api_key, version, attacker.take())
    assert state(client, "victim") == "Ongoing"
    assert client.send(ApiKey.END_TXN, 3, **who, committed=True).error_code == ErrorCode.NONE


def test_a_stranger_with_the_producers_id_holds_up_no_transaction(coordinator: Target, client: Plain) -> None:
    """It writes with a later epoch to a partition that was added and has no record yet: no marker can be written there,
    and none is needed. The transaction ends, and so does the next one."""
    who = producer(client, "robbed")
    assert add(client, who, {"many": [1, 2]}) == {ErrorCode.NONE}
    later = batch(b"v", producer_id=who["producer_id"], producer_epoch=who["producer_epoch"] + 100, base_sequence=0)
    data = request_class(ApiKey.PRODUCE).TopicProduceData
    topics = [data(name="many", partition_data=[data.PartitionProduceData(index=1, records=bytes(later))])]
    with Plain(coordinator.port) as stranger:
        answer = stranger.send(
            ApiKey.PRODUCE, 7, transactional_id=None, acks=1, timeout_ms=30_000, topic_data=topics
        )  # fmt: skip
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert client.send(ApiKey.END_TXN, 3, **who, committed=True).error_code == ErrorCode.NONE
    assert until(lambda: state(client, "robbed") == "CompleteCommit", 30)
    again = producer(client, "robbed")
    assert add(client, again, {"many": [2]}) == {ErrorCode.NONE}
    assert client.send(ApiKey.END_TXN, 3, **again, committed=False).error_code == ErrorCode.NONE
    assert until(lambda: state(client, "robbed") == "CompleteAbort", 30)


def markers(producer_id: int, producer_epoch: int, partitions: list[int], topic: str = "many") -> Any:
    request = request_class(ApiKey.WRITE_TXN_MARKERS)
    marker = request.WritableTxnMarker
    topics = [marker.WritableTxnMarkerTopic(name=topic, partition_indexes=partitions)]
    return request(
        markers=[
            marker(
                producer_id=producer_id, producer_epoch=producer_epoch, transaction_result=True, coordinator_epoch=0,
                topics=topics,
            )
        ]
    )  # fmt: skip


@pytest.mark.parametrize("topic", ["many", "nowhere"])
def test_markers_for_very_many_partitions(coordinator: Target, topic: str) -> None:
    """From a peer: each is answered, written where there is such a partition, in shares of the loop's turns."""
    with Plain(coordinator.peer_port) as peer, watching(coordinator) as watch:
        answer = peer.send(ApiKey.WRITE_TXN_MARKERS, 1, markers=markers(7, 0, list(range(MANY)), topic).markers)
    codes = [each.error_code for each in answer.markers[0].topics[0].partitions]
    assert len(codes) == MANY
    assert codes.count(ErrorCode.NONE) == (PARTITIONS if topic == "many" else 0)
    assert watch.turn_s < BOUND_S, watch


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(-1, 0), (1, -1)])
def test_markers_of_no_producer(coordinator: Target, producer_id: int, producer_epoch: int) -> None:
    """Markers with an impossible producer are refused, and written nowhere."""
    with Plain(coordinator.peer_port) as peer:
        answer = peer.send(ApiKey.WRITE_TXN_MARKERS, 1, markers=markers(producer_id, producer_epoch, [0]).markers)
    assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


def test_very_many_ids(coordinator: Target, client: Plain) -> None:
    """gapless.max.transactional.ids: others are refused, those that are known are served, and nothing grows."""
    asked = {"transaction_timeout_ms": 60_000}
    codes = set()
    with watching(coordinator) as watch:
        for number in range(2 * IDS):
            answer = client.send(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=f"{number:>30000}", **asked)
            codes.add(ErrorCode(answer.error_code))
    assert codes == {ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    listed = client.send(ApiKey.LIST_TRANSACTIONS, 0, state_filters=[], producer_id_filters=[])
    assert len(listed.transaction_states) <= IDS
    known = listed.transaction_states[0].transactional_id
    assert client.send(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=known, **asked).error_code == ErrorCode.NONE
    assert watch.turn_s < BOUND_S, watch
    assert coordinator.memory_at_rest_bytes() < 250_000_000
