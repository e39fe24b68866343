"""Kafka's JSON, byte for byte where Kafka's own bytes are known, and round trips of everything."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.metadata import znodes
from cluster.metadata.znodes import (
    BrokerRegistration,
    Endpoint,
    MalformedZnode,
    ProducerIdBlockNode,
    StateNode,
    TopicRegistration,
)


def test_the_bytes_of_kafka_3_8():
    """Nodes are written byte for byte as Kafka 3.8.0 writes them."""
    assert znodes.encode_controller(1, 1700) == (
        b'{"version":2,"brokerid":1,"timestamp":"1700","kraftControllerEpoch":-1}'
    )
    assert StateNode(1, 0, (1,), 1).encode() == (
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
    )
    assert ProducerIdBlockNode(1, 0, 999).encode() == (b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}')
    registration = BrokerRegistration(1, (Endpoint("PLAINTEXT", "h", 9),), {"PLAINTEXT": "PLAINTEXT"}, None, 1700)
    assert registration.encode() == (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://h:9"],'
        b'"jmx_port":-1,"port":9,"host":"h","version":5,"timestamp":"1700"}'
    )
    assert znodes.encode_config({"k": "v"}) == b'{"version":1,"config":{"k":"v"}}'
    assert znodes.encode_controller_epoch(3) == b"3"
    topic = TopicRegistration(UUID(int=1), {0: (1, 2)})
    assert topic.encode() == (
        b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":{"0":[1,2]},"adding_replicas":{},'
        b'"removing_replicas":{}}'
    )


def test_the_producer_id_block_of_the_seed():
    """A block in the middle of the range of ids."""
    data = b'{"version":1,"broker":35,"block_start":"4000","block_end":"4999"}'
    assert ProducerIdBlockNode.decode(data) == ProducerIdBlockNode(35, 4000, 4999)
    assert ProducerIdBlockNode.decode(data).encode() == data


IDS = st.integers(0, 9)
REPLICAS = st.lists(IDS, unique=True, max_size=4).map(tuple)
HOSTS = st.sampled_from(["127.0.0.1", "b1.example", "::1"])


@given(
    IDS,
    st.lists(st.builds(Endpoint, st.sampled_from(["PEERS", "PLAINTEXT", "X_1"]), HOSTS, st.integers(1, 65535))),
    st.none() | st.text(max_size=5),
)
def test_registrations_round_trip(broker_id, endpoints, rack):
    """Also with IPv6 hosts; host and port are those of the PLAINTEXT listener or null and -1."""
    protocols = {endpoint.listener: "PLAINTEXT" for endpoint in endpoints}
    registration = BrokerRegistration(broker_id, tuple(endpoints), protocols, rack, 17)
    assert BrokerRegistration.decode(broker_id, registration.encode()) == registration


@given(st.uuids(), st.dictionaries(IDS, REPLICAS), st.dictionaries(IDS, REPLICAS), st.dictionaries(IDS, REPLICAS))
def test_topics_round_trip(topic_id, partitions, adding, removing):
    """Topic ids are Kafka's URL-safe base64 without padding."""
    topic = TopicRegistration(topic_id, partitions, adding, removing)
    assert TopicRegistration.decode("t", topic.encode()) == topic
    assert len(znodes.encode_topic_id(topic_id)) == 22


@given(st.builds(StateNode, IDS, IDS, REPLICAS, IDS, st.booleans()))
def test_states_round_trip(state):
    """The recovery state is written only when it is set."""
    assert StateNode.decode("/p", state.encode()) == state


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5)))
def test_configurations_round_trip(entries):
    """A configuration is read back with the texts that were written."""
    assert znodes.decode_config("/c", znodes.encode_config(entries)) == entries


def test_older_and_smaller_forms_are_read():
    """A topic of before topic ids, a change notification, the cluster's id."""
    assert TopicRegistration.decode("t", b'{"version":1,"partitions":{"0":[1]}}').topic_id is None
    assert znodes.decode_config_change("/c", b'{"version":2,"entity_path":"topics/x"}') == ("topics", "x")
    assert znodes.decode_cluster_id(znodes.encode_cluster_id("abc")) == "abc"
    assert znodes.decode_controller(znodes.encode_controller(4, 0)) == 4
    assert znodes.decode_controller_epoch(b"12") == 12


@pytest.mark.parametrize("data", [b"", b"null", b"[1]", b"{}", b'{"leader":"x"}', b"\xff", b'{"isr":1,"leader":1}'])
def test_what_cannot_be_understood_is_named(data):
    """One error type with the path in its text; never a bare KeyError out of somebody else's node."""
    for decode in (
        lambda: StateNode.decode("/p/state", data),
        lambda: ProducerIdBlockNode.decode(data),
        lambda: BrokerRegistration.decode(1, data),
        lambda: znodes.decode_controller(data),
        lambda: znodes.decode_controller_epoch(data),
    ):
        with pytest.raises(MalformedZnode, match="/"):
            decode()
