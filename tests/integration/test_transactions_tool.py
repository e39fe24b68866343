"""``gapless transactions`` on real brokers, beside what kafka-python's admin says (confluent-kafka's has no such call).

What hangs is made in a cluster of its own, whose brokers do not verify transactions: in the shared one the verifier
would find it, as it should.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from chaos.commands.main import run_command
from cluster.client import Admin, NewTopic, Producer, ProducerFenced
from cluster.client.connection import BrokerConnection
from cluster.client.offset_listing import LATEST_TIMESTAMP
from cluster.protocol.errors import ErrorCode
from cluster.seams.asyncio_transport import AsyncioTransport
from tests.integration.local_cluster import HOST, LocalCluster
from tests.simulation.client import Client, batch
from tests.support.kafka_clients import TIMEOUT_S, KafkaPython, kafka
from tests.support.up_cluster import UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

ALONE = {
    "min.insync.replicas": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.partition.verification.enable": "false",
}
#: A producer that no coordinator has ever heard of.
STRANGER, EPOCH = 4711, 3
TOPIC = "t"
PARTITIONS = 3
READ_COMMITTED = 1


def say(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    """What a command prints as JSON; if it is refused, the line."""
    assert run_command(["transactions", *arguments]) == status
    out, err = capsys.readouterr()
    return err if status else json.loads(out)


def test_what_a_client_has_left_open(
    shared_cluster: UpCluster, admin: Admin, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Listed and described as by another client's admin, with its partition's producer; it does not hang. Aborted by
    its id, its producer is fenced."""
    transactional_id = f"tool-{uuid.uuid4().hex[:8]}"
    at = ["--bootstrap-server", shared_cluster.bootstrap]
    config = {"bootstrap.servers": shared_cluster.bootstrap, "transactional.id": transactional_id}
    with closing(KafkaPython(shared_cluster.bootstrap)) as other, Producer(config) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).result(TIMEOUT_S)
        theirs = other.admin.describe_transactions([transactional_id])[transactional_id]
        mine = say(capsys, "describe", "--transactional-id", transactional_id, "--json", *at)[transactional_id]
        assert (mine["coordinator_id"], mine["producer_id"], mine["producer_epoch"], mine["state"]) == (
            theirs.coordinator_id,
            theirs.producer_id,
            theirs.producer_epoch,
            theirs.state.value,
        )
        assert mine["start_timestamp_ms"] == theirs.transaction_start_time_ms and mine["duration_ms"] >= 0
        assert mine["partitions"] == [[topic, 0]]
        listed = say(capsys, "list", "--state", "Ongoing", "--duration-filter", "0", "--json", *at)
        assert listed[transactional_id] == {
            "transactional_id": transactional_id,
            "producer_id": theirs.producer_id,
            "state": "Ongoing",
            "coordinator_id": theirs.coordinator_id,
        }
        told = {
            (each.transactional_id, each.producer_id, broker_id)
            for broker_id, found in other.admin.list_transactions(state_filters=["Ongoing"]).items()
            for each in found
        }
        ours = {(each["transactional_id"], each["producer_id"], each["coordinator_id"]) for each in listed.values()}
        assert ours <= told
        [state] = say(capsys, "describe-producers", "--topic", topic, "--partition", "0", "--json", *at)
        their_states = other.admin.describe_producers([kafka.TopicPartition(topic, 0)])
        [their_state] = their_states[kafka.TopicPartition(topic, 0)].active_producers
        assert (state["producer_id"], state["last_sequence"], state["current_txn_start_offset"]) == (
            their_state.producer_id,
            their_state.last_sequence,
            their_state.current_transaction_start_offset,
        )
        search = ["find-hanging", "--topic", topic, "--max-transaction-timeout", "0", "--json"]
        assert say(capsys, *search, *at) == say(capsys, *search, "--broker-id", "2", *at) == []
        assert run_command(["transactions", "abort", "--transactional-id", transactional_id, *at]) == 0
        assert "fenced its producer" in capsys.readouterr().out
        with pytest.raises(ProducerFenced):
            producer.commit_transaction()
    # At the brokers' own listener, as the state file has it.
    marker = ["abort", "--topic", topic, "--partition", "0", "--start-offset", "99", "--data", str(shared_cluster.data)]
    assert "no transaction begins at offset 99" in say(capsys, *marker, status=1)
    again = say(capsys, "abort", "--transactional-id", transactional_id, *at, status=1)
    assert "has no open transaction" in again
    assert "there is no transactional ID nobody" in say(
        capsys, "describe", "--transactional-id", "nobody", "--json", *at, status=1
    )


@pytest.fixture(scope="module")
def lax_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker, which believes producers that their transaction is one."""
    with LocalCluster(str(tmp_path_factory.mktemp("lax")), 1, ALONE) as running:
        yield running


def leave_hanging(cluster: LocalCluster, partition: int) -> None:
    """A transactional record of a producer without a coordinator."""

    async def write() -> None:
        port = cluster.ports[1]["CLIENTS"]
        connection = await BrokerConnection.open(AsyncioTransport(), HOST, port, "stranger", 5_000)
        records = batch(b"v", producer_id=STRANGER, producer_epoch=EPOCH, base_sequence=0, transactional=True)
        produced = await Client(connection).produce(TOPIC, records, partition=partition, transactional_id="stranger")
        connection.close()
        assert produced.error is ErrorCode.NONE

    asyncio.run(write())


def test_a_hanging_transaction_is_found_and_aborted(
    lax_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what hangs is found. Its marker is taken on the brokers' own listener alone, looked up or spelled out, and
    then readers continue; another client's admin sees and aborts such a one as well."""
    clients = ["--bootstrap-server", lax_cluster.bootstrap]
    peers = ["--bootstrap-server", f"{HOST}:{lax_cluster.ports[1]['PEERS']}"]
    config = {"bootstrap.servers": lax_cluster.bootstrap, "transactional.id": "legal"}
    with Admin({"bootstrap.servers": lax_cluster.bootstrap}) as admin, Producer(config) as producer:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])

        def stable(partition: int) -> int:
            key = (TOPIC, partition)
            return admin.list_offsets({key: LATEST_TIMESTAMP}, isolation_level=READ_COMMITTED)[key].offset

        producer.init_transactions()
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.send(TOPIC, b"open", partition=partition).result(TIMEOUT_S)
            leave_hanging(lax_cluster, partition)
        search = ["find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0"]
        found = say(capsys, *search, "--json", *clients)
        assert [(each["partition"], each["start_offset"]) for each in found] == [(0, 1), (1, 1), (2, 1)]
        assert {(each["producer_id"], each["producer_epoch"], each["coordinator_epoch"]) for each in found} == {
            (STRANGER, EPOCH, -1)
        }
        producer.commit_transaction()
        assert [stable(partition) for partition in range(PARTITIONS)] == [1, 1, 1]
        assert say(capsys, *search, "--json", *clients) == found
        order = ["abort", "--topic", TOPIC, "--partition", "0", "--start-offset", "1"]
        assert "--bootstrap-server" in say(capsys, *order, *clients, status=1)
        assert run_command(["transactions", *order, *peers]) == 0
        assert f"producer {STRANGER} in {TOPIC}-0" in capsys.readouterr().out
        assert "no transaction begins at offset 1" in say(capsys, *order, *peers, status=1)
        with closing(KafkaPython(peers[1])) as other:
            key = kafka.TopicPartition(TOPIC, 1)
            states = {each.producer_id: each for each in other.admin.describe_producers([key])[key].active_producers}
            assert states[STRANGER].current_transaction_start_offset == 1
            spec = kafka.admin.AbortTransactionSpec(key, STRANGER, EPOCH, 0)
            other.admin.abort_transaction(spec)
        marker = ["--producer-id", str(STRANGER), "--coordinator-epoch", "-1", "--producer-epoch"]
        order = ["abort", "--topic", TOPIC, "--partition", "2", *marker]
        assert "INVALID_PRODUCER_EPOCH" in say(capsys, *order, str(EPOCH - 1), *peers, status=1)
        assert run_command(["transactions", *order, str(EPOCH), *peers]) == 0
        capsys.readouterr()
        assert run_command(["transactions", *search, *clients]) == 0
        assert capsys.readouterr().out.splitlines()[1:] == []
        # Two records and two markers.
        assert [stable(partition) for partition in range(PARTITIONS)] == [4, 4, 4]
        for wrong, said in (("nope", "--topic nope"), (TOPIC, f"--partition {PARTITIONS}")):
            asked = ["describe-producers", "--topic", wrong, "--partition", str(PARTITIONS)]
            assert said in say(capsys, *asked, *clients, status=254)
        assert "there are 1" in say(capsys, "find-hanging", "--broker-id", "9", *clients, status=254)
