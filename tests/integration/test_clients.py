"""Real clients against ``gapless up``: what each writes, every client finds and reads, and every replica holds.

Debian's kcat carries librdkafka 2.0, which compresses with gzip, snappy and lz4 only where Produce 0 is advertised
(``PRODUCE_MIN_ADVERTISED``): the bits on disk are what shows it, for no client says so.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import ConfigResource, NewPartitions

from cluster.client.connection import BrokerConnection
from cluster.process.processes import until
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.protocol.records import Record
from cluster.seams.asyncio_transport import AsyncioTransport
from loadgen.clients.confluent import ConfluentReader
from tests.support.kafka_clients import (
    ACKS,
    EARLIEST,
    LATEST,
    NONE,
    TIMEOUT_S,
    Confluent,
    KafkaClient,
    KafkaPython,
    kafka,
    wait_for,
)
from tests.support.kcat import Kcat
from tests.support.require import require
from tests.support.up_cluster import BROKER_IDS, UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ("confluent", "kafka-python", "kcat")
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
#: Records of one partition, sent in two halves: the second half has later timestamps.
HALF = 60
COUNTS = dict.fromkeys(range(len(ACKS)), 2 * HALF)
FAR_FUTURE_MS = 4_102_444_800_000


class Clients:
    """The clients by name; kcat may be absent, and skips whoever asks for it."""

    def __init__(self, cluster: UpCluster) -> None:
        self.confluent = Confluent(cluster.bootstrap)
        self.kafka_python = KafkaPython(cluster.bootstrap)
        self._bootstrap = cluster.bootstrap

    def kcat(self) -> Kcat:
        return Kcat(require("kcat"), self._bootstrap, self.confluent)

    def find(self, name: str) -> KafkaClient:
        if name == "kcat":
            return self.kcat()
        found: dict[str, KafkaClient] = {"confluent": self.confluent, "kafka-python": self.kafka_python}
        return found[name]


@dataclass(frozen=True)
class Written:
    """What one client wrote with one codec: partition i with the i-th of ``ACKS``."""

    topic: str
    codec: str
    values: dict[int, list[bytes]]

    def records(self, cluster: UpCluster, partition: int, broker_id: int = 1) -> list[Record]:
        """The records as one replica holds them."""
        return [record for _, records in cluster.batches(broker_id, self.topic, partition) for record in records]


@pytest.fixture(scope="module")
def clients(shared_cluster: UpCluster) -> Iterator[Clients]:
    found = Clients(shared_cluster)
    yield found
    found.kafka_python.close()


@pytest.fixture(scope="module", params=[(client, codec) for client in CLIENTS for codec in CODECS], ids="-".join)
def written(request: pytest.FixtureRequest, clients: Clients) -> Written:
    """A topic that a client created, if it can, and wrote to in each of its ways."""
    name, codec = request.param
    client = clients.find(name)
    topic = f"{name}-{codec}-{uuid.uuid4().hex[:8]}"
    client.create(topic, len(ACKS))
    values: dict[int, list[bytes]] = {}
    for partition, acks in enumerate(ACKS):
        sent = [f"{name} {codec} acks={acks} {number:05d} {'z' * 40}".encode() for number in range(2 * HALF)]
        for half in (sent[:HALF], sent[HALF:]):
            client.produce(topic, partition, half, acks, codec)
        values[partition] = sent
    # Nobody said of acks=0 that it has arrived.
    assert until(lambda: clients.confluent.offset_of(topic, [*COUNTS], LATEST) == COUNTS, TIMEOUT_S)
    return Written(topic, codec, values)


def test_every_replica_holds_what_was_sent_as_it_was_compressed(shared_cluster: UpCluster, written: Written) -> None:
    """Values, order and offsets are the sender's; attribute bits are the codec asked for; replicas are equal."""
    for partition, acks in enumerate(ACKS):
        for broker_id in BROKER_IDS:
            headers = [header for header, _ in shared_cluster.batches(broker_id, written.topic, partition)]
            assert {header.codec for header in headers} == {CODECS[written.codec]}, (broker_id, acks)
            assert len(headers) >= 2
            assert all((header.producer_id >= 0) == (acks == "idempotent") for header in headers)
            records = written.records(shared_cluster, partition, broker_id)
            assert [record.offset for record in records] == list(range(2 * HALF))
            assert [record.value for record in records] == written.values[partition]
        assert len({shared_cluster.log(broker_id, written.topic, partition) for broker_id in BROKER_IDS}) == 1


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_finds_where_it_begins_and_ends_and_what_was_when(
    shared_cluster: UpCluster, clients: Clients, written: Written, name: str
) -> None:
    """ListOffsets: earliest, latest, the first record not before a time, and none after the last."""
    client = clients.find(name)
    partitions = [*COUNTS]
    assert client.offset_of(written.topic, partitions, EARLIEST) == dict.fromkeys(partitions, 0)
    assert client.offset_of(written.topic, partitions, LATEST) == COUNTS
    for partition in partitions:
        records = written.records(shared_cluster, partition)
        when = records[HALF].timestamp
        expected = next(record.offset for record in records if record.timestamp >= when)
        assert 0 < expected <= HALF
        assert client.offset_of(written.topic, [partition], when) == {partition: expected}
    assert client.offset_of(written.topic, partitions, FAR_FUTURE_MS) == dict.fromkeys(partitions, NONE)


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_reads_what_any_client_wrote(
    shared_cluster: UpCluster, clients: Clients, written: Written, name: str
) -> None:
    """By assignment from offset 0: every value at its offset with its time, in order, once."""
    found = clients.find(name).read(written.topic, COUNTS)
    for partition in COUNTS:
        records = written.records(shared_cluster, partition)
        assert [value for _, _, value in found[partition]] == written.values[partition]
        assert found[partition] == [(record.offset, record.timestamp, record.value) for record in records]


def fresh(clients: Clients, partitions: int = 1) -> str:
    """A new topic."""
    topic = f"topic-{uuid.uuid4().hex[:8]}"
    clients.confluent.create(topic, partitions)
    return topic


def test_the_examples_of_the_documents_do_what_they_say(shared_cluster: UpCluster, clients: Clients) -> None:
    """docs/up.md, as it is copied, but for the address (and this cluster creates no topic by itself)."""
    clients.confluent.create("hello", 1)
    hello, orders = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "up.md").read_text(), re.DOTALL)
    address = shared_cluster.bootstrap.split(",")[0]

    def run(code: str) -> str:
        argv = [sys.executable, "-c", code.replace("BOOTSTRAP", address)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run(hello) == "b'hello'\n"
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    assert run(orders.replace("orders", topic)) == ""
    assert len(clients.confluent.admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == 3


def test_kcat_lists_the_cluster(shared_cluster: UpCluster, clients: Clients) -> None:
    """``kcat -L``: the brokers where they were announced, a controller, and leaders that are in sync."""
    kcat = clients.kcat()
    topic = fresh(clients, 3)
    said = kcat.metadata(topic)
    assert {broker["id"]: broker["name"] for broker in said["brokers"]} == shared_cluster.addresses
    assert said["controllerid"] in BROKER_IDS
    (listed,) = said["topics"]
    assert listed["topic"] == topic
    assert [partition["partition"] for partition in listed["partitions"]] == [0, 1, 2]
    for partition in listed["partitions"]:
        assert {replica["id"] for replica in partition["replicas"]} == set(BROKER_IDS)
        assert {replica["id"] for replica in partition["isrs"]} == set(BROKER_IDS)
        assert partition["leader"] in BROKER_IDS
    assert len({partition["leader"] for partition in listed["partitions"]}) == 3


def test_a_topic_that_is_not_there_is_an_error_to_each(clients: Clients) -> None:
    """Nothing appears because it was asked for: auto.create.topics.enable is off in the profile chaos."""
    topic = f"never-{uuid.uuid4().hex[:8]}"
    found = clients.confluent.admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    assert found.error.code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
    (described,) = clients.kafka_python.admin.describe_topics([topic])
    assert described["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topic not in clients.kafka_python.admin.list_topics()
    (listed,) = clients.kcat().metadata(topic)["topics"]
    assert "Unknown topic or partition" in listed["error"]


#: A client's wait for what is not served ends within this, with some to spare.
SOON_S = 10.0


def test_the_loads_reader_assigns(clients: Clients) -> None:
    """librdkafka looks for the coordinator of its group also then: whatever it finds is no error of the run."""
    topic = fresh(clients)
    clients.confluent.produce(topic, 0, [b"read"], "all", "none")
    reader = ConfluentReader(clients.confluent.settings["bootstrap.servers"], "reader", {})
    reader.assign(topic, {0: 0})
    polls = []

    def came() -> bool:
        polls.append(reader.poll(10, 0.2))
        return bool(polls[-1].records)

    wait_for(came, "the record")
    reader.close()
    assert not any(each.errors or each.broken for each in polls)


def test_kafka_python_describes_the_cluster(shared_cluster: UpCluster, clients: Clients) -> None:
    """DescribeCluster and ApiVersions through its admin."""
    admin = clients.kafka_python.admin
    cluster = admin.describe_cluster()
    addresses = {broker["broker_id"]: f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]}
    assert addresses == shared_cluster.addresses
    assert cluster["controller_id"] in BROKER_IDS
    assert {int(key): window for key, window in admin.api_versions().items()} == {**SUPPORTED}


def test_kafka_python_describes_settings(clients: Clients) -> None:
    """DescribeConfigs of a topic and a broker: what was set, and Kafka's defaults for the rest."""
    admin = clients.kafka_python.admin
    topic = f"settings-{uuid.uuid4().hex[:8]}"
    wanted = kafka.admin.NewTopic(topic, 1, 3, topic_configs={"segment.bytes": "1048576"})
    admin.create_topics([wanted])
    kind = kafka.admin.ConfigResourceType
    resources = [kafka.admin.ConfigResource(kind.TOPIC, topic), kafka.admin.ConfigResource(kind.BROKER, "2")]
    found = admin.describe_configs(resources, config_filter="all")
    entries = found["topic"][topic]
    assert (entries["segment.bytes"]["value"], entries["segment.bytes"]["config_source"]) == (
        "1048576",
        "DYNAMIC_TOPIC_CONFIG",
    )
    assert (entries["cleanup.policy"]["value"], entries["cleanup.policy"]["config_source"]) == (
        "delete",
        "DEFAULT_CONFIG",
    )
    assert found["broker"]["2"]["broker.id"]["value"] == "2"
    assert found["broker"]["2"]["replica.lag.time.max.ms"]["value"] == "4000"


def test_kafka_python_changes_topics(clients: Clients) -> None:
    """CreatePartitions and DeleteTopics: the other client sees both."""
    admin = clients.kafka_python.admin
    topic = f"grows-{uuid.uuid4().hex[:8]}"
    clients.kafka_python.create(topic, 1)
    admin.create_partitions({topic: 3})
    listing = clients.confluent.admin
    assert until(lambda: len(listing.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == 3, TIMEOUT_S)
    admin.delete_topics([topic])
    assert until(lambda: topic not in listing.list_topics(timeout=TIMEOUT_S).topics, TIMEOUT_S)


def test_confluent_describes_and_changes(shared_cluster: UpCluster, clients: Clients) -> None:
    """librdkafka's admin: the cluster (by Metadata), settings, more partitions, deletion."""
    admin = clients.confluent.admin
    topic = fresh(clients)
    cluster = admin.describe_cluster(request_timeout=TIMEOUT_S).result()
    assert {node.id: f"{node.host}:{node.port}" for node in cluster.nodes} == shared_cluster.addresses
    (future,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    assert future.result(TIMEOUT_S)["cleanup.policy"].value == "delete"
    (future,) = admin.create_partitions([NewPartitions(topic, 2)]).values()
    future.result(TIMEOUT_S)
    assert until(lambda: len(admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == 2, TIMEOUT_S)
    (future,) = admin.delete_topics([topic]).values()
    future.result(TIMEOUT_S)
    assert until(lambda: topic not in admin.list_topics(timeout=TIMEOUT_S).topics, TIMEOUT_S)


def ask(cluster: UpCluster, broker_id: int, make: Callable[[Any], Any], api_key: ApiKey, since: int = 0) -> list[Any]:
    """The answers of a broker to one request in every version it advertises from ``since`` on, encoded by
    kafka-python's schemas."""
    host, _, port = cluster.addresses[broker_id].rpartition(":")

    async def exchange() -> list[Any]:
        connection = await BrokerConnection.open(AsyncioTransport(), host, int(port), "tests", 10_000)
        least, greatest = SUPPORTED[api_key]
        message = make(request_class(api_key))
        versions = range(max(least, since), greatest + 1)
        answers = [await connection.send(message, version) for version in versions]
        connection.close()
        return answers

    return asyncio.run(exchange())


def test_where_an_epoch_ends(shared_cluster: UpCluster, clients: Clients) -> None:
    """OffsetForLeaderEpoch 2 to 4: the epoch in use ends at the log's end, one from the future is unknown, and who
    believes in a later epoch than the leader's is told so."""
    topic = fresh(clients)
    clients.confluent.produce(topic, 0, [b"v"] * 7, "all", "none")
    leader = clients.confluent.admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions[0].leader

    def asking(epoch: int, current: int) -> list[tuple[int, int, int]]:
        def make(request: Any) -> Any:
            wanted = request.OffsetForLeaderTopic
            partition = wanted.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
            return request(replica_id=-1, topics=[wanted(topic=topic, partitions=[partition])])

        found = [
            answer.topics[0].partitions[0]
            for answer in ask(shared_cluster, leader, make, ApiKey.OFFSET_FOR_LEADER_EPOCH)
        ]
        return [(each.error_code, each.leader_epoch, each.end_offset) for each in found]

    assert asking(0, 0) == [(ErrorCode.NONE, 0, 7)] * 3
    assert asking(5, 0) == [(ErrorCode.NONE, -1, -1)] * 3
    assert asking(0, 9) == [(ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)] * 3
